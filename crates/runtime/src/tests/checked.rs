//! Suite `checked`: sessions of honest clients.

use std::num::NonZeroU32;

use graph::{FloatTensor, Floats, Model, Ranges, Rounding, Source};
use ring::Random;
use wire::Error;

use super::{clear, costs_as_planned, run_with};
use crate::plan::{Plan, Reveal, Settings};
use crate::suites;

const INPUTS: usize = 24;
pub(super) const HIDDEN: usize = 12;

/// fc 24-12 -> relu -> fc 12-12 -> relu -> fc 12-5.
fn network(suite: &str, last: &str) -> Result<Model, graph::Error> {
    dense(suite, [INPUTS, HIDDEN, HIDDEN, 5], last)
}

/// Three fully connected layers between so many values, with ReLUs.
pub(super) fn dense(
    suite: &str,
    [inputs, first, second, outputs]: [usize; 4],
    last: &str,
) -> Result<Model, graph::Error> {
    let source = r#"{"name":"dense","input":{"name":"x","shape":[INPUTS]},"output":"y","nodes":[
        {"name":"first","op":"Gemm","inputs":["x"],"output":"a","weight":"w1","bias":"b1"},
        {"name":"relu1","op":"Relu","inputs":["a"],"output":"b","maximum":null},
        {"name":"second","op":"Gemm","inputs":["b"],"output":"c","weight":"w2","bias":"b2"},
        {"name":"relu2","op":"Relu","inputs":["c"],"output":"d","maximum":null},
        LAST]}"#;
    let source = source.replace("LAST", last).replace("INPUTS", &inputs.to_string());
    let mut rng = Random::seeded(61);
    let mut tensor = |shape: &[usize]| {
        let words = rng.uniform(shape.iter().product(), 16);
        let data = words.iter().map(|w| (*w as f32 / 32768.0 - 1.0) * 0.5).collect();
        FloatTensor { shape: shape.to_vec(), data }
    };
    let floats = Floats::from([
        ("w1".into(), tensor(&[first, inputs])),
        ("b1".into(), tensor(&[first])),
        ("w2".into(), tensor(&[second, first])),
        ("b2".into(), tensor(&[second])),
        ("w3".into(), tensor(&[outputs, second])),
        ("b3".into(), tensor(&[outputs])),
    ]);
    let range = |name: &str, low| (name.to_owned(), (low, 3.0));
    let ranges: Ranges = ["a", "c", "y", "e"]
        .into_iter()
        .map(|name| range(name, -3.0))
        .chain(["b", "d"].into_iter().map(|name| range(name, 0.0)))
        .chain([("x".to_owned(), (-1.0, 1.0))])
        .collect();
    let options = graph::Options {
        suite: suite.into(),
        rounding: Rounding::Exact,
        ..graph::Options::default()
    };
    graph::lower(Source::from_json(&source).unwrap(), floats, &ranges.into(), &options)
}

/// conv 3x3 (padded) -> max pool 2 -> relu -> conv 3x3, stride 2 -> relu -> fc.
fn pictures() -> Model {
    let source = r#"{"name":"pictures","input":{"name":"x","shape":[2,10,10]},"output":"y","nodes":[
        {"name":"conv1","op":"Conv","inputs":["x"],"output":"a","kernel":[3,3],"stride":[1,1],"padding":[1,1,1,1],"dilation":[1,1],"groups":1,"weight":"w1","bias":"b1"},
        {"name":"pool","op":"MaxPool","inputs":["a"],"output":"b","kernel":[2,2],"stride":[2,2],"padding":[0,0,0,0]},
        {"name":"relu1","op":"Relu","inputs":["b"],"output":"c","maximum":null},
        {"name":"conv2","op":"Conv","inputs":["c"],"output":"d","kernel":[3,3],"stride":[2,2],"padding":[0,0,0,0],"dilation":[1,1],"groups":1,"weight":"w2","bias":"b2"},
        {"name":"relu2","op":"Relu","inputs":["d"],"output":"e","maximum":null},
        {"name":"flat","op":"Reshape","inputs":["e"],"output":"f","shape":[16]},
        {"name":"fc","op":"Gemm","inputs":["f"],"output":"y","weight":"w3","bias":"b3"}]}"#;
    let mut rng = Random::seeded(62);
    let mut tensor = |shape: &[usize]| {
        let words = rng.uniform(shape.iter().product(), 16);
        let data = words.iter().map(|w| (*w as f32 / 32768.0 - 1.0) * 0.3).collect();
        FloatTensor { shape: shape.to_vec(), data }
    };
    let floats = Floats::from([
        ("w1".into(), tensor(&[3, 2, 3, 3])),
        ("b1".into(), tensor(&[3])),
        ("w2".into(), tensor(&[4, 3, 3, 3])),
        ("b2".into(), tensor(&[4])),
        ("w3".into(), tensor(&[6, 16])),
        ("b3".into(), tensor(&[6])),
    ]);
    let range = |name: &str, low| (name.to_owned(), (low, 2.0));
    let ranges: Ranges = ["a", "b", "d", "y"]
        .into_iter()
        .map(|name| range(name, -2.0))
        .chain(["c", "e", "f"].into_iter().map(|name| range(name, 0.0)))
        .chain([("x".to_owned(), (0.0, 1.0))])
        .collect();
    let options = graph::Options {
        suite: "checked".into(),
        rounding: Rounding::Exact,
        ..graph::Options::default()
    };
    graph::lower(Source::from_json(source).unwrap(), floats, &ranges.into(), &options).unwrap()
}

pub(super) const LAST: &str =
    r#"{"name":"last","op":"Gemm","inputs":["d"],"output":"y","weight":"w3","bias":"b3"}"#;

pub(super) fn model(suite: &str) -> Model {
    network(suite, LAST).unwrap()
}

pub(super) fn values(seed: u64, count: usize) -> Vec<f32> {
    let words = Random::seeded(seed).uniform(count * INPUTS, 16);
    words.iter().map(|w| *w as f32 / 32768.0 - 1.0).collect()
}

#[test]
fn results_equal_the_interpreter_at_the_cost_that_was_planned() {
    let model = model("checked");
    exact(&model, &values(1, 3), 3);
}

#[test]
fn convolutions_and_maximum_pools_equal_the_interpreter() {
    let model = pictures();
    let values = super::inputs(&mut Random::seeded(6), 2);
    exact(&model, &values, 2);
}

/// Results are the interpreter's at the cost that was planned, prepared or not.
fn exact(model: &Model, values: &[f32], count: usize) {
    let ahead = Settings { offline: NonZeroU32::new(1), ..Settings::default() };
    // Of three inputs the second batch has one and a place that is empty.
    let batch = Settings { batch: NonZeroU32::new(2), ..Settings::default() };
    let both = Settings { batch: batch.batch, ..ahead };
    for settings in [Settings::default(), ahead, batch, both] {
        let (answer, server) = run_with(model, settings, values);
        assert_eq!(answer.results, clear(model, values));
        costs_as_planned(&answer, &server.unwrap(), count);
    }
}

/// A network with a maximum pool, a residual sum and an average pool.
pub(super) fn residual() -> Model {
    let options = graph::Options {
        suite: "checked".into(),
        rounding: Rounding::Exact,
        ..graph::Options::default()
    };
    super::lowered(&mut Random::seeded(63), &options)
}

#[test]
fn residual_sums_and_average_pools_equal_the_interpreter() {
    let model = residual();
    let linears = model.graph.nodes.iter().filter_map(|node| node.op.get::<graph::Linear>());
    assert!(linears.into_iter().any(|linear| linear.addend.is_some()));
    exact(&model, &super::inputs(&mut Random::seeded(7), 2), 2);
}

#[test]
fn labels_are_the_interpreters() {
    let model = model("checked");
    let values = values(4, 4);
    let label = |row: &Vec<i64>| vec![graph::argmax(row) as i64];
    for batch in [1, 3].map(NonZeroU32::new) {
        let settings = Settings { reveal: Reveal::Label, batch, ..Settings::default() };
        let (answer, server) = run_with(&model, settings, &values);
        assert_eq!(answer.results, clear(&model, &values).iter().map(label).collect::<Vec<_>>());
        costs_as_planned(&answer, &server.unwrap(), 4);
    }
}

#[test]
fn what_has_no_checked_form_is_refused_with_advice() {
    let refused = |error: Error| {
        let text = error.to_string();
        assert!(text.contains("--secure-against client"), "{text}");
    };
    let other = r#"{"name":"gelu","op":"Gelu","inputs":["d"],"output":"e"},
        {"name":"last","op":"Gemm","inputs":["e"],"output":"y","weight":"w3","bias":"b3"}"#;
    let gelu = network("checked", other).unwrap();
    refused(Plan::new(gelu.graph, Settings::default()).unwrap_err());
    let graph = model("checked").graph;
    let settings = Settings { reveal: Reveal::Probability, ..Settings::default() };
    refused(Plan::new(graph, settings).unwrap_err());
}

/// The offer names the suite, and a client without it refuses the offer.
#[test]
fn offers_say_that_they_are_secure_against_clients() {
    let plan = Plan::new(model("checked").graph, Settings::default()).unwrap();
    assert!(plan.offer().contains("\"suite\":\"checked\""));
    assert!(suites::secure_against_client(&plan.graph().suite));
    assert!(!suites::secure_against_client("auto"));
}
