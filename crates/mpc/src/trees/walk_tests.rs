//! Walks through pools against the pool in the clear.

use super::tests::check;
use super::*;
use crate::testing::{both, split};
use graph::ops::{Pool, Walk};
use ring::Random;
use ring::word::mask;

/// A pool whose trees are random, with slots in a random order: each step of a tree's walk has one
/// or two slots, and the last ones pad the pool.
fn pool(rng: &mut Random, sizes: &Walk, values: usize, bits: u32) -> Vec<i64> {
    let mut order: Vec<i64> = (0..sizes.slots as i64).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, (rng.word() % (last as u64 + 1)) as usize);
    }
    let mut free = order.into_iter();
    let mut next = [0, 1].map(|_| vec![sizes.slots as i64; sizes.slots]);
    let mut roots = Vec::new();
    let mut spare = sizes.slots - sizes.trees * sizes.depth as usize;
    for tree in 0..sizes.trees {
        let root = free.next().unwrap();
        roots.push(root);
        let mut here = vec![root];
        for step in 1..=sizes.depth {
            let end = vec![(sizes.slots + tree) as i64];
            let mut below = if step == sizes.depth { end } else { vec![free.next().unwrap()] };
            if step < sizes.depth && spare > 0 && rng.word().is_multiple_of(2) {
                spare -= 1;
                below.push(free.next().unwrap());
            }
            for slot in &here {
                for edges in &mut next {
                    edges[*slot as usize] = below[rng.word() as usize % below.len()];
                }
            }
            here = below;
        }
    }
    let value = |word: u64| (word & mask(bits)) as i64 - (1 << (bits - 1));
    let increments = rng.uniform(2 * sizes.slots * values, 64);
    let increments = increments.into_iter().map(value).collect();
    let [left, right] = next;
    [left, right, increments, roots].concat()
}

/// Rows of tests' values, pools and randomness, and the values that walks reach.
fn rows(rng: &mut Random, count: usize, shape: Shape) -> (Vec<i64>, Vec<i64>) {
    let ops::Paths::Walk(sizes) = shape.paths else { return Default::default() };
    let (mut rows, mut want) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let half = 1i64 << (shape.bits - 1);
        let tests = rng.uniform(shape.tests(), shape.bits);
        let tests: Vec<i64> = tests.into_iter().map(|word| word as i64 - half).collect();
        let words = pool(rng, &sizes, shape.values, 5);
        let walks = Pool::new(&sizes, shape.values, &words).unwrap();
        walks.steps(&sizes).unwrap();
        for tree in 0..sizes.trees {
            let right = |slot: usize| {
                let compared = &tests[slot * shape.comparisons..][..shape.comparisons];
                compared.iter().filter(|y| **y >= 0).count() % 2 == 1
            };
            want.extend(walks.leaf(&sizes, [tree, shape.values], right));
        }
        let fresh = rng.uniform(shape.fresh(), 8).into_iter().map(|byte| byte as i64);
        rows.extend(tests.into_iter().chain(words.iter().copied()).chain(fresh));
    }
    (rows, want)
}

fn shape([trees, slots, depth]: [usize; 3], values: usize, bits: u32, out_bits: u32) -> Shape {
    let sizes = Walk { trees, slots, depth: depth as u32 };
    Shape { paths: ops::Paths::Walk(sizes), values, comparisons: 1, bits, out_bits }
}

fn shapes() -> Vec<Shape> {
    vec![
        shape([1, 1, 1], 1, 38, 32),
        shape([1, 3, 1], 2, 12, 12),
        shape([1, 128, 128], 1, 20, 16),
        shape([3, 64, 8], 1, 38, 32),
        shape([7, 113, 16], 10, 38, 16),
        shape([20, 300, 4], 3, 64, 64),
        Shape { comparisons: 3, ..shape([4, 70, 12], 2, 38, 32) },
    ]
}

#[test]
fn walks_reach_the_leaves_of_their_trees() {
    let mut rng = Random::seeded(84);
    for shape in shapes() {
        for count in [1, 2, 9] {
            let plan = Trees::new(count, shape, Radix::Four).unwrap();
            let (values, want) = rows(&mut rng, count, shape);
            check(&mut rng, &plan, shape, &values, &want);
        }
    }
}

#[test]
fn other_pools_are_refused() {
    for shape in [
        shape([0, 16, 4], 1, 38, 32),
        shape([5, 16, 4], 1, 38, 32),
        shape([1, 256, 129], 1, 38, 32),
        shape([1, 256, 0], 1, 38, 32),
        shape([1, 256, 4], 0, 38, 32),
        shape([1, 256, 4], 1 << 13, 38, 32),
        shape([1, 256, 4], 1, 7, 7),
        shape([1, 256, 4], 1, 8, 8),
        shape([1, 1 << 21, 4], 1, 38, 32),
        shape([1, 1 << 20, 4], 100, 38, 32),
        shape([1, usize::MAX, 4], 1, 38, 32),
        shape([usize::MAX, usize::MAX, 1], 1, 38, 32),
    ] {
        assert!(Trees::new(1, shape, Radix::Four).is_err(), "{shape:?}");
    }
}

/// Edges that lead out of the pool are the server's mistake, and walks that do the server's fault.
#[test]
fn edges_out_of_the_pool_are_refused() {
    let mut rng = Random::seeded(85);
    let shape = shape([2, 48, 4], 1, 38, 32);
    let plan = Trees::new(1, shape, Radix::Four).unwrap();
    let (values, _) = rows(&mut rng, 1, shape);
    let inputs = |rng: &mut Random, roots: i64| {
        let (client, server) = split(rng, &values[..48], 38);
        let mut words = values[48..].to_vec();
        let at = words.len() - shape.fresh() - 2;
        words[at] = roots;
        let own = |share: &Share, words: &[i64]| {
            let words = words.iter().map(|word| *word as u64);
            Share::new(share.words().iter().copied().chain(words).collect(), 38)
        };
        let zeros = vec![0; words.len()];
        (own(&client, &zeros), own(&server, &words))
    };
    for root in [48 + 2, i64::from(u32::MAX)] {
        let (client, server) = inputs(&mut rng, root);
        let (c, s) = both(
            &mut rng,
            &plan.demand(),
            |ch, ots| plan.run(ch, &[client], ots).map(|_| ()),
            |ch, ots| plan.run(ch, &[server], ots).map(|_| ()),
        );
        assert!(matches!(s.value, Err(Error::Misuse(_))));
        assert!(c.value.is_err());
    }
    // A root at the tree's end: a place without a slot, which the client finds.
    let (client, server) = inputs(&mut rng, 48);
    let (c, _) = both(
        &mut rng,
        &plan.demand(),
        |ch, ots| plan.run(ch, &[client], ots).map(|_| ()),
        |ch, ots| plan.run(ch, &[server], ots).map(|_| ()),
    );
    assert!(matches!(c.value, Err(Error::Peer { .. })), "{:?}", c.value);
}

/// The size of what both parties send follows from the pool's sizes alone, whatever its trees are.
#[test]
fn pools_of_one_class_have_messages_of_one_length() {
    let mut rng = Random::seeded(86);
    let shape = shape([5, 200, 20], 1, 38, 32);
    let plan = Trees::new(1, shape, Radix::Four).unwrap();
    for _ in 0..4 {
        let (values, want) = rows(&mut rng, 1, shape);
        // The check compares with the plan's cost, which knows the sizes only.
        check(&mut rng, &plan, shape, &values, &want);
    }
}
