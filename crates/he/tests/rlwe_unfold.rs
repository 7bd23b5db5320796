//! Unfolding against plain polynomials, with the noise held to its bound.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "common/negacyclic.rs"]
mod common;

use common::add_product;
use ring::word::{mask, signed};
use ring::{Random, Seed};
use tacit_he::rlwe::noise::{self, Load, Noise};
use tacit_he::rlwe::{Accumulator, MOST_LEVELS, Params, PublicKey, SecretKey, UnfoldKey, Weights};

struct Session {
    rng: Random,
    secret: SecretKey,
    public: PublicKey,
    unfold: UnfoldKey,
}

const PLAIN_BITS: u32 = 20;

fn session(params: Params, seed: u64) -> Session {
    let mut rng = Random::seeded(seed);
    let secret = SecretKey::generate(params, &mut rng).unwrap();
    let public = secret.public_key(&Seed([9; 16]), &mut rng).unwrap();
    let bodies = secret.unfold_bodies(MOST_LEVELS, &Seed([8; 16]), &mut rng).unwrap();
    let layout = UnfoldKey::layout(params, MOST_LEVELS).unwrap();
    let lengths = bodies.iter().map(|body| (body.len(), params.modulus_bits()));
    assert!(layout.into_iter().eq(lengths));
    let unfold = UnfoldKey::new(params, MOST_LEVELS, &Seed([8; 16]), &bodies).unwrap();
    Session { rng, secret, public, unfold }
}

/// Squared multipliers, and the errors of all coefficients of the sum of products of all
/// unfolded ciphertexts with `taps` multipliers each, in units of 1 mod 2^K.
fn errors(
    session: &mut Session,
    (levels, dropped): (usize, u32),
    taps: usize,
    even: bool,
) -> (f64, Vec<f64>) {
    let (params, rng) = (session.secret.params(), &mut session.rng);
    let (degree, bits, count) = (params.degree(), params.modulus_bits(), 1 << levels);
    let values = rng.uniform(degree, PLAIN_BITS);
    let plain_bits = PLAIN_BITS + levels as u32;
    let mut fresh = session.secret.encrypt(params, &values, plain_bits, rng).unwrap();
    fresh.shorten(params, dropped, rng).unwrap();
    assert!(fresh.body.iter().all(|value| value & !mask(bits - dropped) == 0));
    let cipher = fresh.expand_shortened(params, dropped).unwrap();
    let unfolded = cipher.unfold(&session.unfold, levels, count, rng).unwrap();
    assert_eq!(unfolded.len(), count);
    let mut sum = Accumulator::new(params).unwrap();
    let (mut truth, mut squares) = (vec![0u64; degree], 0.0);
    for (u, cipher) in unfolded.into_iter().enumerate() {
        let mut weights = vec![0i64; degree];
        for tap in 0..taps {
            let at = if even { tap } else { rng.word() as usize % degree };
            weights[at] = if even { 2048 } else { signed(rng.word(), 12) };
        }
        squares += weights.iter().map(|w| (w * w) as f64).sum::<f64>();
        let part = values.iter().enumerate().map(|(at, x)| if at % count == u { *x } else { 0 });
        let mut part: Vec<u64> = part.collect();
        part.rotate_left(u);
        add_product(&mut truth, &part, &weights);
        let operand = cipher.into_operand().unwrap();
        sum.accumulate(&operand, &Weights::new(params, &weights).unwrap()).unwrap();
    }
    let keep: Vec<usize> = (0..degree).collect();
    let sum = sum.finish().unwrap();
    let (response, masks) = sum.respond(&session.public, &keep, bits, rng).unwrap();
    let phases = session.secret.decrypt(&response, &keep).unwrap();
    let all = phases.iter().zip(masks.iter()).zip(&truth).map(|((phase, hidden), value)| {
        let got = phase.wrapping_sub(*hidden).wrapping_sub(value << (bits - PLAIN_BITS));
        signed(got & mask(bits), bits) as f64
    });
    (squares, all.collect())
}

#[test]
fn unfolded_products_are_right_within_the_bound() {
    for (degree, bits) in [(2048, 52), (4096, 64), (4096, 60)] {
        let params = Params::new(degree, bits).unwrap();
        let mut session = session(params, degree as u64 + u64::from(bits));
        for levels in 0..=MOST_LEVELS {
            // Bits that are dropped weigh little beside unfolding, or much.
            for (even, dropped) in [(false, 0), (true, 0), (false, 12), (true, 18)] {
                let (squares, errors) = errors(&mut session, (levels, dropped), 24, even);
                let load = Load::from_squares(squares).unfolded(params, levels, dropped);
                let noise = Noise::new(params, load, bits);
                let bound = noise.phase(noise::PER_TENSOR);
                let most = errors.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
                assert!(most < bound, "{params}, {levels} levels: {most} against {bound}");
                assert!(most > bound / 128.0, "{params}, {levels} levels: {most} of {bound}");
                let proxy = noise.phase(0.0) / (2.0 * 2f64.ln()).sqrt();
                let squares: f64 = errors.iter().map(|x| x * x).sum();
                let deviation = (squares / errors.len() as f64).sqrt();
                // Neighbours see nearly the same errors when the weights are one run.
                let slack = if even { 1.5 } else { 1.1 };
                assert!(deviation < slack * proxy, "{params}: {deviation} against {proxy}");
            }
        }
    }
}

#[test]
fn a_sum_of_responses_has_the_noise_of_all() {
    let params = Params::new(4096, 60).unwrap();
    let one = Noise::new(params, Load::bounded(10, 100), 20);
    let two = Noise::new(params, Load::bounded(20, 100), 20).summed(2);
    let grown = two.rescale_error(12, 40.0) / one.rescale_error(12, 40.0);
    assert!(grown > 1.0 && grown < 2.0);
    assert!((two.phase(40.0) / one.phase(40.0) - 2f64.sqrt()).abs() < 1e-9);
}

#[test]
fn the_first_ones_come_without_the_rest() {
    let params = Params::new(2048, 52).unwrap();
    let mut session = session(params, 5);
    let rng = &mut session.rng;
    let values = rng.uniform(2048, 10);
    let fresh = session.secret.encrypt(params, &values, 14, rng).unwrap();
    for count in [1, 3, 11, 16] {
        let cipher = fresh.expand(params).unwrap();
        let some = cipher.unfold(&session.unfold, 4, count, rng).unwrap();
        assert_eq!(some.len(), count);
        for (u, cipher) in some.into_iter().enumerate() {
            let keep: Vec<usize> = (0..2048).step_by(16).collect();
            let (response, masks) = cipher.respond(&session.public, &keep, 20, rng).unwrap();
            let phases = session.secret.decrypt(&response, &keep).unwrap();
            for ((phase, hidden), at) in phases.iter().zip(masks.iter()).zip(&keep) {
                let got = (phase << 32).wrapping_sub(*hidden) & mask(52);
                let error = signed(got.wrapping_sub(values[at + u] << 42) & mask(52), 52);
                assert!(error.abs() < 1 << 41, "{u}, {at}");
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let params = Params::new(2048, 50).unwrap();
    let mut session = session(params, 3);
    let seed = Seed([8; 16]);
    let bodies = session.secret.unfold_bodies(1, &seed, &mut session.rng).unwrap();
    assert!(session.secret.unfold_bodies(MOST_LEVELS + 1, &seed, &mut session.rng).is_err());
    assert!(UnfoldKey::layout(params, MOST_LEVELS + 1).is_err());
    assert!(UnfoldKey::new(params, 2, &seed, &bodies).is_err());
    assert!(UnfoldKey::new(params, 1, &seed, &bodies[1..]).is_err());
    let mut large = bodies.clone();
    large[0][7] = 1 << 50;
    assert!(UnfoldKey::new(params, 1, &seed, &large).is_err());
    let short: Vec<Vec<u64>> = bodies.iter().map(|body| body[1..].to_vec()).collect();
    assert!(UnfoldKey::new(params, 1, &seed, &short).is_err());
    let key = UnfoldKey::new(params, 1, &seed, &bodies).unwrap();
    assert_eq!(format!("{key:?}"), "UnfoldKey(N = 2048, q = 2^50, <1 levels>)");
    let small = Params::new(2048, 40).unwrap();
    for (params, levels, count) in [(params, 2, 1), (params, 1, 0), (params, 1, 3), (small, 1, 1)] {
        let rng = &mut session.rng;
        let fresh = session.secret.encrypt(params, &[0; 2048], 20, rng).unwrap();
        let cipher = fresh.expand(params).unwrap();
        assert!(cipher.unfold(&key, levels, count, rng).is_err(), "{levels} {count}");
    }
}
