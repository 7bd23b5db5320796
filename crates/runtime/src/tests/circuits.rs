//! Garbled circuits between the layers of every suite, and FALCON's own.

use graph::Nonlinear;

use super::*;

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
