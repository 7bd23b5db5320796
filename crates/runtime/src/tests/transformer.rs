//! Encoders of transformers between two parties.

use super::*;
use crate::plan::options::{OptionsByStep, StepOptions};
use crate::planner;
use graph::Op;
use graph::ops::{Extend, Gelu, LayerNorm, Linear, Softmax};
use graph::testing::{Sizes, calibrate, encoder, smooth_encoder, tokens};
use wire::Link;

const SIZES: Sizes = Sizes { vocabulary: 37, length: 5, hidden: 12, heads: 3, layers: 1 };

fn compiled(rounding: Rounding) -> (Model, Vec<Vec<f32>>) {
    let program = encoder(SIZES, 11);
    let inputs: Vec<Vec<f32>> = (0..12).map(|i| tokens(SIZES, 1 + i % 5, i as u64)).collect();
    let calibration = calibrate(&program, &inputs);
    let options = graph::Options { rounding, ..graph::Options::default() };
    let model = graph::lower(program.source, program.floats, &calibration, &options);
    (model.unwrap(), inputs)
}

#[test]
fn an_encoder_equals_the_interpreter_at_the_cost_that_was_planned() {
    let (model, inputs) = compiled(Rounding::Exact);
    let values = inputs[..3].concat();
    let want = clear(&model, &values);
    for (batch, offline) in [(1, 0), (2, 0), (2, 1)] {
        let [batch, offline] = [batch, offline].map(NonZeroU32::new);
        let settings = Settings { batch, offline, ..Settings::default() };
        let (answer, server) = run_with(&model, settings, &values);
        assert_eq!(answer.results, want, "{settings:?}");
        costs_as_planned(&answer, &server.unwrap(), 3);
    }
}

/// Norms and softmaxes of a graph by circuits, all else by default.
fn rows_by_circuits(graph: &graph::Graph) -> OptionsByStep {
    let mut by_step = OptionsByStep::default();
    for (index, node) in graph.nodes.iter().enumerate() {
        if node.op.is::<LayerNorm>() || node.op.is::<Softmax>() {
            by_step.set(index, "rows4".parse().unwrap());
        }
    }
    by_step
}

#[test]
fn rows_by_circuits_equal_the_interpreter_at_the_cost_that_was_planned() {
    let (model, inputs) = compiled(Rounding::Exact);
    let values = inputs[..2].concat();
    let want = clear(&model, &values);
    let rounds = |plan: &Plan| Report::predicted(plan, 2).total.rounds;
    for (batch, offline) in [(1, 0), (2, 0), (2, 1)] {
        let [batch, offline] = [batch, offline].map(NonZeroU32::new);
        let settings = Settings { batch, offline, ..Settings::default() };
        let by_step = rows_by_circuits(&model.graph);
        let plan = Plan::chosen(model.graph.clone(), settings, by_step).unwrap();
        assert_eq!(Plan::from_offer(&plan.offer()).unwrap().digest(), plan.digest());
        let (answer, server) = run_planned(&plan, &model, &values);
        assert_eq!(answer.results, want, "{settings:?}");
        costs_as_planned(&answer, &server.unwrap(), 2);
        // Three norms and a softmax.
        let plain = Plan::new(model.graph.clone(), settings).unwrap();
        assert!(rounds(&plan) + 100 < rounds(&plain), "{settings:?}");
    }
    let all = planner::uniform(&model.graph, Settings::default(), StepOptions::CIRCUITS).unwrap();
    let (answer, server) = run_planned(&all, &model, &values);
    assert_eq!(answer.results, want);
    costs_as_planned(&answer, &server.unwrap(), 2);
}

/// All that can go in turns does, with chained digits and rows by circuits, and softmaxes may be
/// shallow; or none of it.
fn in_turns(graph: &graph::Graph, [turns, shallow]: [bool; 2]) -> OptionsByStep {
    let mut by_step = OptionsByStep::default();
    let plain = Plan::new(graph.clone(), Settings::default()).unwrap();
    for (index, node) in graph.nodes.iter().enumerate() {
        // An extension that runs with another step has its options.
        let runs = plain.steps()[index].composed().is_some();
        let options = match () {
            () if node.op.is::<LayerNorm>() || node.op.is::<Softmax>() => "rows-chain",
            () if node.op.is::<Gelu>() => "tables-chain",
            () if turns && runs && node.op.is::<Extend>() => "turns",
            () => continue,
        };
        let options: StepOptions = options.parse().unwrap();
        let shallow = shallow && node.op.is::<Softmax>();
        by_step.set(index, StepOptions { turns, shallow, ..options });
    }
    by_step
}

#[test]
fn parts_in_turns_equal_the_interpreter_at_the_planned_cost_in_fewer_rounds() {
    let (model, inputs) = compiled(Rounding::Exact);
    let values = inputs[..2].concat();
    let want = clear(&model, &values);
    for (batch, offline) in [(1, 0), (2, 1)] {
        let [batch, offline] = [batch, offline].map(NonZeroU32::new);
        let settings = Settings { batch, offline, ..Settings::default() };
        let plans = [[false, false], [true, false], [true, true]].map(|how| {
            let by_step = in_turns(&model.graph, how);
            Plan::chosen(model.graph.clone(), settings, by_step).unwrap()
        });
        let rounds = plans.each_ref().map(|plan| Report::predicted(plan, 2).total.rounds);
        assert!(rounds[2] < rounds[1] && rounds[1] < rounds[0], "{rounds:?}");
        for plan in plans.iter().skip(1) {
            assert_eq!(Plan::from_offer(&plan.offer()).unwrap().digest(), plan.digest());
            let (answer, server) = run_planned(plan, &model, &values);
            assert_eq!(answer.results, want, "{settings:?}");
            costs_as_planned(&answer, &server.unwrap(), 2);
        }
    }
    let wan = planner::Conditions { rates: planner::Rates::reference(), link: Some(Link::WAN) };
    let found = planner::best(&model.graph, Settings::default(), &wan).unwrap().plan;
    let steps = 0..found.steps().len();
    assert!(steps.clone().any(|step| found.options().of(step).turns));
    let (answer, server) = run_planned(&found, &model, &values);
    assert_eq!(answer.results, want);
    costs_as_planned(&answer, &server.unwrap(), 2);
}

#[test]
fn what_rows_write_is_extended_by_their_own_step() {
    let (model, inputs) = compiled(Rounding::Exact);
    let graph = &model.graph;
    let plan =
        Plan::chosen(graph.clone(), Settings::default(), in_turns(graph, [true, true])).unwrap();
    let mut found = 0;
    for (index, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.op.is::<Extend>()) {
        let host = graph.nodes.iter().find(|other| other.output == node.inputs[0]).unwrap();
        if !host.op.is::<LayerNorm>() && !host.op.is::<Softmax>() {
            continue;
        }
        let step = &plan.steps()[index];
        assert_eq!((step.cost().rounds, step.protocol()), (0, format!("with {}", host.name)));
        let mut options = plan.options().clone();
        options.set(index, "turns".parse().unwrap());
        let refused = Plan::chosen(graph.clone(), Settings::default(), options).unwrap_err();
        assert!(refused.to_string().contains("runs with"), "{refused}");
        found += 1;
    }
    assert!(found > 1);
    let (answer, server) = run_planned(&plan, &model, &inputs[0]);
    assert_eq!(answer.results, clear(&model, &inputs[0]));
    costs_as_planned(&answer, &server.unwrap(), 1);
}

#[test]
fn turns_of_what_one_party_begins_are_refused() {
    let (model, _) = compiled(Rounding::Exact);
    let refused = |wanted: fn(&Op) -> bool, options: &str| {
        let mut by_step = OptionsByStep::default();
        let index = model.graph.nodes.iter().position(|node| wanted(&node.op)).unwrap();
        by_step.set(index, options.parse().unwrap());
        Plan::chosen(model.graph.clone(), Settings::default(), by_step).is_err()
    };
    assert!(!refused(|op| op.is::<Softmax>(), "chain+turns"));
    assert!(!refused(|op| op.is::<Softmax>(), "rows-chain+turns+shallow"));
    assert!(refused(|op| op.is::<LayerNorm>(), "rows-chain+turns+shallow"));
    for options in ["turns", "circuits+turns", "masked+turns", "chain+shallow"] {
        assert!(refused(|op| op.is::<Softmax>(), options), "{options}");
    }
    for options in ["turns", "digits4+turns", "ahead+turns"] {
        assert!(refused(|op| op.is::<Linear>(), options), "{options}");
    }
    let exact: fn(&Op) -> bool =
        |op| op.get::<Linear>().is_some_and(|linear| linear.rounding == Rounding::Exact);
    assert!(!refused(exact, "ahead+chain+turns"));
    assert!(refused(|op| op.is::<graph::ops::Relu>(), "chain+turns"));
}

/// A suite that has circuits for what it can runs transformers by OT, as ever.
#[test]
fn circuits_for_all_a_suite_has_leave_rows_to_transfers() {
    let (mut model, _) = compiled(Rounding::Exact);
    let circuits = |plan: &Plan, wanted: fn(&Op) -> bool| {
        let steps = plan.steps().iter().filter(|step| {
            let node = step.node.and_then(|index| plan.graph().nodes.get(index));
            node.is_some_and(|node| wanted(&node.op))
        });
        steps.map(|step| step.demand().circuits.len()).sum::<usize>()
    };
    let rows: fn(&Op) -> bool = |op| op.is::<LayerNorm>() || op.is::<Softmax>();
    let by_step = rows_by_circuits(&model.graph);
    let chosen = Plan::chosen(model.graph.clone(), Settings::default(), by_step).unwrap();
    assert!(circuits(&chosen, rows) >= 3 && circuits(&chosen, |op| op.is::<Linear>()) == 0);
    model.graph.nonlinear = graph::Nonlinear::Gc;
    let plan = Plan::new(model.graph, Settings::default()).unwrap();
    assert!(circuits(&plan, rows) == 0 && circuits(&plan, |op| op.is::<Linear>()) > 0);
}

#[test]
fn attention_of_many_heads_is_folded_under_keys_of_the_setup() {
    let sizes = Sizes { vocabulary: 7, length: 48, hidden: 128, heads: 8, layers: 2 };
    let program = encoder(sizes, 12);
    let inputs: Vec<Vec<f32>> = (0..6).map(|i| tokens(sizes, 9 * i + 1, i as u64)).collect();
    let calibration = calibrate(&program, &inputs);
    let options = graph::Options::default();
    let model = graph::lower(program.source, program.floats, &calibration, &options).unwrap();
    let (answer, server) = run(&model, Reveal::Output, &inputs[3]);
    assert!(
        answer
            .plan
            .steps()
            .iter()
            .any(|step| step.linear().is_some_and(|l| l.keys().unfold.is_some()))
    );
    costs_as_planned(&answer, &server.unwrap(), 1);
    near(&answer.results, &clear(&model, &inputs[3]));
}

#[test]
fn dense_layers_run_folded_where_a_plan_says_so() {
    let sizes = Sizes { vocabulary: 7, length: 8, hidden: 128, heads: 2, layers: 1 };
    let inputs: Vec<Vec<f32>> = (0..6).map(|i| tokens(sizes, 2 * i + 1, i as u64)).collect();
    let mut folded = 0;
    for rounding in [Rounding::Exact, Rounding::Stochastic] {
        let program = encoder(sizes, 13);
        let calibration = calibrate(&program, &inputs);
        let options = graph::Options { rounding, ..graph::Options::default() };
        let model = graph::lower(program.source, program.floats, &calibration, &options).unwrap();
        let plain = Plan::new(model.graph.clone(), Settings::default()).unwrap();
        for options in (1..=8).flat_map(|m| [format!("folded{m}"), format!("folded{m}+ahead")]) {
            let options = options.parse().unwrap();
            let plan = planner::uniform(&model.graph, Settings::default(), options).unwrap();
            if plan.options().is_empty() {
                continue;
            }
            let (answer, server) = run_planned(&plan, &model, &inputs[3]);
            costs_as_planned(&answer, &server.unwrap(), 1);
            match rounding {
                Rounding::Exact => assert_eq!(answer.results, clear(&model, &inputs[3])),
                Rounding::Stochastic => near(&answer.results, &clear(&model, &inputs[3])),
            }
            // Products of shared matrices may be folded where no dense layer is.
            let mut nodes = model.graph.nodes.iter().enumerate();
            let chosen = |at| !plan.options().of(at).is_none();
            if nodes.any(|(at, node)| node.op.is::<graph::Linear>() && chosen(at)) {
                folded += 1;
                assert!(dense_bytes(&plan) < dense_bytes(&plain), "{options}");
            }
        }
    }
    assert!(folded > 4, "{folded}");
}

/// Bytes online of the layers of a plan whose weights are the server's. Products of shared matrices may take more where
/// they are folded.
fn dense_bytes(plan: &Plan) -> u64 {
    let nodes = plan.graph().nodes.iter();
    let dense = plan.steps().iter().zip(nodes).filter(|(_, node)| node.op.is::<graph::Linear>());
    dense.map(|(step, _)| step.spent().cost.bytes()).sum()
}

/// In the same directions.
#[track_caller]
fn near(results: &[Vec<i64>], wanted: &[Vec<i64>]) {
    for (got, want) in results.iter().zip(wanted) {
        let product =
            |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| (a * b) as f64).sum::<f64>();
        let cosine = product(got, want) / (product(got, got) * product(want, want)).sqrt();
        assert!(cosine > 0.995, "{cosine}: {got:?} for {want:?}");
    }
}

#[test]
fn an_encoder_that_rounds_stochastically_stays_near_the_interpreter() {
    let (model, inputs) = compiled(Rounding::Stochastic);
    let values = inputs[..4].concat();
    let (answer, server) = run(&model, Reveal::Output, &values);
    costs_as_planned(&answer, &server.unwrap(), 4);
    near(&answer.results, &clear(&model, &values));
}

#[test]
fn smooth_maxima_by_newtons_iteration_equal_the_interpreter_at_the_cost_that_was_planned() {
    let program = smooth_encoder(SIZES, 11);
    let inputs: Vec<Vec<f32>> = (0..12).map(|i| tokens(SIZES, 1 + i % 5, i as u64)).collect();
    let calibration = calibrate(&program, &inputs);
    let options = graph::Options {
        rounding: Rounding::Exact,
        suite: "comet".into(),
        newton: true,
        ..graph::Options::default()
    };
    let model = graph::lower(program.source, program.floats, &calibration, &options).unwrap();
    let norms = model.graph.nodes.iter().filter(|node| node.op.is::<LayerNorm>());
    assert!(norms.count() > 0);
    let by_step = rows_by_circuits(&model.graph);
    let refused = Plan::chosen(model.graph.clone(), Settings::default(), by_step).unwrap_err();
    assert!(refused.to_string().contains("circuit of Newton's iterations"), "{refused}");
    let values = inputs[..2].concat();
    let want = clear(&model, &values);
    for (batch, offline) in [(1, 0), (2, 1)] {
        let [batch, offline] = [batch, offline].map(NonZeroU32::new);
        let settings = Settings { batch, offline, ..Settings::default() };
        let (answer, server) = run_with(&model, settings, &values);
        assert_eq!(answer.results, want, "{settings:?}");
        costs_as_planned(&answer, &server.unwrap(), 2);
    }
}
