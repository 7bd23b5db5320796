//! Widths chosen anew: other extensions, the same integers.

use crate::exact;
use crate::float;
use crate::lowering::{compile, inputs, some_models};
use crate::models;
use crate::numbers::Numbers;
use crate::transformer::{SIZES, compiled, compiled_from};
use proptest::prelude::*;
use tacit_graph::ops::Extend;
use tacit_graph::testing::smooth_encoder;
use tacit_graph::{
    Error, Graph, Model, Options, digest, in_graph, interpret_batch, reassigned, variants,
    verify_model,
};

fn extensions(graph: &Graph) -> usize {
    graph.nodes.iter().filter(|node| node.op == Extend).count()
}

/// Every other graph of `model` gives the integers of the first one, within its own widths.
fn same_integers(model: &Model, inputs: &[Vec<i64>]) -> usize {
    let want = interpret_batch(model, inputs).unwrap();
    let graphs = variants(model);
    assert!(graphs.len() <= 6 && graphs[0] == model.graph);
    for graph in &graphs {
        let variant = in_graph(model.clone(), graph.clone()).unwrap();
        verify_model(&variant).unwrap();
        assert_eq!(digest(graph), digest(&model.graph), "the digest says nothing of widths");
        assert_eq!(interpret_batch(&variant, inputs).unwrap(), want);
        for input in inputs.iter().take(4) {
            exact::run(&variant, input, Some(&mut Numbers(7)));
        }
        // From each the others are found again, and the way back.
        let others = variants(&variant);
        assert!(others.iter().all(|other| graphs.contains(other)));
        assert_eq!(in_graph(variant, model.graph.clone()).unwrap(), *model);
    }
    graphs.len()
}

#[test]
fn the_digest_of_a_graph_tells_all_but_widths() {
    let graph = compiled(5).0.graph;
    let changed = |change: &dyn Fn(&mut Graph)| {
        let mut other = graph.clone();
        change(&mut other);
        digest(&other) != digest(&graph)
    };
    assert!(!changed(&|graph| graph.tensors[1].format.bits += 1));
    assert!(changed(&|graph| graph.name.push('x')));
    assert!(changed(&|graph| graph.tensors[1].format.signed ^= true));
    assert!(changed(&|graph| graph.tensors[1].shape.push(1)));
    assert!(changed(&|graph| graph.input_range[1] += 1));
    assert!(changed(&|graph| graph.labels.push("cat".into())));
    assert!(changed(&|graph| graph.nodes.swap(0, 1)));
}

#[test]
fn the_compilers_bound_gives_what_was_compiled() {
    let encoders = [compiled(5).0, compiled_from(smooth_encoder(SIZES, 5), true).0];
    for model in some_models(100).into_iter().chain(encoders) {
        let again = reassigned(&model, None).unwrap();
        assert_eq!(again, model);
        let all = reassigned(&model, Some(0)).unwrap();
        assert_eq!(reassigned(&all, None).unwrap(), model);
        assert_eq!(reassigned(&all, Some(0)).unwrap(), all);
    }
}

#[test]
fn lower_bounds_give_more_extensions() {
    let count = |model: &Model, worth| extensions(&reassigned(model, Some(worth)).unwrap().graph);
    let mut more = 0;
    for model in some_models(100) {
        let counts = [usize::MAX, 1 << 12, 1, 0].map(|worth| count(&model, worth));
        assert!(counts.is_sorted(), "{counts:?}");
        more += usize::from(counts[0] < counts[2]);
    }
    assert!(more > 10, "{more}");
}

#[test]
fn encoders_keep_their_integers() {
    for (model, rows) in [compiled(6), compiled_from(smooth_encoder(SIZES, 6), true)] {
        let inputs: Vec<Vec<i64>> =
            rows.iter().take(6).map(|row| model.graph.quantize_input(row).unwrap()).collect();
        assert!(same_integers(&model, &inputs) > 1);
    }
}

#[test]
fn foreign_graphs_are_refused() {
    let [model, other] = some_models(2).try_into().unwrap();
    let refused = in_graph(model, other.graph).unwrap_err();
    assert!(matches!(refused, Error::Invalid { .. }), "{refused}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn integers_are_the_same_at_all_widths(seed: u64, signed: bool, bits in 4u32..=8) {
        let program = models::random(seed);
        let (_, ranges) = float::calibrate(&program, seed, if signed { -1.0 } else { 0.0 });
        let options = Options { weight_bits: bits, activation_bits: bits, ..Options::default() };
        if let Ok(model) = compile(&program, &ranges, &options) {
            same_integers(&model, &inputs(&model.graph, seed));
        }
    }
}
