//! Trees of all layouts against their walk in the clear.

use super::*;
use crate::testing::{computed, split};
use ring::Random;
use ring::word::mask;

/// Checks that trees reach `want` from rows whose tests are shared and whose leaves are the
/// server's, for the cost that the plan says.
pub(super) fn check(
    rng: &mut Random,
    plan: &dyn Protocol,
    shape: Shape,
    rows: &[i64],
    want: &[i64],
) {
    let (each, tests, bits) = (shape.inputs(), shape.tests(), shape.bits);
    let is_test = |at: usize| at % each < tests;
    let (client, server) = split(rng, rows, bits);
    let own = |words: &[u64], leaf: &dyn Fn(usize) -> u64| {
        let words = words.iter().enumerate();
        let words = words.map(|(at, word)| if is_test(at) { *word } else { leaf(at) });
        Share::new(words.collect(), bits)
    };
    let client = own(client.words(), &|_| 0);
    let server = own(server.words(), &|at| rows[at] as u64);
    let run = |ch: &mut Channel, x: &Share, ots| plan.run(ch, std::slice::from_ref(x), ots);
    let got = computed(rng, (plan.demand(), plan.cost()), [&client, &server], run);
    assert!(got == want, "{plan:?}");
}

/// Rows of tests' values and leaves, and the values that the trees reach.
fn rows(rng: &mut Random, count: usize, shape: Shape) -> (Vec<i64>, Vec<i64>) {
    let (mut rows, mut want) = (Vec::new(), Vec::new());
    let half = 1i64 << (shape.bits - 1);
    for _ in 0..count {
        let test = |rng: &mut Random| match rng.word() % 6 {
            0 => 0,
            1 => -1,
            2 => half - 1,
            3 => -half,
            _ => (rng.word() & mask(shape.bits)) as i64 - half,
        };
        let tests: Vec<i64> = (0..shape.tests()).map(|_| test(rng)).collect();
        let leaf = (shape.out_bits - 1).min(40);
        let value = |word: &u64| *word as i64 - (1 << (leaf - 1));
        let leaves = rng.uniform(shape.paths.leaves() * shape.values, leaf);
        let leaves: Vec<i64> = leaves.iter().map(value).collect();
        let compared = |test: usize| &tests[test * shape.comparisons..][..shape.comparisons];
        let right = |test: usize| compared(test).iter().filter(|y| **y >= 0).count() % 2 == 1;
        let reached = shape.paths.leaf(right);
        want.extend_from_slice(&leaves[reached * shape.values..][..shape.values]);
        rows.extend(tests.into_iter().chain(leaves));
    }
    (rows, want)
}

fn shapes() -> Vec<Shape> {
    let shape =
        |paths, values, bits, out_bits| Shape { paths, values, comparisons: 1, bits, out_bits };
    vec![
        shape(ops::Paths::Complete(1), 1, 12, 12),
        shape(ops::Paths::Complete(2), 3, 38, 32),
        shape(ops::Paths::Complete(6), 1, 38, 32),
        shape(ops::Paths::Complete(8), 1, 20, 9),
        shape(ops::Paths::Table(1), 1, 38, 32),
        shape(ops::Paths::Table(3), 2, 38, 17),
        shape(ops::Paths::Table(7), 1, 64, 64),
        Shape { comparisons: 2, ..shape(ops::Paths::Complete(3), 1, 38, 32) },
        Shape { comparisons: 5, ..shape(ops::Paths::Table(4), 3, 38, 32) },
    ]
}

#[test]
fn trees_reach_the_leaves_of_their_walk() {
    let mut rng = Random::seeded(81);
    for shape in shapes() {
        for count in [1, 5, 70] {
            let plan = Trees::new(count, shape, Radix::Four).unwrap();
            let (values, want) = rows(&mut rng, count, shape);
            check(&mut rng, &plan, shape, &values, &want);
        }
    }
}

#[test]
fn stages_reach_the_leaves_of_a_walk() {
    let mut rng = Random::seeded(84);
    for depth in 2..=8 {
        let paths = ops::Paths::Complete(depth);
        let shape = Shape { paths, values: 1, comparisons: 1, bits: 38, out_bits: 32 };
        for (count, values) in [(1, 1), (70, 2)] {
            let shape = Shape { values, comparisons: values, ..shape };
            for parts in 2..=depth {
                let heights: Vec<u32> = staged::heights(depth, parts).collect();
                let plan = Staged::of(count, shape, Radix::Four, &heights);
                let (values, want) = rows(&mut rng, count, shape);
                check(&mut rng, &plan, shape, &values, &want);
            }
        }
    }
}

#[test]
fn stages_are_for_many_complete_trees() {
    let shape = |paths| Shape { paths, values: 1, comparisons: 1, bits: 38, out_bits: 32 };
    let way = |count, paths| Way::fastest(count, shape(paths)).unwrap();
    assert!(matches!(way(1, ops::Paths::Complete(6)), Way::AtOnce(_)));
    assert!(matches!(way(20_000, ops::Paths::Complete(6)), Way::Stages(_)));
    assert!(matches!(way(20_000, ops::Paths::Complete(1)), Way::AtOnce(_)));
    assert!(matches!(way(20_000, ops::Paths::Table(7)), Way::AtOnce(_)));
    for paths in [ops::Paths::Complete(1), ops::Paths::Table(7), ops::Paths::Complete(9)] {
        assert!(Staged::new(1, shape(paths), Radix::Four).is_err());
    }
}

#[test]
fn every_outcome_of_small_trees() {
    let mut rng = Random::seeded(82);
    for paths in [ops::Paths::Complete(3), ops::Paths::Table(7)] {
        let shape = Shape { paths, values: 1, comparisons: 1, bits: 9, out_bits: 9 };
        let (mut values, mut want) = (Vec::new(), Vec::new());
        for outcomes in 0..128i64 {
            values.extend((0..7).map(|test| if (outcomes >> test) & 1 == 1 { 200 } else { -1 }));
            values.extend((0..paths.leaves()).map(|leaf| leaf as i64));
            want.push(paths.leaf(|test| (outcomes >> test) & 1 == 1) as i64);
        }
        let plan = Trees::new(128, shape, Radix::Sixteen).unwrap();
        check(&mut rng, &plan, shape, &values, &want);
        if let Ok(plan) = Staged::new(128, shape, Radix::Four) {
            check(&mut rng, &plan, shape, &values, &want);
        }
    }
}

#[test]
fn other_sizes_are_refused() {
    for (paths, bits, out_bits) in [
        (ops::Paths::Complete(0), 38, 32),
        (ops::Paths::Complete(9), 38, 32),
        (ops::Paths::Table(8), 38, 32),
        (ops::Paths::Table(3), 38, 39),
        (ops::Paths::Table(3), 1, 1),
        (ops::Paths::Table(3), 65, 1),
    ] {
        let shape = Shape { paths, values: 1, comparisons: 1, bits, out_bits };
        assert!(Trees::new(1, shape, Radix::Four).is_err());
    }
    let paths = ops::Paths::Table(2);
    let shape = Shape { paths, values: 1, comparisons: 1, bits: 9, out_bits: 9 };
    let plan = Trees::new(2, shape, Radix::Four).unwrap();
    let (x, _) = split(&mut Random::seeded(83), &[0; 3], 9);
    let inputs = [x];
    let refused = |ch: &mut Channel| plan.run(ch, &inputs, Correlations::default()).is_err();
    let (c, s) = wire::testing::run_pair(|ch| refused(ch), |ch| refused(ch));
    assert!(c.value && s.value);
}
