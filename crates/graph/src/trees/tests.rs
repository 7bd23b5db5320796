//! Ensembles against a walk of their trees.

use super::*;
use crate::interpret::interpret;
use ring::Random;

/// A value of the first result by a walk of every tree in floating-point numbers.
pub(super) fn walked(ensemble: &Ensemble, x: &[f32]) -> Vec<f64> {
    let mut sums = ensemble.base.clone();
    for (index, tree) in ensemble.trees.iter().enumerate() {
        let mut node = 0;
        while tree.feature[node] >= 0 {
            let value = x[tree.feature[node] as usize];
            let further = tree.further.iter().filter(|(at, _)| *at == node).map(|(_, bits)| *bits);
            let thresholds = [tree.threshold[node]].into_iter().chain(further).map(f32::from_bits);
            let above = |t: &f32| value > *t || (!ensemble.ties_left && value == *t);
            let left = match value.is_nan() {
                true => tree.missing_left[node],
                false => thresholds.filter(above).count() % 2 == 0,
            };
            node = if left { tree.left[node] } else { tree.right[node] };
        }
        for at in 0..ensemble.values {
            let output = (index * ensemble.values + at) % ensemble.outputs;
            sums[output] += tree.value[node * ensemble.values + at];
        }
    }
    sums.iter().map(|sum| sum / ensemble.divisor).collect()
}

/// A tree grown at random to a depth of at most `depth` and at most `tests` tests.
pub(super) fn grown(
    rng: &mut Random,
    [features, values]: [usize; 2],
    [depth, tests]: [usize; 2],
    comparisons: usize,
) -> Tree {
    let mut tree = Tree {
        feature: vec![-1],
        threshold: vec![0],
        missing_left: vec![false],
        left: vec![0],
        right: vec![0],
        value: vec![],
        further: vec![],
    };
    let mut waiting = vec![(0, 0)];
    let mut left = tests;
    while let Some((node, level)) = waiting.pop() {
        if level == depth || left == 0 || rng.word().is_multiple_of(4) {
            continue;
        }
        left -= 1;
        let next = tree.feature.len();
        tree.feature[node] = (rng.word() % features as u64) as i64;
        tree.threshold[node] = special(rng).to_bits();
        tree.missing_left[node] = rng.word().is_multiple_of(2);
        let further = if comparisons == 1 { 0 } else { rng.word() as usize % comparisons };
        tree.further.extend((0..further).map(|_| (node, special(rng).to_bits())));
        (tree.left[node], tree.right[node]) = (next, next + 1);
        for child in [next, next + 1] {
            tree.feature.push(-1);
            tree.threshold.push(0);
            tree.missing_left.push(false);
            tree.left.push(0);
            tree.right.push(0);
            waiting.insert(0, (child, level + 1));
        }
    }
    let count = tree.feature.len() * values;
    tree.value = (0..count).map(|_| (rng.word() % 2000) as f64 / 512.0 - 1.9).collect();
    tree
}

/// Numbers that come close to each other, and the ends of their range.
pub(super) fn special(rng: &mut Random) -> f32 {
    let values = [0.0, 1.0, 0.1, 1e-45, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY];
    let value = values[(rng.word() % values.len() as u64) as usize];
    let value = match rng.word() % 3 {
        0 => value,
        1 if value.is_finite() => value.next_up(),
        _ => value.next_down(),
    };
    if rng.word().is_multiple_of(2) { -value } else { value }
}

pub(super) fn ensemble(rng: &mut Random, trees: usize, [outputs, values]: [usize; 2]) -> Ensemble {
    let sizes = [[5, 31], [7, 7], [1, 1]][trees % 3];
    let comparisons = [1, 3][trees % 2];
    let trees = (0..trees * outputs).map(|_| grown(rng, [4, values], sizes, comparisons)).collect();
    Ensemble {
        name: "forest".into(),
        features: 4,
        outputs,
        labels: Vec::new(),
        link: None,
        values,
        base: (0..outputs).map(|at| at as f64 - 0.3).collect(),
        divisor: 3.0,
        ties_left: rng.word().is_multiple_of(2),
        trees,
    }
}

#[test]
fn the_interpreter_reaches_the_leaves_that_a_walk_reaches() {
    let mut rng = Random::seeded(71);
    for (trees, sizes) in [(1, [1, 1]), (2, [1, 1]), (3, [3, 1]), (6, [2, 2]), (7, [1, 1])] {
        let ensemble = ensemble(&mut rng, trees, sizes);
        let model = ensemble.lower("auto").unwrap();
        let scale = model.graph.tensors[1].format.scale;
        let bound = scale * (ensemble.trees.len() + 1) as f64 / 2.0 + 1e-12;
        for _ in 0..400 {
            let value = |rng: &mut Random| match rng.word() % 8 {
                0 => f32::NAN,
                _ => special(rng),
            };
            let x: Vec<f32> = (0..4).map(|_| value(&mut rng)).collect();
            let keys = model.graph.quantize_input(&x).unwrap();
            let found = interpret(&model, &keys).unwrap();
            for (found, want) in found.iter().zip(walked(&ensemble, &x)) {
                assert!((*found as f64 * scale - want).abs() <= bound, "{x:?}");
            }
        }
    }
}

/// Every shape of a tree with so many tests, each as the numbers of tests on the left of its nodes,
/// parents before children.
pub(super) fn shapes(tests: usize) -> Vec<Vec<usize>> {
    if tests == 0 {
        return vec![Vec::new()];
    }
    let split = |left: usize| {
        let pairs = shapes(left).into_iter().flat_map(move |below| {
            shapes(tests - 1 - left).into_iter().map(move |other| (below.clone(), other))
        });
        pairs.map(move |(below, other)| [vec![left], below, other].concat())
    };
    (0..tests).flat_map(split).collect()
}

/// Adds the part of a shape with so many tests; test i of the shape tests feature i.
pub(super) fn plant(tree: &mut Tree, shape: &[usize], first: usize, tests: usize) -> usize {
    let node = tree.feature.len();
    tree.feature.push(if tests == 0 { -1 } else { first as i64 });
    tree.threshold.push(0.5f32.to_bits());
    tree.missing_left.push(false);
    tree.left.push(0);
    tree.right.push(0);
    tree.value.push(node as f64);
    if tests > 0 {
        let below = shape[first];
        tree.left[node] = plant(tree, shape, first + 1, below);
        tree.right[node] = plant(tree, shape, first + 1 + below, tests - 1 - below);
    }
    node
}

#[test]
fn every_tree_of_at_most_seven_tests_for_all_outcomes() {
    for tests in 1..=7usize {
        for shape in shapes(tests) {
            let mut tree = grown(&mut Random::seeded(1), [1, 1], [0, 0], 1);
            tree.feature.clear();
            tree.threshold.clear();
            tree.missing_left.clear();
            tree.left.clear();
            tree.right.clear();
            tree.value.clear();
            plant(&mut tree, &shape, 0, tests);
            let forest = ensemble(&mut Random::seeded(1), 1, [1, 1]);
            let one = Ensemble { features: tests, divisor: 1.0, trees: vec![tree], ..forest };
            let checked = [Grown::new(&one.trees[0], [tests, 1]).unwrap()];
            let depth = checked[0].depth() as u32;
            for paths in [Paths::Table(tests as u32), Paths::Complete(depth)] {
                let model = one.padded("auto", &checked, paths).unwrap();
                let scale = model.graph.tensors[1].format.scale;
                for outcomes in 0..1usize << tests {
                    let x = (0..tests).map(|test| ((outcomes >> test) & 1) as f32);
                    let x: Vec<f32> = x.collect();
                    let keys = model.graph.quantize_input(&x).unwrap();
                    let found = interpret(&model, &keys).unwrap()[0] as f64 * scale;
                    assert!((found - walked(&one, &x)[0]).abs() <= scale, "{shape:?} {x:?}");
                }
            }
        }
    }
}

#[test]
fn layouts_are_chosen_by_the_largest_tree() {
    let mut rng = Random::seeded(72);
    let paths = |count, depth, tests| {
        let mut rng = Random::seeded(5);
        let trees = (0..count).map(|_| grown(&mut rng, [4, 1], [depth, tests], 1)).collect();
        let one = Ensemble { trees, ..ensemble(&mut rng, 1, [1, 1]) };
        one.lower("auto").map(|model| model.graph.nodes[0].op.get::<Trees>().unwrap().paths)
    };
    assert_eq!(paths(40, 2, 3).unwrap(), Paths::Table(3));
    assert_eq!(paths(40, 4, 4).unwrap(), Paths::Table(4));
    assert_eq!(paths(9000, 3, 7).unwrap(), Paths::Complete(3));
    assert_eq!(paths(40, 5, 31).unwrap(), Paths::Complete(5));
    assert!(matches!(paths(40, 12, 200).unwrap(), Paths::Walk(_)));
    assert!(ensemble(&mut rng, 1, [1, 1]).lower("auto").is_ok());
}

#[test]
fn hostile_trees_are_refused() {
    let mut rng = Random::seeded(73);
    let sound = loop {
        let sound = ensemble(&mut rng, 1, [1, 1]);
        if sound.trees[0].feature.len() > 4 {
            break sound;
        }
    };
    assert!(sound.lower("auto").is_ok());
    let broken: [fn(&mut Ensemble); 15] = [
        |e| e.trees[0].further.push((usize::MAX, 0)),
        |e| e.trees[0].further.push((0, f32::NAN.to_bits())),
        |e| {
            let leaf = e.trees[0].feature.len() - 1;
            e.trees[0].further.push((leaf, 0));
        },
        |e| e.trees[0].left[0] = 0,
        |e| e.trees[0].left[0] = e.trees[0].right[0],
        |e| e.trees[0].left[0] = usize::MAX,
        |e| e.trees[0].threshold[0] = f32::NAN.to_bits(),
        |e| e.trees[0].feature[0] = 4,
        |e| e.trees[0].value.iter_mut().for_each(|value| *value = f64::NAN),
        |e| e.trees[0].value.truncate(1),
        |e| e.trees.clear(),
        |e| e.base = vec![f64::INFINITY],
        |e| e.values = 3,
        |e| e.divisor = 0.0,
        |e| e.features = 0,
    ];
    for broken in broken {
        let mut ensemble = sound.clone();
        broken(&mut ensemble);
        assert!(matches!(ensemble.lower("auto"), Err(Error::Misuse(_))), "{ensemble:?}");
    }
    assert!(Ensemble::from_json("{}").is_err());
    let node = (0..sound.trees[0].feature.len()).find(|node| sound.trees[0].feature[*node] >= 0);
    let mut large = sound.clone();
    large.trees[0].further.extend(vec![(node.unwrap(), 0); 1 << 20]);
    assert!(matches!(large.lower("auto"), Err(Error::Unsupported { .. })));
}

#[test]
fn tests_of_features_that_there_are_not_are_refused() {
    let mut rng = Random::seeded(74);
    let mut model = ensemble(&mut rng, 3, [1, 1]).lower("auto").unwrap();
    verify_model(&model).unwrap();
    let features = model.graph.tensors[0].len() as i32;
    for code in [2 * features, -2] {
        model.weights.get_mut(&0).unwrap().weight[0] = code;
        assert!(verify_model(&model).is_err(), "{code}");
    }
}

#[test]
fn codes_name_a_multiplier_and_a_feature() {
    assert_eq!([-1, 0, 1, 6, 7].map(Trees::selected), [(0, 0), (1, 0), (2, 0), (1, 3), (2, 3)]);
}

#[test]
fn hostile_graphs_are_refused_before_anything_is_allocated() {
    let forest = ensemble(&mut Random::seeded(74), 1, [1, 1]);
    let sound = forest.lower("auto").unwrap().graph;
    assert!(crate::verify(&sound).is_ok());
    let trees = |trees| Trees { trees, paths: Paths::Table(3), values: 1, comparisons: 1 };
    let huge = |trees, paths, values| {
        let mut graph = sound.clone();
        graph.nodes[0].op = Trees { trees, paths, values, comparisons: 1 }.into();
        graph
    };
    let mut many = sound.clone();
    many.nodes[0].op = Trees { comparisons: usize::MAX, ..trees(3) }.into();
    let mut none = sound.clone();
    none.nodes[0].op = Trees { comparisons: 0, ..trees(3) }.into();
    let mut linked = sound.clone();
    linked.link = Some(Link { function: crate::LinkFunction::Exp, scale: f64::NAN });
    let mut narrow = sound.clone();
    narrow.tensors[0].format.bits = KEY_BITS - 1;
    narrow.input_range = [0, 1];
    let mut wide = sound.clone();
    wide.tensors[1].format.bits = KEY_BITS + 1;
    for graph in [
        huge(usize::MAX, Paths::Complete(8), 1),
        huge(1, Paths::Complete(u32::MAX), 1),
        huge(1, Paths::Complete(0), 1),
        huge(1, Paths::Table(8), 1),
        huge(1, Paths::Table(0), 1),
        huge(0, Paths::Table(3), 1),
        huge(1, Paths::Table(3), 0),
        huge(1, Paths::Table(3), usize::MAX),
        huge(1 << 19, Paths::Table(3), 1 << 6),
        narrow,
        wide,
        many,
        none,
        linked,
    ] {
        assert!(crate::verify(&graph).is_err(), "{:?}", graph.nodes);
    }
}

#[test]
fn results_are_narrow_where_nothing_is_rounded() {
    let mut rng = Random::seeded(75);
    let format = |leaves: f64, base: f64| {
        let mut forest = Ensemble { base: vec![base], ..ensemble(&mut rng, 1, [1, 1]) };
        forest.trees = vec![grown(&mut Random::seeded(9), [4, 1], [3, 7], 1); 100];
        let values = forest.trees.iter_mut().flat_map(|tree| &mut tree.value);
        values.for_each(|value| *value = leaves);
        let format = forest.lower("auto").unwrap().graph.tensors[1].format;
        (format.bits, format.scale * forest.divisor)
    };
    let [narrow, wide] = RESULT_BITS;
    let mut format = format;
    assert_eq!(format(1.0, 0.0), (narrow, 1.0));
    assert_eq!(format(0.75, 0.125), (narrow, 0.125));
    assert_eq!(format(-2.0, 0.0), (narrow, 1.0));
    assert_eq!(format(200.0, 0.0).0, wide);
    assert_eq!(format(0.1, 0.0).0, wide);
    assert_eq!(format(1.0, 0.1).0, wide);
}
