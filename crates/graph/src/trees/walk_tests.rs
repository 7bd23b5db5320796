//! Ensembles whose tests share a pool.

use super::tests::{ensemble, grown, plant, shapes, special, walked};
use super::*;
use crate::interpret::interpret;
use crate::ops::Walk;
use ring::Random;

/// A tree in which each test is on the same side of the one before.
fn chain(rng: &mut Random, depth: usize, right: bool) -> Tree {
    let mut tree = grown(rng, [1, 1], [0, 0], 1);
    for node in (0..2 * depth).step_by(2) {
        tree.feature[node] = (rng.word() % 4) as i64;
        tree.threshold[node] = special(rng).to_bits();
        for _ in 0..2 {
            tree.feature.push(-1);
            tree.threshold.push(0);
            tree.missing_left.push(rng.word().is_multiple_of(2));
            tree.left.push(0);
            tree.right.push(0);
            tree.value.push((rng.word() % 2000) as f64 / 512.0 - 1.9);
        }
        // The test that follows is the second one of the new nodes.
        if !right {
            (tree.left[node], tree.right[node]) = (node + 2, node + 1);
        } else {
            (tree.left[node], tree.right[node]) = (node + 1, node + 2);
        }
    }
    tree
}

/// The model of a pool of an ensemble's trees.
fn pooled(ensemble: &Ensemble) -> Model {
    let sizes = [ensemble.features, ensemble.values];
    let grown: Vec<_> =
        ensemble.trees.iter().map(|tree| Grown::new(tree, sizes).unwrap()).collect();
    let tests = grown.iter().map(|tree| tree.tests().len()).sum();
    let depth = grown.iter().map(Grown::depth).max().unwrap();
    let walk = Walk::padded(grown.len(), tests, depth as u32);
    ensemble.padded("auto", &grown, Paths::Walk(walk)).unwrap()
}

fn row(rng: &mut Random, features: usize) -> Vec<f32> {
    let value = |rng: &mut Random| match rng.word() % 8 {
        0 => f32::NAN,
        _ => special(rng),
    };
    (0..features).map(|_| value(rng)).collect()
}

#[test]
fn walks_reach_the_leaves_that_trees_reach() {
    let mut rng = Random::seeded(91);
    let mixed = |rng: &mut Random, values: usize, comparisons: usize| {
        let mut trees = vec![chain(rng, 31, true), chain(rng, 17, false), chain(rng, 0, true)];
        trees.iter_mut().for_each(|tree| {
            let value = tree.value.clone();
            tree.value =
                value.iter().flat_map(|v| (0..values).map(move |at| v + at as f64)).collect();
        });
        let sizes = [[3, 7], [12, 200], [9, 60], [1, 1], [0, 0]];
        trees.extend(sizes.map(|sizes| grown(rng, [4, values], sizes, comparisons)));
        trees
    };
    for [outputs, values] in [[1, 1], [2, 1], [2, 2], [7, 7]] {
        let trees = mixed(&mut rng, values, 1 + outputs % 2 * 2);
        let forest = Ensemble { trees, ..ensemble(&mut rng, 1, [outputs, values]) };
        let model = pooled(&forest);
        let scale = model.graph.tensors[1].format.scale;
        let bound = scale * (forest.trees.len() + 1) as f64 / 2.0 + 1e-12;
        for _ in 0..300 {
            let x = row(&mut rng, 4);
            let keys = model.graph.quantize_input(&x).unwrap();
            let found = interpret(&model, &keys).unwrap();
            for (found, want) in found.iter().zip(walked(&forest, &x)) {
                assert!((*found as f64 * scale - want).abs() <= bound, "{x:?}");
            }
        }
    }
}

#[test]
fn every_small_tree_in_a_pool_for_all_outcomes() {
    for tests in 0..=6usize {
        for shape in shapes(tests) {
            let mut tree = grown(&mut Random::seeded(1), [1, 1], [0, 0], 1);
            tree.feature.clear();
            tree.threshold.clear();
            tree.missing_left.clear();
            tree.left.clear();
            tree.right.clear();
            tree.value.clear();
            plant(&mut tree, &shape, 0, tests);
            let features = tests.max(1);
            let forest = ensemble(&mut Random::seeded(1), 1, [1, 1]);
            let one = Ensemble { features, divisor: 1.0, trees: vec![tree], ..forest };
            let model = pooled(&one);
            let scale = model.graph.tensors[1].format.scale;
            for outcomes in 0..1usize << features {
                let x: Vec<f32> =
                    (0..features).map(|test| ((outcomes >> test) & 1) as f32).collect();
                let keys = model.graph.quantize_input(&x).unwrap();
                let found = interpret(&model, &keys).unwrap()[0] as f64 * scale;
                assert!((found - walked(&one, &x)[0]).abs() <= scale, "{shape:?} {x:?}");
            }
        }
    }
}

#[test]
fn sizes_follow_from_totals_and_are_rounded_by_a_sixteenth() {
    for tests in [1, 15, 16, 17, 1000, 205_428, 411_825, 1 << 19] {
        for (trees, depth) in [(1, 1), (1, 128), (969, 29), (100, 16)] {
            let walk = Walk::padded(trees, tests, depth);
            let least = tests + trees * walk.depth as usize;
            walk.check().unwrap();
            assert!(walk.depth >= depth && walk.depth < depth + 4);
            assert!(walk.slots >= least && walk.slots <= (least + least / 16).max(16), "{walk:?}");
        }
    }
    // One total, other trees.
    let mut rng = Random::seeded(92);
    let forest = |depths: [usize; 2], rng: &mut Random| {
        let trees = depths.map(|depth| chain(rng, depth, depth % 2 == 0)).to_vec();
        pooled(&Ensemble { trees, ..ensemble(rng, 1, [1, 1]) }).graph
    };
    let [one, other] = [[20, 3], [19, 4]].map(|depths| forest(depths, &mut rng));
    assert_eq!(one.nodes[0].op, other.nodes[0].op);
}

#[test]
fn long_thin_trees_are_walked_through() {
    let mut rng = Random::seeded(95);
    let paths = |rng: &mut Random, depth| {
        let trees = (0..20).map(|_| chain(rng, depth, true)).collect();
        let model = Ensemble { trees, ..ensemble(rng, 1, [1, 1]) }.lower("auto").unwrap();
        model.graph.nodes[0].op.get::<Trees>().unwrap().paths
    };
    assert!(matches!(paths(&mut rng, 8), Paths::Walk(_)));
    assert_eq!(paths(&mut rng, 5), Paths::Table(5));
}

#[test]
fn trees_that_are_too_deep_are_refused_with_advice() {
    let mut rng = Random::seeded(93);
    for (depth, runs) in [(128, true), (129, false)] {
        let trees = vec![chain(&mut rng, depth, true)];
        let forest = Ensemble { trees, ..ensemble(&mut rng, 1, [1, 1]) };
        match forest.lower("auto") {
            Ok(model) => assert!(runs && model.graph.nodes.len() == 1),
            Err(error) => assert!(!runs && error.to_string().contains("max_depth"), "{error}"),
        }
    }
}

#[test]
fn hostile_pools_are_refused() {
    let mut rng = Random::seeded(94);
    let trees = vec![chain(&mut rng, 9, true), chain(&mut rng, 3, false)];
    let sound = pooled(&Ensemble { trees, ..ensemble(&mut rng, 1, [1, 1]) });
    verify_model(&sound).unwrap();
    let Paths::Walk(walk) = sound.graph.nodes[0].op.get::<Trees>().unwrap().paths else {
        unreachable!("no pool")
    };
    let slots = walk.slots;
    let bias = &sound.weights[&0].bias;
    let root = bias[5 * slots] as usize;
    // Where the edges of the first root are, and the roots.
    let (left, right, roots) = (slots + root, 2 * slots + root, 5 * slots);
    let second = bias[roots + 1];
    for (place, value) in [
        (left, root as i64),
        (left, second),
        (right, second),
        (left, slots as i64),
        (left, -1),
        (right, i64::MAX),
        (left, i64::MIN),
        (roots, second),
        (roots, slots as i64),
        (roots, -1),
        (roots + 1, i64::MAX),
    ] {
        let mut broken = sound.clone();
        broken.weights.get_mut(&0).unwrap().bias[place] = value;
        assert!(verify_model(&broken).is_err(), "{place} {value}");
    }
    let sizes = |trees, slots, depth| {
        let mut graph = sound.graph.clone();
        let paths = Paths::Walk(Walk { trees, slots, depth });
        graph.nodes[0].op = Trees { trees: 2, paths, values: 1, comparisons: 1 }.into();
        graph
    };
    for graph in [
        sizes(2, 0, 12),
        sizes(2, 23, 12),
        sizes(2, usize::MAX, 12),
        sizes(2, 32, 0),
        sizes(2, 1 << 20, 129),
        sizes(2, 1 << 20, u32::MAX),
        sizes(3, slots, 4),
        sizes(0, slots, 4),
    ] {
        assert!(crate::verify(&graph).is_err(), "{:?}", graph.nodes);
    }
}
