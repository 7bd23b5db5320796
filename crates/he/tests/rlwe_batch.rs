//! Sums of products of several ciphertexts at once, beside those one by one.
#![allow(clippy::unwrap_used, missing_docs)]

use ring::word::signed;
use ring::{Random, Seed};
use tacit_he::rlwe::{Accumulator, Batch, Params, PublicKey, Row, SecretKey, Weights};

struct Session {
    rng: Random,
    secret: SecretKey,
    public: PublicKey,
}

fn session(params: Params, seed: u64) -> Session {
    let mut rng = Random::seeded(seed);
    let secret = SecretKey::generate(params, &mut rng).unwrap();
    let public = secret.public_key(&Seed([9; 16]), &mut rng).unwrap();
    let public = PublicKey::new(params, &Seed([9; 16]), public.body().to_vec()).unwrap();
    Session { rng, secret, public }
}

/// Products of weights in a power of X are the same added one by one and part by part, also behind others.
#[test]
fn sums_are_the_same_part_by_part() {
    for (degree, bits, step) in [(2048, 46, 32), (4096, 64, 8), (4096, 64, 128)] {
        let params = Params::new(degree, bits).unwrap();
        let mut session = session(params, 12);
        let mut rng = Random::seeded(13);
        let mut operand = || {
            let values = session.rng.uniform(degree, 16);
            let fresh = session.secret.encrypt(params, &values, 16, &mut session.rng).unwrap();
            fresh.expand(params).unwrap().into_operand().unwrap()
        };
        let operands: Vec<_> = (0..7).map(|_| operand()).collect();
        // The last powers have no weights.
        let powers: Vec<usize> = (0..degree / step - 3).map(|i| i * step).collect();
        let values: Vec<i32> = rng
            .uniform(operands.len() * powers.len(), 8)
            .into_iter()
            .map(|word| signed(word, 8) as i32)
            .collect();
        let weights: Vec<_> = values
            .chunks_exact(powers.len())
            .map(|values| {
                let mut all = vec![0; degree / step];
                all.iter_mut().zip(values).for_each(|(to, from)| *to = i64::from(*from));
                Weights::in_power(params, step, &all).unwrap()
            })
            .collect();
        let (operands, weights): (Vec<_>, Vec<_>) = operands.iter().zip(&weights).unzip();
        let sum = |first: usize, anew: bool| {
            let mut sum = Accumulator::new(params).unwrap();
            for (operand, weights) in operands.iter().zip(&weights).take(first) {
                sum.accumulate(operand, weights).unwrap();
            }
            let rest = &values[first * powers.len()..];
            let row = match anew {
                true => Row::transform(params, step, &powers, rest).unwrap(),
                false => Row::new(params, &weights[first..]),
            };
            if let Some(row) = row {
                let batch = Batch::new(params, &operands[first..]).unwrap();
                sum.admit(&batch, &row).unwrap();
                for part in batch.parts() {
                    sum.add_part(&part, &batch, &row).unwrap();
                }
            }
            let mut rng = Random::seeded(14);
            sum.finish()
                .unwrap()
                .respond(&session.public, &[0, 9, degree - 1], 40, &mut rng)
                .unwrap()
        };
        let all = operands.len();
        for anew in [false, true] {
            assert!((0..all).all(|first| sum(first, anew) == sum(all, anew)), "{degree} {step}");
        }
        let batch = Batch::new(params, &operands).unwrap();
        let row = Row::new(params, &weights[1..]).unwrap();
        assert!(Accumulator::new(params).unwrap().admit(&batch, &row).is_err());
        let other = Params::new(degree, bits - 1).unwrap();
        assert!(Batch::new(other, &operands).is_err());
        let in_power = |step| Weights::in_power(params, step, &vec![1; degree / step]).unwrap();
        let [whole, dense, short] = [1, 4, 2 * step].map(in_power);
        for other in [whole, dense, short] {
            assert!(Row::new(params, &[weights[0], &other]).is_none());
        }
        assert!(Row::new(params, &[]).is_none());
        assert!(Row::transform(params, 4, &powers, &values).unwrap().is_none());
    }
}
