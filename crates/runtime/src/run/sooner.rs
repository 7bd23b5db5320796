//! The layer that a run asks for before anything else: the first one, where it multiplies the client's input.
//!
//! The server multiplies while both parties make correlations, and answers without being asked again.

use std::sync::Arc;

use mpc::{Correlations, Share};
use wire::{Phase, Result};

use crate::plan::Plan;
use crate::step::context::{Context, Endpoint};
use crate::step::preprocessed::Preprocessed;
use crate::step::sliced::Feed;
use crate::step::{Action, Sooner, Step};
use crate::suites;

/// The first layer of a plan: its step, the step's index.
pub(crate) type First<'a> = (usize, &'a Step, &'a dyn Sooner);

/// Returns the first layer of a plan if steps before it only move elements of the input. Only plans that show the client a
/// result have one: their input is the client's.
pub(crate) fn of(plan: &Plan) -> Option<First<'_>> {
    plan.steps().last()?.reveals()?;
    if !suites::asks_sooner(&plan.graph().suite) {
        return None;
    }
    let mut tensor = plan.graph().input;
    for (index, step) in plan.steps().iter().map(Arc::as_ref).enumerate() {
        if step.reads != [tensor] {
            return None;
        }
        match &step.action {
            Action::Local(local) if local.moves() => tensor = step.writes,
            Action::Linear(layer) => return Some((index, step, layer.sooner()?)),
            _ => return None,
        }
    }
    None
}

/// Asks for that layer of the run's input `x`; returns what it runs with.
///
/// # Errors
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub(crate) fn ask(
    end: &mut Endpoint<'_>,
    plan: &Plan,
    (index, step, layer): First<'_>,
    mut x: Share,
) -> Result<Preprocessed> {
    for step in plan.steps().iter().take(index) {
        if let Action::Local(local) = &step.action {
            x = local.run(end.channel.role(), &[x], None)?;
        }
    }
    end.channel.enter(Phase::Online, Some(index));
    let none = &mut Correlations::default();
    let cx = &mut Context {
        channel: end.channel,
        party: end.party,
        rng: end.rng,
        memory: end.memory,
        index,
        node: step.node,
        preprocessed: None,
        feed: &mut Feed::Ready(none),
    };
    layer.ask(cx, &x)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use graph::Rounding;
    use mpc::compare::Radix;
    use ring::Random;

    use super::*;
    use crate::linear::coefficient::CoefficientLayer;
    use crate::plan::{Reveal, Settings};
    use crate::tests::{clear, costs_as_planned, network, run};

    #[test]
    fn the_first_layer_is_asked_for_before_correlations_are_made() {
        let mut rng = Random::seeded(61);
        let model = network(&mut rng, Rounding::Exact);
        let plan = Plan::new(model.graph.clone(), Settings::default()).unwrap();
        let (index, step, layer) = of(&plan).unwrap();
        assert_eq!((index, step.name.as_str()), (0, "conv1"));
        let [asks, answers] = layer.parts();
        let whole = step.first();
        assert_eq!(asks.cost.then(answers.cost), whole.cost);
        assert_eq!([asks.cost.rounds, answers.cost.rounds], [1, 1]);
        let values: Vec<f32> = rng.uniform(200, 16).iter().map(|w| *w as f32 / 65536.0).collect();
        let (answer, server) = run(&model, Reveal::Output, &values);
        assert_eq!(answer.results, clear(&model, &values));
        costs_as_planned(&answer, &server.unwrap(), 1);
    }

    #[test]
    fn inputs_that_parties_share_are_not_asked_for_sooner() {
        let model = network(&mut Random::seeded(62), Rounding::Exact);
        let whole = Plan::new(model.graph.clone(), Settings::default()).unwrap();
        let node = &model.graph.nodes[0];
        let (linear, bits) = (node.op.get().unwrap(), model.graph.output_of(node).format.bits);
        let layer = CoefficientLayer::new(linear, bits, Radix::Four, 1).unwrap();
        let steps = vec![Step::of_node(&model.graph, 0, Action::linear(layer))];
        let shared = Plan::of_steps(model.graph.clone(), steps, Settings::default());
        assert!(of(&whole).is_some() && of(&shared).is_none());
        assert!(suites::asks_sooner("auto") && !suites::asks_sooner("gala"));
    }
}
