//! Encrypt, add, multiply, respond, decrypt: against schoolbook integers, with
//! the noise held to its bound.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "common/negacyclic.rs"]
mod common;

use common::add_product;
use ring::word::{mask, signed};
use ring::{Random, Seed};
use tacit_he::rlwe::noise::{self, Load, Noise};
use tacit_he::rlwe::{Accumulator, Params, PublicKey, SecretKey, Weights, rescale};

struct Session {
    rng: Random,
    secret: SecretKey,
    public: PublicKey,
}

/// One response: what the parties hold, and the true values mod 2^plain_bits.
struct Answer {
    phases: Vec<u64>,
    masks: Vec<u64>,
    truth: Vec<u64>,
    c0: Vec<u64>,
}

/// What a product looks like: input polynomials, weights per polynomial, their
/// width, the plaintext's width.
#[derive(Clone, Copy)]
struct Job {
    inputs: usize,
    taps: usize,
    weight_bits: u32,
    plain_bits: u32,
}

const JOB: Job = Job { inputs: 3, taps: 25, weight_bits: 8, plain_bits: 22 };

impl Job {
    fn load(&self) -> Load {
        Load::bounded(self.inputs * self.taps, 1 << (self.weight_bits - 1))
    }
}

fn session(params: Params, seed: u64) -> Session {
    let mut rng = Random::seeded(seed);
    let secret = SecretKey::generate(params, &mut rng).unwrap();
    let public = secret.public_key(&Seed([9; 16]), &mut rng).unwrap();
    let public = PublicKey::new(params, &Seed([9; 16]), public.body().to_vec()).unwrap();
    Session { rng, secret, public }
}

impl Session {
    fn answer(&mut self, params: Params, job: Job, response_bits: u32) -> Answer {
        let (degree, rng) = (params.degree(), &mut self.rng);
        let mut sum = Accumulator::new(params).unwrap();
        let mut truth = vec![0u64; degree];
        for _ in 0..job.inputs {
            let [client, server] = [0; 2].map(|_: u8| rng.uniform(degree, job.plain_bits));
            let mut weights = vec![0i64; degree];
            for _ in 0..job.taps {
                weights[rng.word() as usize % degree] = signed(rng.word(), job.weight_bits);
            }
            add_product(&mut truth, &client, &weights);
            add_product(&mut truth, &server, &weights);
            let fresh = self.secret.encrypt(params, &client, job.plain_bits, rng).unwrap();
            let mut cipher = fresh.expand(params).unwrap();
            cipher.add_plain(&server, job.plain_bits).unwrap();
            let operand = cipher.into_operand().unwrap();
            sum.accumulate(&operand, &Weights::new(params, &weights).unwrap()).unwrap();
        }
        let keep: Vec<usize> = (0..degree).filter(|i| i % 7 != 3).collect();
        let sum = sum.finish().unwrap();
        let (response, masks) = sum.respond(&self.public, &keep, response_bits, rng).unwrap();
        let phases = self.secret.decrypt(&response, &keep).unwrap();
        let truth = keep.iter().map(|i| truth[*i] & mask(job.plain_bits)).collect();
        Answer { phases: phases.to_vec(), masks: masks.to_vec(), truth, c0: response.c0 }
    }
}

/// The phases' errors in units of 1 mod 2^K, by the sharing convention.
fn errors(answer: &Answer, params: Params, plain_bits: u32, response_bits: u32) -> Vec<f64> {
    let bits = params.modulus_bits();
    let shares = answer.phases.iter().zip(&answer.masks).zip(&answer.truth);
    let error = shares.map(|((phase, hidden), value)| {
        let got = (phase << (bits - response_bits)).wrapping_sub(*hidden);
        signed(got.wrapping_sub(value << (bits - plain_bits)), bits) as f64
    });
    error.collect()
}

fn deviation(values: &[f64]) -> f64 {
    (values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64).sqrt()
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, x| x.abs().max(most))
}

#[test]
fn noise_stays_below_its_bound_and_near_it() {
    for (degree, bits) in [(2048, 52), (4096, 60), (4096, 64)] {
        let params = Params::new(degree, bits).unwrap();
        for (weight_bits, response_bits) in [(2, bits), (12, bits), (12, 30)] {
            let job = Job { weight_bits, ..JOB };
            let noise = Noise::new(params, job.load(), response_bits);
            let mut all = Vec::new();
            for seed in 0..if response_bits == bits { 60 } else { 6 } {
                let answer = session(params, seed).answer(params, job, response_bits);
                all.extend(errors(&answer, params, job.plain_bits, response_bits));
            }
            let (most, bound) = (largest(&all), noise.response(noise::PER_TENSOR));
            assert!(most < bound, "{params}: {most} against {bound}");
            assert!(most > bound / 8.0, "{params}: {most} is far below {bound}");
            let proxy = noise.phase(0.0) / (2.0 * 2f64.ln()).sqrt();
            if response_bits == bits {
                let got = deviation(&all);
                // Beside narrow weights flooding is all of the noise but a thousandth: its deviation is known, and
                // measured with an error of one part in the root of twice the samples.
                let off = 4.0 / (2.0 * all.len() as f64).sqrt();
                let within = match weight_bits {
                    2 => proxy * (1.0 - off)..proxy * (1.0 + off),
                    _ => proxy / 2.5..proxy,
                };
                assert!(within.contains(&got), "{params}: {got} against {proxy}");
            }
        }
    }
}

#[test]
fn one_key_serves_smaller_moduli() {
    let mut session = session(Params::new(4096, 64).unwrap(), 1);
    for bits in [64, 47, 40] {
        let params = Params::new(4096, bits).unwrap();
        let answer = session.answer(params, JOB, bits);
        let bound = Noise::new(params, JOB.load(), bits).response(noise::PER_TENSOR);
        assert!(largest(&errors(&answer, params, JOB.plain_bits, bits)) < bound);
    }
    let other = Params::new(2048, 40).unwrap();
    assert!(session.secret.encrypt(other, &[0; 2048], 20, &mut session.rng).is_err());
}

#[test]
fn exact_mode_never_misses() {
    let mut count = 0;
    for (seed, plain_bits, weight_bits) in [(1, 22, 8), (2, 26, 12), (3, 30, 11), (4, 36, 12)] {
        let job = Job { plain_bits, weight_bits, ..JOB };
        let (params, response_bits) = noise::exact(plain_bits, job.load()).unwrap();
        let mut session = session(params, seed);
        for _ in 0..20 {
            let answer = session.answer(params, job, response_bits);
            let client = rescale::exact_client(&answer.phases, response_bits, plain_bits).unwrap();
            let server =
                rescale::exact_server(&answer.masks, params.modulus_bits(), plain_bits).unwrap();
            for ((x, y), value) in client.iter().zip(&server).zip(&answer.truth) {
                let sum = x.wrapping_add(*y) & mask(plain_bits + rescale::EXACT_BITS);
                assert_eq!(sum >> rescale::EXACT_BITS, *value);
                assert_ne!(sum & mask(rescale::EXACT_BITS), 0);
                count += 1;
            }
        }
    }
    assert!(count > 100_000, "{count}");
}

#[test]
fn stochastic_rounding_is_unbiased_and_bounded() {
    for (degree, plain_bits, out_bits) in [(2048, 22, 12), (2048, 20, 12), (4096, 26, 14)] {
        let job = Job { plain_bits, ..JOB };
        let (params, response_bits) =
            noise::stochastic_at(degree, plain_bits, out_bits, job.load()).unwrap();
        let mut session = session(params, 5);
        let mut all = Vec::new();
        for _ in 0..30 {
            let answer = session.answer(params, job, response_bits);
            let client = rescale::client(&answer.phases, response_bits, out_bits).unwrap();
            let server = rescale::server(&answer.masks, params.modulus_bits(), out_bits).unwrap();
            let scale = f64::from(1 << (plain_bits - out_bits));
            for ((x, y), value) in client.iter().zip(&server).zip(&answer.truth) {
                let got = (x.wrapping_add(*y) << (plain_bits - out_bits)).wrapping_sub(*value);
                all.push(signed(got, plain_bits) as f64 / scale);
            }
        }
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let spread = deviation(&all);
        assert!(mean.abs() < 4.5 * spread / (all.len() as f64).sqrt(), "{params}: mean {mean}");
        assert!(largest(&all) < noise::stochastic_error(degree), "{}", largest(&all));
        assert!(spread < 0.45, "{params}: deviation {spread}");
    }
}

/// Widths leave room for two units, of which rounding takes one.
#[test]
fn results_leave_their_room_far_more_rarely_than_they_pass_the_bound() {
    for (squares, plain_bits, out_bits) in [(1e4, 23, 12), (1e7, 26, 14), (1e9, 30, 16)] {
        let load = Load::from_squares(squares);
        for degree in [2048, 4096] {
            let chosen = noise::stochastic_at(degree, plain_bits, out_bits, load);
            let (params, response_bits) = chosen.unwrap();
            let noise = Noise::new(params, load, response_bits);
            let bound = noise::stochastic_error(degree);
            assert!(noise.rescale_error(out_bits, noise::PER_COEFFICIENT) < bound);
            assert!(noise.beyond(out_bits, bound) < 2f64.powi(-40), "{params}");
            let room = noise.beyond(out_bits, 2.0);
            assert!(room > 0.0 && room < 2f64.powi(-160), "{params}: 2^{}", room.log2());
            // Rounding alone takes a unit.
            assert_eq!(noise.beyond(out_bits, 1.0), 1.0);

            let (params, response_bits) = noise::exact_at(degree, plain_bits, load).unwrap();
            let wrong = Noise::new(params, load, response_bits).beyond(plain_bits + 4, 8.0);
            assert!(wrong > 0.0 && wrong < 2f64.powi(-66), "{params}: 2^{}", wrong.log2());
        }
    }
    assert_eq!(noise::key_failure(0).log2().round(), -63.0);
    assert!(noise::key_failure(4) - noise::key_failure(0) <= 2f64.powi(-92));
}

/// 6 deviations above the mean of a chi-square with 63 degrees of freedom.
const CHI_63: f64 = 63.0 + 6.0 * 11.3;

fn chi_square(values: impl Iterator<Item = u64>) -> f64 {
    let mut counts = [0f64; 64];
    let mut total = 0.0;
    for value in values {
        counts[value as usize & 63] += 1.0;
        total += 1.0;
    }
    let want = total / 64.0;
    counts.iter().map(|count| (count - want).powi(2) / want).sum()
}

#[test]
fn what_the_client_sees_is_uniform() {
    let params = Params::new(2048, 45).unwrap();
    let mut session = session(params, 11);
    let answers: Vec<_> = (0..20).map(|_| session.answer(params, JOB, 20)).collect();
    for shift in [14, 7, 0] {
        let chi = chi_square(answers.iter().flat_map(|a| &a.c0).map(|c| c >> shift));
        assert!(chi < CHI_63, "c0 >> {shift}: {chi}");
        let chi = chi_square(answers.iter().flat_map(|a| &a.phases).map(|p| p >> shift));
        assert!(chi < CHI_63, "phase >> {shift}: {chi}");
    }
    let chi = chi_square(answers.iter().flat_map(|a| &a.masks).map(|r| r >> 39));
    assert!(chi < CHI_63, "masks: {chi}");
}

#[test]
fn a_response_that_cannot_be_rerandomised_is_refused() {
    let params = Params::new(2048, 45).unwrap();
    let mut session = session(params, 3);
    let fresh = |s: &mut Session| {
        let fresh = s.secret.encrypt(params, &[0; 2048], 20, &mut s.rng).unwrap();
        fresh.expand(params).unwrap()
    };
    for keep in [vec![], vec![3, 3], vec![4, 1], vec![2048]] {
        let cipher = fresh(&mut session);
        assert!(cipher.respond(&session.public, &keep, 20, &mut session.rng).is_err());
    }
    for bits in [0, 46] {
        let cipher = fresh(&mut session);
        assert!(cipher.respond(&session.public, &[0], bits, &mut session.rng).is_err());
    }
    for (degree, bits) in [(4096, 45), (2048, 44)] {
        let other = Params::new(degree, bits).unwrap();
        let key = session_key(other);
        let cipher = fresh(&mut session);
        assert!(cipher.respond(&key, &[0], 20, &mut session.rng).is_err());
    }
    assert!(PublicKey::new(params, &Seed([0; 16]), vec![1 << 45; 2048]).is_err());
    assert!(PublicKey::new(params, &Seed([0; 16]), vec![0; 2047]).is_err());
}

fn session_key(params: Params) -> PublicKey {
    session(params, 4).public
}

#[test]
fn seeds_are_fresh_and_secrets_do_not_print() {
    let params = Params::new(2048, 40).unwrap();
    let mut session = session(params, 8);
    let [one, two] = [0; 2]
        .map(|_: u8| session.secret.encrypt(params, &[5; 2048], 20, &mut session.rng).unwrap());
    assert!(one.seed != two.seed && one.body != two.body);
    let weights = Weights::new(params, &[77; 2048]).unwrap();
    let shown = format!("{:?} {:?} {one:?} {weights:?}", session.secret, session.public);
    assert_eq!(
        shown,
        "SecretKey(N = 2048, q = 2^40, <hidden>) PublicKey(N = 2048, q = 2^40) \
         Fresh(<2048 coefficients>) Weights(<hidden>)"
    );
}

#[test]
fn short_weights_are_weights_followed_by_zeros() {
    let params = Params::new(4096, 64).unwrap();
    let mut session = session(params, 9);
    let fresh = session.secret.encrypt(params, &[3; 4096], 20, &mut session.rng).unwrap();
    let operand = fresh.expand(params).unwrap().into_operand().unwrap();
    for length in [1, 2, 8, 64, 2048, 4096] {
        let weights: Vec<i64> = (0..length).map(|i| 70_001 * i % 30_011 - 15_000).collect();
        let mut padded = weights.clone();
        padded.resize(4096, 0);
        let product = |weights: Weights| {
            let mut sum = Accumulator::new(params).unwrap();
            sum.accumulate(&operand, &weights).unwrap();
            let mut rng = Random::seeded(length as u64);
            sum.finish().unwrap().respond(&session.public, &[0, 5, 4095], 64, &mut rng).unwrap()
        };
        let short = product(Weights::short(params, &weights).unwrap());
        assert!(short == product(Weights::new(params, &padded).unwrap()), "{length}");
    }
    for length in [0, 3, 8192] {
        assert!(Weights::short(params, &vec![1; length]).is_err());
    }
}

/// A uniform integer of 32 bits, centred, is -2^31 now and then.
#[test]
fn the_largest_weight_stands_beside_others() {
    let params = Params::new(4096, 64).unwrap();
    let mut session = session(params, 10);
    let fresh = session.secret.encrypt(params, &[3; 4096], 20, &mut session.rng).unwrap();
    let operand = fresh.expand(params).unwrap().into_operand().unwrap();
    let product = |all: &[[i64; 4]]| {
        let mut sum = Accumulator::new(params).unwrap();
        for weights in all {
            sum.accumulate(&operand, &Weights::short(params, weights).unwrap()).unwrap();
        }
        let mut rng = Random::seeded(11);
        sum.finish().unwrap().respond(&session.public, &[0, 5, 4095], 64, &mut rng).unwrap()
    };
    for largest in [-1 << 31, 1 << 31] {
        let [alone, rest] = [[largest, 0, 0, 0], [0, 1, 5, -7]];
        assert!(product(&[[largest, 1, 5, -7]]) == product(&[alone, rest]), "{largest}");
    }
    for beyond in [(1 << 31) + 1, (-1 << 31) - 1, i64::MAX, i64::MIN] {
        assert!(Weights::short(params, &[beyond, 1, 5, -7]).is_err(), "{beyond}");
        assert!(Weights::short(params, &[beyond; 4096]).is_err(), "{beyond}");
    }
}
