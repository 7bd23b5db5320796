//! Functions of each element that run as one step: the same results at the cost that was planned.

use super::*;
use crate::plan::options::OptionsByStep;

/// Two convolutions of one input, a ReLU behind each, and their sum.
fn branches(rng: &mut Random) -> Model {
    let conv = |name: &str, output: &str, weight: &str| {
        format!(
            r#"{{"name":"{name}","op":"Conv","inputs":["x"],"output":"{output}","kernel":[1,1],"stride":[1,1],"padding":[0,0,0,0],"dilation":[1,1],"groups":1,"weight":"{weight}","bias":null}}"#
        )
    };
    let relu = |name: &str, input: &str, output: &str| {
        format!(
            r#"{{"name":"{name}","op":"Relu","inputs":["{input}"],"output":"{output}","maximum":null}}"#
        )
    };
    let nodes = [
        conv("left", "a", "w1"),
        conv("right", "b", "w2"),
        relu("relu-left", "a", "c"),
        relu("relu-right", "b", "d"),
        r#"{"name":"add","op":"Add","inputs":["c","d"],"output":"e"}"#.into(),
        r#"{"name":"flat","op":"Reshape","inputs":["e"],"output":"f","shape":[800]}"#.into(),
        r#"{"name":"fc","op":"Gemm","inputs":["f"],"output":"y","weight":"w3","bias":null}"#.into(),
    ];
    let source = format!(
        r#"{{"name":"branches","input":{{"name":"x","shape":[2,10,10]}},"output":"y","nodes":[{}]}}"#,
        nodes.join(",")
    );
    let mut tensor = |shape: &[usize], scale: f32| {
        let words = rng.uniform(shape.iter().product(), 16);
        let data = words.iter().map(|w| (*w as f32 / 32768.0 - 1.0) * scale).collect();
        FloatTensor { shape: shape.to_vec(), data }
    };
    let floats = Floats::from([
        ("w1".into(), tensor(&[8, 2, 1, 1], 0.9)),
        ("w2".into(), tensor(&[8, 2, 1, 1], 0.9)),
        ("w3".into(), tensor(&[3, 800], 0.1)),
    ]);
    let ranges = ["x", "a", "b", "c", "d", "e", "f", "y"].map(|name| {
        let low = if "abey".contains(name) { -2.0 } else { 0.0 };
        (name.into(), (low, 2.0))
    });
    let ranges: Ranges = ranges.into_iter().collect();
    let options = graph::Options { rounding: Rounding::Exact, ..graph::Options::default() };
    graph::lower(Source::from_json(&source).unwrap(), floats, &ranges.into(), &options).unwrap()
}

#[test]
fn branches_of_one_function_take_the_rounds_of_one() {
    let mut rng = Random::seeded(75);
    let model = branches(&mut rng);
    let values = inputs(&mut rng, 4);
    let want = clear(&model, &values);
    for (batch, offline) in [(1, 0), (2, 0), (2, 1)] {
        let [batch, offline] = [batch, offline].map(NonZeroU32::new);
        let settings = Settings { batch, offline, ..Settings::default() };
        let plan = Plan::new(model.graph.clone(), settings).unwrap();
        let at = |name: &str| plan.steps().iter().find(|step| step.name == name).unwrap();
        let [host, other] = ["relu-left", "relu-right"].map(at);
        assert_eq!(host.composed().unwrap().also.len(), 1);
        assert_eq!((other.cost().rounds, other.protocol()), (0, "with relu-left".into()));
        let (answer, server) = run_with(&model, settings, &values);
        assert_eq!(answer.results, want, "{settings:?}");
        costs_as_planned(&answer, &server.unwrap(), 4);
    }
}

#[test]
fn a_step_that_runs_with_another_has_its_options() {
    let mut rng = Random::seeded(76);
    let model = branches(&mut rng);
    let values = inputs(&mut rng, 1);
    let place = |name: &str| model.graph.nodes.iter().position(|node| node.name == name).unwrap();
    let [host, other] = ["relu-left", "relu-right"].map(place);
    let planned = |options: &[(usize, &str)]| {
        let mut by_step = OptionsByStep::default();
        options.iter().for_each(|(step, text)| by_step.set(*step, text.parse().unwrap()));
        Plan::chosen(model.graph.clone(), Settings::default(), by_step)
    };
    for options in [&[(host, "chain")][..], &[(host, "circuits"), (other, "circuits")]] {
        let (answer, server) = run_planned(&planned(options).unwrap(), &model, &values);
        assert_eq!(answer.results, clear(&model, &values));
        costs_as_planned(&answer, &server.unwrap(), 1);
    }
    for options in [&[(other, "chain")][..], &[(host, "chain"), (other, "circuits")]] {
        let refused = planned(options).unwrap_err().to_string();
        assert!(refused.contains("runs with `relu-left`"), "{refused}");
    }
}

#[test]
fn clips_from_other_bounds_run_as_one() {
    let mut rng = Random::seeded(77);
    let mut model = branches(&mut rng);
    let values = inputs(&mut rng, 2);
    let place = |name: &str| model.graph.nodes.iter().position(|node| node.name == name).unwrap();
    let [host, other] = ["relu-left", "relu-right"].map(place);
    let node = &mut model.graph.nodes[other];
    let graph::ops::Relu { saturate, .. } = *node.op.get().unwrap();
    node.op = graph::ops::Relu { saturate, low: 1 }.into();
    let want = clear(&model, &values);
    assert_ne!(want, clear(&branches(&mut Random::seeded(77)), &values));
    for how in ["plain", "chain", "digits3", "masked"] {
        let mut by_step = OptionsByStep::default();
        if how != "plain" {
            by_step.set(host, how.parse().unwrap());
        }
        let settings = Settings { batch: NonZeroU32::new(2), ..Settings::default() };
        let plan = Plan::chosen(model.graph.clone(), settings, by_step).unwrap();
        let step = &plan.steps()[host];
        assert_eq!(step.composed().unwrap().also.len(), 1);
        let (answer, server) = run_planned(&plan, &model, &values);
        assert_eq!(answer.results, want, "{how}");
        costs_as_planned(&answer, &server.unwrap(), 2);
    }
    let mut by_step = OptionsByStep::default();
    by_step.set(host, "circuits".parse().unwrap());
    let refused = Plan::chosen(model.graph.clone(), Settings::default(), by_step).unwrap_err();
    assert!(refused.to_string().contains("other bounds"), "{refused}");
}
