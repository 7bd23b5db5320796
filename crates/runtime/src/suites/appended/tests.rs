//! Which products run on masks of several runs, and which are refused.

use std::num::NonZeroU32;

use super::*;
use crate::plan::options::OptionsByStep;
use crate::plan::{Plan, Settings};
use crate::tests::decoder;

const RUNS: &str = "ahead2";
const PRODUCTS: [&str; 2] = ["scores", "context"];

/// A decoder that keeps what its attention gives as well, so that all runs compute that.
fn kept(source: String) -> String {
    let states = r#""states":["#;
    source.replacen(states, &format!(r#"{states}{{"name":"last","shape":[4],"after":"t1"}},"#), 1)
}

/// The same, where the entries stay and the new one is forgotten.
fn standing(source: String) -> String {
    kept(source.replace(r#""start":4,"strides":[1]"#, r#""start":0,"strides":[1]"#))
}

fn graph(rounding: Rounding, change: fn(String) -> String) -> Graph {
    decoder::changed(1, rounding, &change).graph
}

/// The place of a product among the nodes, by its place among the products.
fn place(graph: &Graph, name: &str) -> usize {
    let products = graph.nodes.iter().enumerate().filter(|(_, node)| node.op.is::<MatMul>());
    let places: Vec<usize> = products.map(|(place, _)| place).collect();
    assert_eq!(places.len(), PRODUCTS.len());
    places[PRODUCTS.iter().position(|known| *known == name).unwrap()]
}

fn node<'a>(graph: &'a Graph, name: &str) -> &'a Node {
    &graph.nodes[place(graph, name)]
}

/// Why the product of this name is not planned on masks of several runs, if it is not.
fn why_not(graph: &Graph, name: &str, batch: usize, options: &str) -> Option<String> {
    let (node, options) = (node(graph, name), options.parse().unwrap());
    let planned = product(&NodeContext { batch, options, ..NodeContext::plain(graph, node) });
    planned.err().map(|error| {
        assert!(matches!(error, Error::Misuse(_)), "{name}: {error}");
        error.to_string()
    })
}

fn refused(graph: &Graph, name: &str, batch: usize, options: &str) {
    let why = why_not(graph, name, batch, options).unwrap();
    assert!(why.contains("whose factor does not grow"), "{name} {options}: {why}");
}

#[test]
fn factors_that_grow_are_found_with_either_axis() {
    let graph = graph(Rounding::Stochastic, kept);
    for (name, axis) in PRODUCTS.into_iter().zip([Axis::Columns, Axis::Inner]) {
        let found = right(&graph, node(&graph, name)).unwrap();
        assert_eq!((found.axis, found.constants.len()), (axis, 0), "{name}");
        assert!(grows(&graph, node(&graph, name)));
    }
    for options in [RUNS, "ahead64"] {
        assert_eq!(why_not(&graph, "scores", 1, options), None, "{options}");
        // Sums with probabilities are divided by too little here.
        let matmul: &MatMul = node(&graph, "context").op.get().unwrap();
        assert!(matmul.shift < 3, "{}", matmul.shift);
        let why = why_not(&graph, "context", 1, options).unwrap();
        assert!(why.contains("no such sizes or widths"), "{options}: {why}");
    }
}

#[test]
fn a_batch_is_refused() {
    let graph = graph(Rounding::Stochastic, kept);
    PRODUCTS.iter().for_each(|name| refused(&graph, name, 2, RUNS));
}

#[test]
fn exact_rounding_is_refused() {
    let graph = graph(Rounding::Exact, kept);
    PRODUCTS.iter().for_each(|name| refused(&graph, name, 1, RUNS));
}

#[test]
fn other_choices_beside_it_are_refused() {
    let graph = graph(Rounding::Stochastic, kept);
    for options in ["packing1+ahead2", "folded1+ahead2", "ahead2+digits4"] {
        PRODUCTS.iter().for_each(|name| refused(&graph, name, 1, options));
    }
}

#[test]
fn a_factor_that_does_not_grow_is_refused() {
    let graph = graph(Rounding::Stochastic, standing);
    for name in PRODUCTS {
        refused(&graph, name, 1, RUNS);
        assert!(!grows(&graph, node(&graph, name)));
    }
}

/// Runs that are only for what the graph keeps would leave it out, and its entries with it.
#[test]
fn a_product_that_some_runs_leave_out_is_refused() {
    let graph = graph(Rounding::Stochastic, |source| source);
    for name in PRODUCTS {
        assert!(right(&graph, node(&graph, name)).is_some(), "{name} grows all the same");
        refused(&graph, name, 1, RUNS);
        assert!(!grows(&graph, node(&graph, name)));
    }
}

/// Plans refuse the same products, also plans that a client is offered and verifies.
#[test]
fn plans_and_offers_with_a_refused_product_are_refused() {
    let planned = |graph: &Graph, settings: Settings, name: &str| {
        let plain = Plan::new(graph.clone(), Settings::default()).unwrap();
        let node = Some(place(graph, name));
        let step = plain.steps().iter().position(|step| step.node == node).unwrap();
        let mut by_step = OptionsByStep::default();
        by_step.set(step, RUNS.parse().unwrap());
        Plan::chosen(graph.clone(), settings, by_step)
    };
    let plain = Settings::default();
    let good = graph(Rounding::Stochastic, kept);
    let several = NonZeroU32::new(2);
    let plan = planned(&good, plain, "scores").unwrap();
    assert_eq!(Plan::from_offer(&plan.offer()).unwrap().digest(), plan.digest());
    for other in ["packing1+ahead2", "ahead2+digits4"] {
        let offer = plan.offer().replace(&format!(r#""{RUNS}""#), &format!(r#""{other}""#));
        let error = Plan::from_offer(&offer).unwrap_err();
        assert!(matches!(error, Error::Peer { .. }), "{other}: {error}");
    }
    for name in PRODUCTS {
        for (graph, settings) in [
            (&good, Settings { batch: several, ..plain }),
            (&good, Settings { offline: several, ..plain }),
            (&graph(Rounding::Exact, kept), plain),
            (&graph(Rounding::Stochastic, standing), plain),
            (&graph(Rounding::Stochastic, |source| source), plain),
        ] {
            let error = planned(graph, settings, name).unwrap_err();
            let fits = matches!(error, Error::Misuse(_) | Error::Unsupported { .. });
            assert!(fits, "{name} {settings:?}: {error}");
        }
    }
}
