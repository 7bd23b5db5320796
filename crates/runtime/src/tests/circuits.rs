//! Garbled circuits between the layers of every suite, and FALCON's own.

use graph::Linear;
use graph::Nonlinear;

use super::*;
use crate::linear::slots::SlotLayer;

/// The small network, with a residual, for a suite.
fn garbled(rng: &mut Random, suite: &str) -> Model {
    let mut model = network(rng, Rounding::Exact);
    if crate::hides_filters(suite) {
        graph::canonical_filters(&mut model);
    }
    model.graph.suite = suite.into();
    model.graph.nonlinear = Nonlinear::Gc;
    model
}

#[test]
fn circuits_give_what_the_interpreter_gives_at_the_cost_that_was_planned() {
    let mut rng = Random::seeded(51);
    for suite in ["auto", "gazelle", "gala", "falcon-ntt"] {
        let model = garbled(&mut rng, suite);
        let values = inputs(&mut rng, 2);
        let logits = clear(&model, &values);
        let labels: Vec<_> = logits.iter().map(|row| vec![graph::argmax(row) as i64]).collect();
        for (reveal, want) in [(Reveal::Output, logits), (Reveal::Label, labels)] {
            let (answer, server) = run(&model, reveal, &values);
            assert_eq!(answer.results, want, "{suite} {reveal:?}");
            costs_as_planned(&answer, &server.unwrap(), 2);
        }
    }
}

#[test]
fn the_top_class_comes_with_its_probability() {
    let mut rng = Random::seeded(54);
    for (suite, nonlinear) in [("falcon-ntt", Nonlinear::Gc), ("auto", Nonlinear::Ot)] {
        let mut model = garbled(&mut rng, suite);
        model.graph.nonlinear = nonlinear;
        let values = inputs(&mut rng, 2);
        let (answer, server) = run(&model, Reveal::Probability, &values);
        costs_as_planned(&answer, &server.unwrap(), 2);
        let scale = model.graph.tensors[model.graph.output].format.scale;
        let certain = answer.plan.certain().unwrap() as f64;
        for (got, logits) in answer.results.iter().zip(clear(&model, &values)) {
            let top = graph::argmax(&logits);
            let term = |x: &i64| (scale * (x - logits[top]) as f64).exp();
            let want = 1.0 / logits.iter().map(term).sum::<f64>();
            assert_eq!((got.len(), got[0]), (2, top as i64), "{suite}");
            assert!((certain / got[1] as f64 - want).abs() <= 1e-4, "{suite}");
        }
    }
}

#[test]
fn transformed_layers_run_on_transfers_too() {
    let mut rng = Random::seeded(52);
    let mut model = garbled(&mut rng, "falcon-ntt");
    model.graph.nonlinear = Nonlinear::Ot;
    let values = inputs(&mut rng, 1);
    let (answer, server) = run(&model, Reveal::Output, &values);
    assert_eq!(answer.results, clear(&model, &values));
    costs_as_planned(&answer, &server.unwrap(), 1);
}

/// FALCON as published. Values are within 1 of the interpreter's after each rescale, so
/// logits near its own, labels the same where none is close.
#[test]
fn the_published_system_stays_near_the_interpreter_at_the_cost_that_was_planned() {
    let mut rng = Random::seeded(55);
    let mut model = network(&mut rng, Rounding::Stochastic);
    graph::canonical_filters(&mut model);
    model.graph.suite = "falcon".into();
    model.graph.nonlinear = Nonlinear::Gc;
    let values = inputs(&mut rng, 2);
    let want = clear(&model, &values);
    let (answer, server) = run(&model, Reveal::Output, &values);
    costs_as_planned(&answer, &server.unwrap(), 2);
    let spread = want.iter().flatten().map(|v| v.abs()).max().unwrap();
    for (got, want) in answer.results.iter().flatten().zip(want.iter().flatten()) {
        assert!((got - want).abs() * 20 <= spread, "{got} for {want} of {spread}");
    }
    let (answer, server) = run(&model, Reveal::Label, &values);
    costs_as_planned(&answer, &server.unwrap(), 2);
    let labels: Vec<_> = want.iter().map(|row| vec![graph::argmax(row) as i64]).collect();
    assert_eq!(answer.results, labels);
    let names: Vec<&str> = answer.plan.steps().iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names[..5], ["x (small)", "conv1", "pool1 + relu1", "c (enter)", "c (small)"]);
    assert_eq!(names.iter().filter(|name| name.ends_with("(small)")).count(), 3);
}

#[test]
fn a_suite_that_leaks_runs_only_where_both_agreed() {
    let mut rng = Random::seeded(56);
    let mut model = network(&mut rng, Rounding::Stochastic);
    model.graph.suite = "falcon".into();
    model.graph.nonlinear = Nonlinear::Gc;
    let plan = Plan::new(model.graph.clone(), Settings::default()).unwrap();
    let prepared = EncodedModel::new(&plan, model.clone()).unwrap();
    let values = inputs(&mut rng, 1);
    let (ours, theirs) = run_pair(
        |channel| {
            let shape = [1, 2, SIDE, SIDE];
            let progress = &mut |_, _| {};
            let values = &values;
            let request = Request {
                values,
                shape: &shape,
                threads: 1,
                accept_leakage: false,
                keys: None,
                asking: Asking::default(),
                progress,
            };
            predict(channel, request)
        },
        |channel| session(&plan, &prepared, 9, channel),
    );
    let Err(Error::Misuse(why)) = ours.value else { unreachable!() };
    assert!(why.contains("leaks") && why.contains("--accept-leakage"), "{why}");
    assert!(theirs.value.is_err());
    // The hello and the request, and nothing else.
    assert_eq!(ours.frames.len(), 2);
    for suite in ["auto", "gazelle", "gala", "falcon-ntt"] {
        assert!(crate::consent(suite, false).is_ok());
    }
    assert!(crate::consent("falcon", false).is_err() && crate::consent("falcon", true).is_ok());
}

#[test]
fn what_the_published_system_cannot_do_is_refused_by_name() {
    let mut rng = Random::seeded(57);
    let refused = |model: &Model, nonlinear| {
        let graph = graph::Graph { suite: "falcon".into(), nonlinear, ..model.graph.clone() };
        Plan::new(graph, Settings::default()).unwrap_err().to_string()
    };
    let stochastic = network(&mut rng, Rounding::Stochastic);
    assert!(refused(&stochastic, Nonlinear::Ot).contains("garbled circuits"));
    let why = refused(&network(&mut rng, Rounding::Exact), Nonlinear::Gc);
    assert!(why.contains("`conv1`") && why.contains("--rounding stochastic"), "{why}");
    let mut coarse = stochastic;
    for node in &mut coarse.graph.nodes {
        if let Some(linear) = node.op.get_mut::<Linear>()
            && node.name == "conv2"
        {
            linear.accumulator_bits = 45;
        }
    }
    let why = refused(&coarse, Nonlinear::Gc);
    assert!(why.contains("`conv2`"), "{why}");
}

/// A tensor that two layers read whose sums need other primes.
#[test]
fn layers_with_primes_of_their_own_read_the_same_tensor() {
    let source = r#"{"name":"fork","input":{"name":"x","shape":[2,6,6]},"output":"y","nodes":[
      {"name":"conv1","op":"Conv","inputs":["x"],"output":"a","kernel":[3,3],"stride":[1,1],"padding":[1,1,1,1],"dilation":[1,1],"groups":1,"weight":"w1"},
      {"name":"relu1","op":"Relu","inputs":["a"],"output":"b","maximum":null},
      {"name":"conv2","op":"Conv","inputs":["b"],"output":"c","kernel":[3,3],"stride":[1,1],"padding":[1,1,1,1],"dilation":[1,1],"groups":1,"weight":"w2"},
      {"name":"conv3","op":"Conv","inputs":["b"],"output":"d","kernel":[1,1],"stride":[1,1],"padding":[0,0,0,0],"dilation":[1,1],"groups":1,"weight":"w3"},
      {"name":"relu2","op":"Relu","inputs":["c"],"output":"e","maximum":null},
      {"name":"relu3","op":"Relu","inputs":["d"],"output":"f","maximum":null},
      {"name":"add","op":"Add","inputs":["e","f"],"output":"g"},
      {"name":"flat","op":"Reshape","inputs":["g"],"output":"h","shape":[72]},
      {"name":"fc","op":"Gemm","inputs":["h"],"output":"y","weight":"w4"}]}"#;
    let mut rng = Random::seeded(58);
    let mut tensor = |shape: &[usize]| {
        let words = rng.uniform(shape.iter().product(), 16);
        let data = words.iter().map(|w| *w as f32 / 32768.0 - 1.0).collect();
        FloatTensor { shape: shape.to_vec(), data }
    };
    let floats = Floats::from([
        ("w1".into(), tensor(&[2, 2, 3, 3])),
        ("w2".into(), tensor(&[2, 2, 3, 3])),
        ("w3".into(), tensor(&[2, 2, 1, 1])),
        ("w4".into(), tensor(&[3, 72])),
    ]);
    let names = ["x", "a", "b", "c", "d", "e", "f", "g", "h", "y"];
    let ranges: Ranges = names.map(|name| (name.to_string(), (0.0, 3.0))).into();
    let options = graph::Options {
        nonlinear: Nonlinear::Gc,
        suite: "falcon-ntt".into(),
        rounding: Rounding::Exact,
        ..graph::Options::default()
    };
    let source = Source::from_json(source).unwrap();
    let mut model = graph::lower(source, floats, &ranges.into(), &options).unwrap();
    for node in &mut model.graph.nodes {
        if let Some(linear) = node.op.get_mut::<Linear>()
            && node.name == "conv3"
        {
            linear.accumulator_bits += 6;
            model.graph.tensors[node.inputs[0]].format.bits += 6;
        }
    }
    let values: Vec<f32> = (0..72).map(|i| (i * 7 % 31) as f32 / 31.0).collect();
    let (answer, server) = run(&model, Reveal::Output, &values);
    assert_eq!(answer.results, clear(&model, &values));
    costs_as_planned(&answer, &server.unwrap(), 1);
    let primes: Vec<u64> = answer
        .plan
        .steps()
        .iter()
        .filter_map(|step| step.linear())
        .filter_map(|l| l.downcast::<SlotLayer>())
        .map(|l| l.layer.prime())
        .collect();
    assert_ne!(primes[1], primes[2]);
}

#[test]
fn a_rescale_a_pool_and_a_relu_are_one_circuit() {
    let mut rng = Random::seeded(53);
    let model = garbled(&mut rng, "falcon-ntt");
    let plan = Plan::new(model.graph, Settings::default()).unwrap();
    let names: Vec<&str> = plan.steps().iter().map(|step| step.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "x (enter)",
            "conv1",
            "pool1 + relu1",
            "c (enter)",
            "conv2",
            "conv2",
            "conv2 (sum)",
            "relu2",
            "pool2",
            "flat",
            "fc",
            "fc (rescale)",
            "result"
        ]
    );
}
