//! Why this is no protocol: masks that hide cannot be removed, masks that can be do not hide.

use he::bfv::SecretKey;
use ring::{Modulus, Random, Seed};
use wire::testing::run_pair;

use super::super::fourier::Fourier;
use super::super::slots::{centred, fixed};
use super::super::*;
use super::parties::{Case, run};
use crate::linear::coefficient::tests::conv;
use crate::linear::falcon::ntt;
use crate::linear::residues::uniform as uniform_residues;

/// The sum of both shares after `mask` was taken from `secret` in the Fourier domain mod p,
/// with 8 fraction bits, as in equation 8 of the paper; its largest error.
fn recovery_error(secret: &[i64], mask: &[i64], modulus: Modulus) -> f64 {
    let (fourier, scale) = (Fourier::new([6, 6]), 256.0);
    let spectrum =
        |plane: &[i64]| fourier.forward(&plane.iter().map(|x| *x as f64).collect::<Vec<f64>>());
    let residue = |x: f64| fixed(x * scale, modulus);
    let back = |x: u64| centred(x, modulus) / scale;
    let mut seen = spectrum(secret);
    for (seen, mask) in seen.0.iter_mut().zip(&spectrum(mask).0) {
        let [re, im] = [(seen.re, mask.re), (seen.im, mask.im)]
            .map(|(x, r)| back(modulus.subtract(residue(x), residue(r))));
        (seen.re, seen.im) = (re, im);
    }
    let shares = fourier.backward(seen);
    let sums = shares.iter().zip(mask).map(|(share, mask)| {
        let sum = modulus.add(fixed(*share, modulus), modulus.of_signed(*mask));
        centred(sum, modulus)
    });
    sums.zip(secret).map(|(sum, secret)| (sum - *secret as f64).abs()).fold(0.0, f64::max)
}

#[test]
fn masks_uniform_mod_p_are_not_removed() {
    // The paper's p, of 31 bits.
    let modulus = Modulus::new(1_316_638_721).unwrap();
    let mut rng = Random::seeded(1);
    let secret: Vec<i64> = rng.uniform(36, 11).into_iter().map(|x| x as i64 - 1024).collect();
    let uniform = uniform_residues(&mut rng, 36, modulus.value());
    let uniform: Vec<i64> = uniform.iter().map(|x| *x as i64).collect();
    assert!(recovery_error(&secret, &uniform, modulus) > 1e8);
    // What is left of p beside fraction and transform: 14 bits.
    let small: Vec<i64> = rng.uniform(36, 14).into_iter().map(|x| x as i64).collect();
    assert!(recovery_error(&secret, &small, modulus) <= 1.0);
}

/// How well the best threshold tells samples of two distributions apart: the largest distance
/// of their distribution functions, 0 to 1.
fn advantage(mut first: Vec<f64>, mut second: Vec<f64>) -> f64 {
    first.sort_by(f64::total_cmp);
    second.sort_by(f64::total_cmp);
    let below = |all: &[f64], at: f64| all.partition_point(|x| *x <= at) as f64 / all.len() as f64;
    let distance = |at: &f64| (below(&first, *at) - below(&second, *at)).abs();
    first.iter().chain(&second).map(distance).fold(0.0, f64::max)
}

const RUNS: u64 = 60;

/// The largest magnitude among the client's shares of each run, for weights that are all the
/// same.
fn seen(weight: i32) -> Vec<f64> {
    let conv = conv([1, 4], [10, 10], 3, 1, 1);
    let layer = Layer::new(&conv, 8, 19, AcceptLeakage::hiding_bits(4)).unwrap();
    let weights = ServerWeights::new(&layer, &[weight; 36], &[0; 4], &mut (1 << 24)).unwrap();
    let x = [vec![127; layer.inputs()], vec![0; layer.inputs()]];
    let case = Case::of(layer, weights, x);
    let largest = |seed| {
        let share = run(&case, seed, None).0.value.unwrap();
        share.iter().map(|x| x.unsigned_abs()).max().unwrap_or(0) as f64
    };
    (0..RUNS).map(largest).collect()
}

/// Largest magnitudes among the client's shares under the transform mod p.
fn seen_mod_p(weight: i32) -> Vec<f64> {
    use crate::linear::slots::Server;
    use ntt::{Layer, ServerWeights, client, server};
    let conv = conv([1, 4], [10, 10], 3, 1, 1);
    let layer = Layer::new(&conv, 8, 19).unwrap();
    let weights = ServerWeights::new(&layer, &[weight; 36], &[0; 4], &mut (1 << 24)).unwrap();
    let x = [vec![127; layer.inputs()], vec![0; layer.inputs()]];
    let mut rng = Random::seeded(1);
    let key = SecretKey::generate(layer.params(), &mut rng).unwrap();
    let public = key.public_key(&Seed([9; 16]), &mut rng).unwrap();
    let rotations = key.rotation_keys(&[], false, &Seed([8; 16]), &mut rng).unwrap();
    let keys = ServerKeys { public, rotations };
    let modulus = Modulus::new(layer.prime()).unwrap();
    let largest = |seed| {
        let (ours, theirs) = run_pair(
            |ch| {
                let worker = &mut Worker { rng: &mut Random::seeded(2), threads: 1 };
                client(ch, &layer, &key, &x[0], worker)
            },
            |ch| {
                let worker = &mut Worker { rng: &mut Random::seeded(seed), threads: 1 };
                server(ch, &Server { layer: &layer, keys: &keys, weights: &weights }, &x[1], worker)
            },
        );
        assert!(theirs.value.is_ok());
        let share = ours.value.unwrap();
        share.iter().map(|x| centred(*x, modulus).abs()).fold(0.0, f64::max)
    };
    (0..RUNS).map(largest).collect()
}

/// A client that looks at the largest of its values knows large weights from none.
#[test]
fn small_masks_tell_weights_and_uniform_ones_do_not() {
    let complex = advantage(seen(0), seen(127));
    assert!(complex > 0.9, "an advantage of {complex}");
    let exact = advantage(seen_mod_p(0), seen_mod_p(127));
    // Two samples of one distribution differ as much once in ten thousand times.
    let expected = 2.2 * (2.0 / RUNS as f64).sqrt();
    assert!(exact < expected, "an advantage of {exact}, {expected} expected");
}
