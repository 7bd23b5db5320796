//! Both parties in memory, under encryption.

use graph::Conv;
use he::bfv::SecretKey;
use ring::{Random, Seed};
use wire::testing::{Outcome, run_tampered};
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::super::*;
use crate::linear::coefficient::tests::{clear, conv};
use crate::linear::testing::{Tampered, integers, pinned, tampering_is_noticed_or_harmless};

type Shares = Zeroizing<Vec<i64>>;

/// A layer with everything that both parties bring.
pub(super) struct Case {
    pub(super) layer: Layer,
    pub(super) weights: ServerWeights,
    pub(super) x: [Vec<i64>; 2],
    want: Vec<i64>,
}

impl Case {
    /// A case without expectations.
    pub(super) fn of(layer: Layer, weights: ServerWeights, x: [Vec<i64>; 2]) -> Self {
        Self { layer, weights, x, want: Vec::new() }
    }
}

pub(super) fn layer(conv: &Conv) -> Layer {
    Layer::new(conv, 8, 21, AcceptLeakage::hiding_bits(8)).unwrap()
}

/// Random inputs of 8 bits and weights of 6.
pub(super) fn case(layer: Layer, conv: &Conv, memory: usize) -> Case {
    let mut rng = Random::seeded(5);
    let x = integers(&mut rng, layer.inputs(), 8);
    let theirs = integers(&mut rng, layer.inputs(), layer.share_bits());
    let per_output = conv.group_channels() * conv.kernel[0] * conv.kernel[1];
    let weight = integers(&mut rng, conv.out_channels * per_output, 6);
    let weight: Vec<i32> = weight.into_iter().map(|w| w as i32).collect();
    let bias = integers(&mut rng, conv.out_channels, 10);
    let want = clear(conv, &x, &weight, &bias);
    let ours = x.iter().zip(&theirs).map(|(x, s)| x - s).collect();
    let weights = ServerWeights::new(&layer, &weight, &bias, &mut memory.clone()).unwrap();
    Case { layer, weights, x: [ours, theirs], want }
}

type Both = (Outcome<Result<Shares>>, Outcome<Result<Shares>>);

pub(super) fn run(case: &Case, seed: u64, tamper: Tampered) -> Both {
    let layer = &case.layer;
    let mut rng = Random::seeded(77);
    let key = SecretKey::generate(layer.params(), &mut rng).unwrap();
    let public = key.public_key(&Seed([9; 16]), &mut rng).unwrap();
    let rotations = key.rotation_keys(&[], false, &Seed([8; 16]), &mut rng).unwrap();
    let keys = ServerKeys { public, rotations };
    run_tampered(
        tamper,
        |ch| {
            let mut rng = Random::seeded(78);
            let worker = &mut Worker { rng: &mut rng, threads: 1 };
            client(ch, layer, &key, &case.x[0], worker)
        },
        |ch| {
            let mut rng = Random::seeded(seed);
            let worker = &mut Worker { rng: &mut rng, threads: 1 };
            server(ch, layer, &keys, &case.weights, &case.x[1], worker)
        },
    )
}

/// The largest error of a run.
fn check(case: &Case) -> f64 {
    let (ours, theirs) = run(case, 79, None);
    assert_eq!(ours.cost, case.layer.cost());
    assert_eq!(theirs.cost, case.layer.cost());
    let (ours, theirs) = (ours.value.unwrap(), theirs.value.unwrap());
    let sums = ours.iter().zip(theirs.iter()).map(|(a, b)| a + b);
    let errors = sums.zip(&case.want).map(|(sum, want)| (sum - want).unsigned_abs());
    let (largest, bound) = (errors.max().unwrap_or(0) as f64, case.layer.error());
    assert!(largest <= bound, "{largest} of {bound}, {}", case.layer.describe());
    largest
}

/// Results are near those of integers; on single pixels, where nothing is rounded, the same.
#[test]
fn results_are_within_the_stated_error() {
    for conv in [
        conv([1, 5], [28, 28], 5, 1, 0),
        conv([5, 7], [4, 4], 3, 1, 1),
        conv([20, 3], [14, 14], 3, 2, 1),
        Conv { padding: [0, 1, 3, 2], ..conv([2, 3], [7, 5], 3, 2, 0) },
        conv([20, 11], [5, 5], 5, 1, 0),
        Conv { groups: 3, ..conv([6, 9], [5, 5], 3, 1, 1) },
    ] {
        check(&case(layer(&conv), &conv, 1 << 20));
    }
    for conv in [Conv::fully_connected(300, 20), Conv::fully_connected(5000, 3)] {
        let plan = layer(&conv);
        assert_eq!(plan.error(), 0.0);
        check(&case(plan, &conv, 1 << 24));
    }
}

/// Narrow masks leave bits for fractions.
#[test]
fn fractions_make_results_exact() {
    let conv = conv([3, 4], [8, 8], 3, 1, 1);
    let bits = |hidden| {
        let layer = Layer::new(&conv, 8, 19, AcceptLeakage::hiding_bits(hidden)).unwrap();
        (layer.fractions.iter().sum::<u32>(), check(&case(layer, &conv, 0)))
    };
    let (narrow, wide) = (bits(1), bits(16));
    assert!(narrow.0 > wide.0 + 4 && narrow.1 < wide.1, "{narrow:?} {wide:?}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let conv = conv([2, 2], [4, 4], 3, 1, 1);
    let leakage = AcceptLeakage::hiding_bits;
    for (held, plain, hidden, want) in
        [(8, 22, 30, "no fraction bits"), (23, 22, 8, "accumulators"), (8, 51, 0, "accumulators")]
    {
        let refused = Layer::new(&conv, held, plain, leakage(hidden)).unwrap_err().to_string();
        assert!(refused.contains(want), "{refused}");
    }
    assert!(Layer::new(&conv, 8, 22, leakage(u32::MAX)).is_err());
    let plan = layer(&conv);
    assert!(ServerWeights::new(&plan, &[0; 35], &[0; 2], &mut 0).is_err());
    let mut wrong = case(plan.clone(), &conv, 0);
    wrong.x[0][7] = i64::MIN;
    let (ours, _) = run(&wrong, 1, None);
    assert!(matches!(ours.value, Err(Error::Misuse(_))) && ours.frames.is_empty());
    let mut wrong = case(plan, &conv, 0);
    let other = Conv { out_channels: 3, ..conv };
    wrong.weights = case(layer(&other), &other, 0).weights;
    assert!(matches!(run(&wrong, 1, None).1.value, Err(Error::Misuse(_))));
}

#[test]
fn tampered_frames_are_noticed_or_harmless() {
    let conv = conv([2, 2], [4, 4], 3, 1, 0);
    let case = case(layer(&conv), &conv, 1 << 24);
    tampering_is_noticed_or_harmless(|tamper| run(&case, 79, tamper));
}

/// The image has four rows and columns: its transform rounds nowhere but where it is told to.
#[test]
fn transcripts_are_pinned() {
    let conv = conv([2, 2], [4, 4], 3, 1, 0);
    pinned("falcon", &run(&case(layer(&conv), &conv, 0), 79, None));
}
