use ring::Random;

use super::*;
use crate::rlwe::{Accumulator, Weights};

/// All kernels on `count` random ciphertexts, some of which are multiplied together.
fn check(degree: usize, bits: u32, largest: i64, powers: &[usize], count: usize) {
    let params = Params::new(degree, bits).unwrap();
    let mut rng = Random::seeded(u64::from(bits));
    let useful: Vec<usize> = (100..300).chain([degree - 1]).collect();
    let total = count * powers.len();
    let mut plan = Direct::new(params, powers, largest as u64, total, &useful).unwrap();
    let mut draw = || {
        let mut half = rng.uniform(degree, bits);
        half[..2].copy_from_slice(&[mask(bits), 1 << (bits - 1)]);
        half
    };
    let ciphers: Vec<Ciphertext> =
        (0..count).map(|_| Ciphertext { params, c0: draw(), c1: draw() }).collect();
    let each = TOGETHER * powers.len();
    let weight = |at: usize| match at / each {
        0 => largest as i32,
        1 => -largest as i32,
        _ => ((at as i32 % 7 - 3) * 5).clamp(-largest as i32, largest as i32),
    };
    let weights: Vec<i32> = (0..count * each).map(weight).collect();
    let mut want: Vec<_> = (0..TOGETHER).map(|_| Accumulator::new(params).unwrap()).collect();
    for (cipher, weights) in ciphers.iter().zip(weights.chunks_exact(each)) {
        let cipher = Ciphertext { params, c0: cipher.c0.clone(), c1: cipher.c1.clone() };
        let operand = cipher.into_operand().unwrap();
        for (b, want) in want.iter_mut().enumerate() {
            let mut dense = vec![0; degree];
            for (power, row) in powers.iter().zip(weights.as_chunks::<TOGETHER>().0) {
                dense[*power] = i64::from(row[b]);
            }
            want.accumulate(&operand, &Weights::new(params, &dense).unwrap()).unwrap();
        }
    }
    let want: Vec<Ciphertext> = want.into_iter().map(|want| want.finish().unwrap()).collect();
    let kinds = [None, Bytes::of(Level::best(), params, largest as u64)];
    for (level, bytes) in Level::available().into_iter().flat_map(|level| kinds.map(|k| (level, k)))
    {
        (plan.level, plan.bytes) = (level, bytes);
        let mut sums = plan.zero();
        for (ciphers, weights) in ciphers.chunks(6).zip(weights.chunks(6 * each)) {
            plan.accumulate(
                &mut sums,
                &plan.factors(&ciphers.iter().collect::<Vec<_>>()).unwrap(),
                weights,
            )
            .unwrap();
        }
        for (got, want) in plan.finish(&sums).unwrap().iter().zip(&want) {
            assert_eq!(got.c1, want.c1, "{level:?} {bytes:?}");
            assert!(useful.iter().all(|i| got.c0[*i] == want.c0[*i]), "{level:?} {bytes:?}");
        }
    }
}

#[test]
fn sums_equal_those_of_the_transforms() {
    check(2048, 35, 127, &[0, 1, 2, 30, 31, 32, 2047], 9);
    check(2048, 24, 1, &[5], 1);
    check(4096, 44, 127, &(0..60).map(|i| 67 * i).collect::<Vec<_>>(), 3);
    check(2048, 52, 127, &[3, 700, 1400], 9);
    check(4096, 64, 32_767, &[0, 4095], 4);
}

#[test]
fn few_terms_between_reductions_mean_two_limbs() {
    let limbs = |bits, largest, total| {
        Limbs::of(Params::new(4096, bits).unwrap(), largest, total).map(Limbs::count)
    };
    assert_eq!(limbs(36, 127, 10_000).unwrap(), 1);
    assert_eq!(limbs(43, 127, 10_000).unwrap(), 1);
    assert_eq!(limbs(44, 127, 10_000).unwrap(), 2);
    assert_eq!(limbs(64, 127, 10_000).unwrap(), 2);
    assert!(limbs(64, 1 << 20, 10_000).is_err());
}

#[test]
fn what_does_not_fit_is_refused() {
    let params = Params::new(2048, 30).unwrap();
    assert!(Direct::new(params, &[2048], 1, 1, &[0]).is_err());
    assert!(Direct::new(params, &[1], 1, 1, &[2048]).is_err());
    let plan = Direct::new(params, &[1], 1, 1, &[0]).unwrap();
    let other = Params::new(2048, 31).unwrap();
    let zeros = || vec![0; 2048];
    let cipher = Ciphertext { params: other, c0: zeros(), c1: zeros() };
    assert!(plan.factors(&[&cipher]).is_err());
    let cipher = Ciphertext { params, c0: zeros(), c1: zeros() };
    let factors = plan.factors(&[&cipher]).unwrap();
    assert!(plan.accumulate(&mut plan.zero(), &factors, &[1; 5]).is_err());
}
