//! Decision trees in whole sessions: private results against the interpreter, costs against the
//! plan, and trees of one padded class that a client cannot tell apart.

use super::distinguish::{SESSIONS, told_apart, views};
use super::*;
use crate::plan::options::OptionsByStep;
use crate::planner::{Conditions, Rates, suited_batch};
use graph::Ensemble;
use graph::trees::Tree;

/// A tree whose tests compare feature 0 with the given thresholds: a chain, each test on the right
/// of the one before, or balanced. Number i of the leaves from left to right has value i.
pub(super) fn tree(thresholds: &[f32], balanced: bool) -> Tree {
    let mut tree = Tree {
        feature: Vec::new(),
        threshold: Vec::new(),
        missing_left: Vec::new(),
        left: Vec::new(),
        right: Vec::new(),
        value: Vec::new(),
        further: Vec::new(),
    };
    grow(&mut tree, thresholds, balanced, 0);
    tree
}

/// Adds the part with these thresholds, whose first leaf has number `first`; returns its root.
fn grow(tree: &mut Tree, thresholds: &[f32], balanced: bool, first: usize) -> usize {
    let node = tree.feature.len();
    let middle = if balanced { thresholds.len() / 2 } else { 0 };
    let threshold = thresholds.get(middle);
    tree.feature.push(if threshold.is_some() { 0 } else { -1 });
    tree.threshold.push(threshold.map_or(0, |threshold| threshold.to_bits()));
    tree.missing_left.push(middle.is_multiple_of(2));
    tree.left.push(0);
    tree.right.push(0);
    tree.value.push(first as f64);
    if threshold.is_some() {
        let left = grow(tree, &thresholds[..middle], balanced, first);
        let right = grow(tree, &thresholds[middle + 1..], balanced, first + middle + 1);
        (tree.left[node], tree.right[node]) = (left, right);
    }
    node
}

fn ensemble(outputs: usize, trees: Vec<Tree>) -> Model {
    sums_of(outputs, trees).lower("auto").unwrap()
}

/// Trees whose leaves are added up.
pub(super) fn sums_of(outputs: usize, trees: Vec<Tree>) -> Ensemble {
    Ensemble {
        name: "trees".into(),
        features: 3,
        outputs,
        labels: Vec::new(),
        link: None,
        values: 1,
        base: (0..outputs).map(|at| at as f64 / 4.0).collect(),
        divisor: 1.0,
        ties_left: false,
        trees,
    }
}

/// Numbers on both sides of the thresholds, the thresholds and what is missing.
pub(super) fn rows() -> Vec<f32> {
    let values = [-2.0, -1.0, 0.0, -0.0, 0.5, 1.0, 1.5, 2.0, 3.0, f32::NAN, f32::INFINITY, 2.5];
    values.iter().flat_map(|value| [*value, f32::NAN, 7.0]).collect()
}

/// Tables and complete trees, tests of sets, several results.
pub(super) fn shallow() -> Vec<Ensemble> {
    let deep = || tree(&[-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0], true);
    let mut set = tree(&[-1.0, 0.5, 2.0], true);
    set.further = vec![(0, 1.0f32.to_bits()), (0, 3.0f32.to_bits()), (1, f32::INFINITY.to_bits())];
    vec![
        sums_of(1, vec![set, tree(&[1.0], false)]),
        sums_of(1, vec![tree(&[1.0], false)]),
        sums_of(1, vec![deep(), tree(&[0.5, 1.0], false), tree(&[], false)]),
        sums_of(3, vec![tree(&[0.0, 1.0, 2.0], false), tree(&[1.0], true), tree(&[2.0], true)]),
    ]
}

#[test]
fn private_leaves_are_the_interpreters_at_the_planned_cost() {
    let rows = rows();
    for model in shallow().iter().map(|ensemble| ensemble.lower("auto").unwrap()) {
        let usual = Settings::default();
        let batch = NonZeroU32::new(5);
        let others =
            [Settings { batch, ..usual }, Settings { offline: NonZeroU32::new(2), ..usual }];
        for settings in [usual].into_iter().chain(others) {
            let (answer, server) = run_with(&model, settings, &rows);
            assert_eq!(answer.results, clear(&model, &rows), "{settings:?}");
            costs_as_planned(&answer, &server.unwrap(), rows.len() / 3);
        }
    }
}

/// Trees of depth 4 in stages of digits, whatever the batch.
#[test]
fn stages_give_the_interpreters_leaves_at_the_planned_cost() {
    let deep = |first: f32| {
        let thresholds: Vec<f32> = (0..15).map(|at| first + at as f32 / 4.0).collect();
        tree(&thresholds, true)
    };
    let model = ensemble(1, vec![deep(-1.0), tree(&[0.5, 1.0], false), deep(0.5)]);
    let (rows, input) = (rows(), model.graph.tensors[model.graph.input].len());
    for batch in [1, 5] {
        let settings = Settings { batch: NonZeroU32::new(batch), ..Settings::default() };
        for options in ["stages2", "stages4", "ahead+stages3"] {
            let mut by_step = OptionsByStep::default();
            by_step.set(0, options.parse().unwrap());
            let plan = Plan::chosen(model.graph.clone(), settings, by_step).unwrap();
            let plan = Plan::from_offer(&plan.offer()).unwrap();
            let encoded = EncodedModel::new(&plan, model.clone()).unwrap();
            let shape = [rows.len() / input, input];
            let (ours, theirs) = run_pair(
                |channel| ask(channel, &rows, &shape),
                |channel| session(&plan, &encoded, 100, channel),
            );
            let (answer, server) = (ours.value.unwrap(), theirs.value.unwrap());
            assert_eq!(answer.results, clear(&model, &rows), "{options} {batch}");
            costs_as_planned(&answer, &server, shape[0]);
        }
    }
}

#[test]
fn many_trees_are_compared_in_stages() {
    let thresholds: Vec<f32> = (0..63).map(|at| at as f32).collect();
    let model = ensemble(1, vec![tree(&thresholds, true); 300]);
    let described = |batch| {
        let settings = Settings { batch: NonZeroU32::new(batch), ..Settings::default() };
        Plan::new(model.graph.clone(), settings).unwrap().steps()[0].protocol()
    };
    assert!(!described(1).contains("stages") && described(64).contains("stages"));
    let mut by_step = OptionsByStep::default();
    by_step.set(0, "stages4".parse().unwrap());
    let table = ensemble(1, vec![tree(&[0.5, 1.0], false); 2]).graph;
    assert!(Plan::chosen(table, Settings::default(), by_step.clone()).is_err());
    let network = network(&mut Random::seeded(1), Rounding::Exact).graph;
    assert!(Plan::chosen(network, Settings::default(), by_step).is_err());
}

#[test]
fn a_table_with_many_rows_gets_a_batch() {
    let suited = |graph: &graph::Graph, inputs| {
        let conditions = Conditions { rates: Rates::reference(), link: None };
        suited_batch(graph, Settings::default(), &conditions, inputs)
    };
    let thresholds: Vec<f32> = (0..63).map(|at| at as f32).collect();
    let trees = ensemble(1, vec![tree(&thresholds, true); 300]).graph;
    assert_eq!(suited(&trees, 1), 1);
    let batch = suited(&trees, 1000);
    assert!((16..=512).contains(&batch), "{batch}");
    let settings = Settings { batch: NonZeroU32::new(batch as u32), ..Settings::default() };
    assert!(Plan::new(trees.clone(), settings).unwrap().session_memory() <= 512 << 20);
    // What takes no rows of numbers keeps one input a run.
    assert_eq!(suited(&network(&mut Random::seeded(1), Rounding::Exact).graph, 1000), 1);
}

#[test]
fn a_client_cannot_tell_a_chain_from_a_balanced_tree() {
    let thresholds = [0.0, 1.0, 2.0];
    let mut long = tree(&[-3.0, -2.0, -1.0, 5.0], false);
    let [far, farther] = [50.0f32, 60.0].map(f32::to_bits);
    long.further = vec![(0, far), (0, farther)];
    // Only one of the two has a test of a set, which is padded to in the other.
    let [chain, balanced] = [false, true].map(|shape| {
        let mut tree = tree(&thresholds, shape);
        tree.further = if shape { vec![(0, far), (0, farther)] } else { Vec::new() };
        ensemble(1, vec![tree, long.clone()])
    });
    assert_eq!(graph::digest(&chain.graph), graph::digest(&balanced.graph));
    let input = chain.graph.quantize_input(&[1.0, 0.0, 0.0]).unwrap();
    let batch = [input.clone()];
    let clear = |model| graph::interpret_batch(model, &batch).unwrap();
    assert_eq!(clear(&chain), clear(&balanced));
    let left = views(&chain, Reveal::Output, &input, 0..SESSIONS, Role::Client);
    let right = views(&balanced, Reveal::Output, &input, SESSIONS..2 * SESSIONS, Role::Client);
    assert_eq!(told_apart(&left, &right), None);
}

/// Trees of which one is too deep for any layout but walks.
fn deep(outputs: usize, trees: Vec<Tree>) -> Model {
    let thresholds: Vec<f32> = (0..12).map(|at| at as f32 / 4.0 - 1.0).collect();
    let long = (0..outputs).map(|_| tree(&thresholds, false));
    ensemble(outputs, trees.into_iter().chain(long).collect())
}

#[test]
fn private_walks_are_the_interpreters_at_the_planned_cost() {
    let models = [
        deep(1, Vec::new()),
        deep(1, vec![tree(&[0.0, 0.5, 1.0, 2.0, 2.5], true), tree(&[], false), tree(&[1.0], true)]),
        deep(3, vec![tree(&[0.0, 1.0, 2.0], false), tree(&[1.0], true), tree(&[2.0], true)]),
    ];
    let rows = rows();
    for model in models {
        let usual = Settings::default();
        let batch = NonZeroU32::new(5);
        let others =
            [Settings { batch, ..usual }, Settings { offline: NonZeroU32::new(2), ..usual }];
        for settings in [usual].into_iter().chain(others) {
            let (answer, server) = run_with(&model, settings, &rows);
            assert_eq!(answer.results, clear(&model, &rows), "{settings:?}");
            costs_as_planned(&answer, &server.unwrap(), rows.len() / 3);
        }
        let op: &graph::ops::Trees = model.graph.nodes[0].op.get().unwrap();
        assert!(matches!(op.paths, graph::ops::Paths::Walk(_)));
    }
}

#[test]
fn a_client_cannot_tell_the_trees_of_one_pool_apart() {
    let thresholds = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0];
    let [chain, balanced] = [false, true].map(|shape| deep(1, vec![tree(&thresholds, shape)]));
    // As many tests, in trees of other sizes.
    let other = deep(1, vec![tree(&thresholds[..3], true)]);
    let moved = deep(1, vec![tree(&thresholds[..4], true)]);
    assert_eq!(graph::digest(&other.graph), graph::digest(&moved.graph));
    assert_eq!(graph::digest(&chain.graph), graph::digest(&balanced.graph));
    let input = chain.graph.quantize_input(&[1.0, 0.0, 0.0]).unwrap();
    let batch = [input.clone()];
    let clear = |model| graph::interpret_batch(model, &batch).unwrap();
    assert_eq!(clear(&chain), clear(&balanced));
    let left = views(&chain, Reveal::Output, &input, 0..SESSIONS, Role::Client);
    let right = views(&balanced, Reveal::Output, &input, SESSIONS..2 * SESSIONS, Role::Client);
    assert_eq!(told_apart(&left, &right), None);
}
