//! The circuit against its clear integers, those against floating point, both parties.

use ring::word::{mask, signed};
use ring::{Modulus, Random};

use super::*;
use crate::garbled::prepare_cost;
use crate::testing::both;

/// Classes, decimals, width of a logit and its scale.
const SHAPES: [(usize, u32, u32, f64); 6] = [
    (10, 2, 16, 1.0 / 512.0),
    (10, 4, 20, 1.0 / 20_000.0),
    (100, 2, 16, 1.0 / 700.0),
    (100, 4, 24, 1.0 / 65_536.0),
    (1000, 2, 12, 1.0 / 64.0),
    (1000, 4, 20, 1.0 / 16_384.0),
];

fn plan((classes, digits, width, scale): (usize, u32, u32, f64)) -> Plan {
    Plan::new(classes, Ring::Power(width + 3), width, scale, digits).unwrap()
}

/// Probability of the largest logit in floating point.
fn floating(logits: &[i64], scale: f64) -> f64 {
    let top = logits.iter().max().copied().unwrap_or_default();
    1.0 / logits.iter().map(|x| ((x - top) as f64 * scale).exp()).sum::<f64>()
}

/// Logits of many kinds: near ties, a few contenders, all alike, all just inside or just
/// outside of what is dropped.
fn logits(
    rng: &mut Random,
    kind: u64,
    (classes, digits, width, scale): (usize, u32, u32, f64),
) -> Vec<i64> {
    let top = 1i64 << (width - 1);
    let uniform = |rng: &mut Random, spread: f64| {
        let steps = (spread / scale) as i64;
        (rng.word() % (2 * steps.max(1) as u64 + 1)) as i64 - steps
    };
    let edge = ((2 * 10i64.pow(digits) - 1) as f64 * (classes - 1) as f64).ln();
    let mut values: Vec<i64> = (0..classes)
        .map(|_| match kind % 6 {
            0 => signed(rng.word(), width),
            1 => uniform(rng, 0.5),
            2 => uniform(rng, 8.0),
            3 => (0..6).map(|_| uniform(rng, 1.5)).sum(),
            4 => -((edge / scale) as i64) + uniform(rng, 0.2),
            _ => -(edge * 0.9 / scale) as i64,
        })
        .map(|x| x.clamp(-top, top - 1))
        .collect();
    if kind % 6 > 3 {
        values[(rng.word() % classes as u64) as usize] = 0;
    }
    values
}

/// The largest error of `count` vectors, which no bound of the plan exceeds.
fn largest_error(shape: (usize, u32, u32, f64), count: u64) -> f64 {
    let (plan, mut rng) = (plan(shape), Random::seeded(101));
    let mut worst = 0.0f64;
    for kind in 0..count {
        let logits = logits(&mut rng, kind, shape);
        let (label, word) = clear(&plan, &logits).unwrap();
        assert_eq!(Some(&logits[label]), logits.iter().max());
        let error = (plan.probability(word) - floating(&logits, shape.3)).abs();
        worst = worst.max(error);
    }
    assert!(worst <= 10f64.powi(-(shape.1 as i32)), "{shape:?}: {worst}");
    worst
}

#[test]
fn probabilities_keep_their_accuracy() {
    for shape in SHAPES {
        largest_error(shape, 600_000 / shape.0 as u64 / u64::from(shape.1));
    }
}

/// 10,000 vectors of each shape, and how much of the bound they use.
#[test]
#[ignore = "the long form of the test above"]
#[allow(clippy::print_stdout)]
fn ten_thousand_vectors_keep_their_accuracy() {
    for shape in SHAPES {
        let used = largest_error(shape, 10_000) * 10f64.powi(shape.1 as i32);
        println!("{shape:?}: {used:.3} of the bound, {:?}", plan(shape).demand());
    }
}

/// 64 differences at a time through the circuit, without garbling.
#[test]
fn the_circuit_computes_its_clear_integers() {
    let mut rng = Random::seeded(102);
    for shape in SHAPES {
        let plan = plan(shape);
        let (exponent, width) = (&plan.exponent, shape.2);
        let demand = plan.terms.demand();
        let circuit = demand.circuits[0].batch().circuit();
        let one = exponent.one();
        for turn in 0..40 {
            let small = if turn % 2 == 0 { width } else { 1 + turn % width };
            let mut differences = rng.uniform(64, small);
            differences[..3].copy_from_slice(&[0, 1, mask(width)]);
            let masks = rng.uniform(64, width);
            let planes = |words: &dyn Fn(usize) -> u64| -> Vec<u64> {
                let bit = |bit| (0..64).map(|at| (words(at) >> bit & 1) << at).sum();
                (0..width).map(bit).collect()
            };
            let ours = planes(&|at| differences[at].wrapping_sub(masks[at]));
            let outputs = circuit.run_many(&ours, &planes(&|at| masks[at]));
            for (difference, term) in differences.iter().zip(outputs[0]) {
                assert_eq!(exponent.clear(*difference), term as u64, "{shape:?} {difference}");
                assert!(term as u64 <= one);
            }
        }
    }
}

/// Every difference of a small shape: terms are off by no more than a step and `error`.
#[test]
fn every_term_is_as_exact_as_said() {
    for shape in [(10, 2, 14, 1.0 / 1000.0), (1000, 3, 12, 1.0 / 100.0), (3, 1, 6, 1.0)] {
        let plan = plan(shape);
        let exponent = &plan.exponent;
        let step = 2.0 / 10f64.powi(shape.1 as i32);
        for difference in 0..1u64 << shape.2 {
            let (x, one) = (difference as f64 * shape.3, exponent.one() as f64);
            let term = exponent.clear(difference) as f64 / one;
            let edge = ((2.0 * 10f64.powi(shape.1 as i32) - 1.0) * (shape.0 - 1) as f64).ln();
            let (low, high) = ((-x - step / 2.0).exp(), (-x + step / 2.0).exp());
            let low = if x >= edge { 0.0 } else { low };
            let error = exponent.error();
            assert!((low - error..=high + error).contains(&term), "{shape:?} {difference}: {term}");
        }
    }
}

fn play(plan: &Plan, rng: &mut Random, from: Ring, logits: &[i64]) -> (u64, u64) {
    let ours: Vec<u64> = logits.iter().map(|_| from.draw(rng.block())).collect();
    let theirs = logits.iter().zip(&ours).map(|(x, c)| from.subtract(from.of_signed(*x), *c));
    let server = Share::new(theirs.collect(), from.bits());
    let client = Share::new(ours, from.bits());
    let (c, s) = both(
        rng,
        &plan.demand(),
        |ch, ots| run(ch, plan, &client, ots),
        |ch, ots| run(ch, plan, &server, ots),
    );
    assert_eq!((c.cost, s.cost), (plan.cost(), plan.cost()));
    let (ours, theirs) = (c.value.unwrap(), s.value.unwrap());
    let open = |a: &Share, b: &Share| a.words()[0].wrapping_add(b.words()[0]) & mask(a.bits());
    (open(&ours.0, &theirs.0), open(&ours.1, &theirs.1))
}

#[test]
fn both_parties_compute_the_clear_integers() {
    let mut rng = Random::seeded(103);
    for (shape, from, count) in [
        (SHAPES[0], Ring::Power(16), 60),
        (SHAPES[1], Ring::Power(23), 60),
        (SHAPES[0], Ring::Prime(Modulus::new(1_032_193).unwrap()), 60),
        (SHAPES[3], Ring::Prime(Modulus::new(1_316_638_721).unwrap()), 12),
        (SHAPES[2], Ring::Power(19), 12),
        (SHAPES[4], Ring::Power(13), 4),
    ] {
        let (classes, digits, width, scale) = shape;
        let plan = Plan::new(classes, from, width, scale, digits).unwrap();
        for kind in 0..count {
            let logits = logits(&mut rng, kind, shape);
            let (label, word) = play(&plan, &mut rng, from, &logits);
            assert_eq!((label as usize, word), clear(&plan, &logits).unwrap());
            let error = (plan.probability(word) - floating(&logits, scale)).abs();
            assert!(error <= 10f64.powi(-(digits as i32)));
        }
    }
}

/// FALCON, table 4: megabytes in all for 10, 100 and 1000 classes.
#[test]
fn bytes_stay_below_the_published() {
    for (classes, published) in [(10, 996_000), (100, 9_960_000), (1000, 99_600_000)] {
        for digits in [2, 4] {
            let scale = 1.0 / 20_000.0;
            let prime = Ring::Prime(Modulus::new(1_316_638_721).unwrap());
            for (from, width) in [(Ring::Power(24), 20), (prime, 20)] {
                let plan = Plan::new(classes, from, width, scale, digits).unwrap();
                let preprocess = prepare_cost(&plan.demand().circuits);
                let bytes = preprocess.then(plan.cost()).bytes();
                assert!(bytes < published, "{classes} {digits} {from:?}: {bytes}");
                assert_eq!(plan.cost().rounds, 4);
            }
        }
    }
}

#[test]
fn equal_logits_and_single_winners() {
    for shape in SHAPES {
        let plan = plan(shape);
        let (label, word) = clear(&plan, &vec![7; shape.0]).unwrap();
        let tolerance = 10f64.powi(-(shape.1 as i32));
        assert!((plan.probability(word) - 1.0 / shape.0 as f64).abs() < tolerance);
        assert_eq!(label, 0);
        let mut lone = vec![-(1i64 << (shape.2 - 1)); shape.0];
        lone[shape.0 - 1] = mask(shape.2 - 1) as i64;
        let (label, word) = clear(&plan, &lone).unwrap();
        assert_eq!((label, word), (shape.0 - 1, 1 << plan.fraction_bits()));
    }
}

#[test]
fn other_numbers_are_refused() {
    let new = |classes, width, scale, digits| {
        Plan::new(classes, Ring::Power(16), width, scale, digits).is_err()
    };
    assert!(!new(10, 16, 0.01, 2));
    assert!(new(1, 16, 0.01, 2) && new(1 << 17, 16, 0.01, 2));
    assert!(new(10, 17, 0.01, 2) && new(10, 1, 0.01, 2));
    assert!(new(10, 16, 0.01, 0) && new(10, 16, 0.01, 7));
    assert!(new(10, 16, 0.0, 2) && new(10, 16, -1.0, 2) && new(10, 16, f64::NAN, 2));
    let prime = Ring::Prime(Modulus::new(65_537).unwrap());
    assert!(
        Plan::new(10, prime, 17, 0.01, 2).is_err() && Plan::new(10, prime, 16, 0.01, 2).is_ok()
    );
    let plan = plan(SHAPES[0]);
    assert!(clear(&plan, &[1, 2]).is_err());
}
