//! Runs the steps of a plan, one batch of inputs at a time, at both parties.

mod moved;
pub(crate) mod sooner;
pub(crate) mod tensors;
pub(crate) mod weights;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use mpc::{Correlations, Demand, Share, open};
use wire::{Phase, Result};

use crate::plan::Plan;
use crate::plan::kind::Kind;
use crate::preprocess::ahead;
use crate::preprocess::layers::{self, Ahead, Inference, early_asks, first_asked, layers_of};
use crate::preprocess::segments::steps_of;
use crate::step::context::{Context, Endpoint, Party, input};
use crate::step::correlations::When;
use crate::step::linear::Exchange;
use crate::step::preprocessed::Preprocessed;
use crate::step::sliced::Feed;
use crate::step::{Action, Step, missing};
use moved::Moved;
use tensors::Tensors;

/// What is told of this party's share of the result of each step.
pub(crate) type Watch<'a> = &'a mut dyn FnMut(&Share);

/// This party's share of the input of a run.
fn input_of(party: &Party<'_>, plan: &Plan) -> Result<Share> {
    let graph = plan.graph();
    let input = graph.tensors.get(graph.input).ok_or_else(|| missing(graph.input))?;
    let known = match party {
        Party::Client { input, .. } => Some(*input),
        Party::Server { .. } => None,
    };
    Ok(Share::known(known, input.len() * plan.settings().batch(), input.format.bits))
}

/// This party's shares of the states before the first input of a session: of zeros.
pub(crate) fn first_states(plan: &Plan) -> Result<Vec<Share>> {
    let graph = plan.graph();
    let states = graph.states.iter().map(|state| {
        let tensor = graph.tensors.get(state.before).ok_or_else(|| missing(state.before))?;
        Ok(Share::known(None, tensor.len(), tensor.format.bits))
    });
    states.collect()
}

/// What was done for a run before it.
pub(crate) enum Before {
    /// All of its preprocessing.
    Preprocessed(Inference),
    /// What the session sent ahead for it, if it is the first.
    Ahead(Ahead),
}

/// Runs all steps of one run of a kind, of which `plan` is the plan, after what was done `before`: on its
/// preprocessing, or each segment after its own. The client gets the opened words, the server nothing. `states` are this party's
/// shares of the states before the run, and those after it. `watch` sees its share after each step.
pub(crate) fn run(
    end: &mut Endpoint<'_>,
    (plan, kind): (&Plan, Kind),
    states: &mut Vec<Share>,
    before: Before,
    watch: Watch<'_>,
) -> Result<Vec<u64>> {
    let input = input_of(&end.party, plan)?;
    let kept = plan.graph().states.iter().map(|state| state.before).zip(states.drain(..));
    let shares = [(plan.graph().input, input)].into_iter().chain(kept).collect();
    let mut results = Tensors::new(plan, shares);
    run_on(end, (plan, kind), &mut results, before, watch)?;
    *states = results.states(plan)?;
    Ok(results.into_opened())
}

/// Runs all steps of `plan` between two parties that hold shares already, from before the last flight
/// of the setup of correlations, as a session does. `shares` are this party's shares of the graph's first tensors, in the order of
/// their indices; the result is its share of what the last step writes.
///
/// # Errors
/// [`wire::Error::Misuse`] for shares that do not fit the plan, [`wire::Error::Peer`],
/// [`wire::Error::Transport`].
pub fn run_shares(end: &mut Endpoint<'_>, plan: &Plan, shares: Vec<Share>) -> Result<Share> {
    let mut tensors = Tensors::new(plan, (0..).zip(shares).collect());
    let stores = plan.settings().store() > 0;
    let ahead = ahead::exchange(end, plan.begins())?;
    end.source.finish(end.channel)?;
    let before = match stores {
        true => Before::Preprocessed(layers::preprocess(end, plan.steps(), ahead)?),
        false => Before::Ahead(ahead),
    };
    run_on(end, (plan, Kind::Whole), &mut tensors, before, &mut |_| {})?;
    tensors.into_last()
}

/// Runs the steps of a run of this kind on the tensors that are there.
fn run_on(
    end: &mut Endpoint<'_>,
    (plan, kind): (&Plan, Kind),
    tensors: &mut Tensors,
    before: Before,
    watch: Watch<'_>,
) -> Result<()> {
    end.source.set_threads(end.party.threads());
    let Ahead { mut asked, ots: mut first, mut together } = match before {
        Before::Ahead(ahead) => ahead,
        Before::Preprocessed(inference) => {
            return run_preprocessed(end, (plan, kind), tensors, inference, watch);
        }
    };
    let segments = plan.segments_of(kind);
    let of = |segment: &Range<usize>| steps_of(plan.steps(), segment);
    let demands: Vec<Demand> = segments.iter().map(|segment| demand_of(of(segment))).collect();
    let (mut early, mut moved) = (None, Moved::default());
    let mut first_layer = match sooner::of(plan) {
        Some(layer) => {
            let x = tensors.share(plan.graph().input)?;
            Some((layer.0, sooner::ask(end, plan, layer, x)?))
        }
        None => None,
    };
    for (place, (segment, demand)) in segments.iter().zip(&demands).enumerate() {
        let steps = of(segment);
        let ots = match early.take() {
            Some(ots) => ots,
            None => end.source.exchange(end.channel, demand, first.take(), When::Later)?,
        };
        let mut correlations = end.source.complete_aside(end.channel, demand, ots)?;
        // The server multiplies, and both make correlations, while they wait in this segment and the next.
        let [sooner, later] = early_asks(place);
        for segment in segments.iter().take(sooner.end).skip(sooner.start) {
            asked.extend(layers::ask_first(end, &first_asked(of(segment)))?);
        }
        if let Some(demand) = demands.get(place + 1) {
            early = end.source.exchange_early(end.channel, demand)?;
        }
        for segment in segments.iter().take(later.end).skip(later.start) {
            asked.extend(layers::ask_first(end, &first_asked(of(segment)))?);
        }
        let mut layers = BTreeMap::new();
        for exchange in [Exchange::ObliviousTransfer, Exchange::Encryption] {
            let some = layers_of(steps.clone(), exchange, false);
            let correlations = &mut correlations;
            let asked = match exchange {
                Exchange::Encryption => &mut asked,
                Exchange::ObliviousTransfer => &mut BTreeMap::new(),
            };
            layers.extend(layers::preprocess_layers(end, &some, exchange, correlations, asked)?);
        }
        for (index, step) in steps {
            if !moved.before((&end.party, end.channel.role()), plan, tensors, index)? {
                continue;
            }
            let preprocessed = layers.remove(&index).or_else(|| together.remove(&index));
            let asked = first_layer.take_if(|(at, _)| *at == index);
            let preprocessed = preprocessed.or(asked.map(|(_, asked)| asked));
            add_own(&end.party, plan, tensors, index)?;
            let makes_more = step.feeds_itself();
            let with = Turn { correlations: &mut correlations, makes_more, preprocessed };
            let result = run_step(end, (index, step), tensors, with)?;
            watch(&result);
            tensors.put(step, result)?;
        }
    }
    Ok(())
}

/// The demand of the steps of a segment.
pub(crate) fn demand_of<'a>(steps: impl Iterator<Item = (usize, &'a Step)> + Clone) -> Demand {
    layers::demand(steps.map(|(_, step)| step), Step::demand_before_run)
}

/// Runs the steps of a run of this kind on what was preprocessed for all steps; the rest is dropped.
fn run_preprocessed(
    end: &mut Endpoint<'_>,
    (plan, kind): (&Plan, Kind),
    tensors: &mut Tensors,
    Inference { mut correlations, mut layers }: Inference,
    watch: Watch<'_>,
) -> Result<()> {
    let mut moved = Moved::default();
    for (index, step) in plan.steps_of(kind).iter().map(Arc::as_ref).enumerate() {
        if !moved.before((&end.party, end.channel.role()), plan, tensors, index)? {
            continue;
        }
        add_own(&end.party, plan, tensors, index)?;
        let preprocessed = layers.remove(&index);
        let with = Turn { correlations: &mut correlations, makes_more: false, preprocessed };
        let result = run_step(end, (index, step), tensors, with)?;
        watch(&result);
        tensors.put(step, result)?;
    }
    Ok(())
}

/// Adds what the client wants to its share of the results, before the first step that ends a plan.
fn add_own(party: &Party<'_>, plan: &Plan, tensors: &mut Tensors, index: usize) -> Result<()> {
    match party {
        Party::Client { added, .. } if !added.is_empty() && index == plan.graph().nodes.len() => {
            tensors.add(plan.graph().output, added)
        }
        _ => Ok(()),
    }
}

/// What a step runs on beside its inputs.
struct Turn<'a> {
    correlations: &'a mut Correlations,
    /// Whether the step makes its correlations itself, part by part.
    makes_more: bool,
    preprocessed: Option<Preprocessed>,
}

/// Runs the plan's `index`-th step on this party's shares of its inputs.
fn run_step(
    end: &mut Endpoint<'_>,
    (index, step): (usize, &Step),
    tensors: &mut Tensors,
    Turn { correlations, makes_more, preprocessed }: Turn<'_>,
) -> Result<Share> {
    let Endpoint { channel, party, source, rng, memory } = end;
    channel.enter(Phase::Online, Some(index));
    let inputs = tensors.take_inputs(step, index)?;
    let feed = &mut match makes_more {
        true => Feed::Later(source, index),
        false => Feed::Ready(correlations),
    };
    match &step.action {
        Action::Local(local) => local.run(channel.role(), &inputs, party.constants(step.node)),
        Action::Protocol(composed) => composed.run(channel, inputs, feed),
        Action::Linear(layer) => {
            let (party, node) = (*party, step.node);
            let cx = &mut Context { channel, party, rng, memory, index, node, preprocessed, feed };
            layer.run(cx, inputs)
        }
        Action::Reveal(shown) => {
            Ok(Share::new(open::to_client(channel, input(&inputs, 0)?)?, shown.bits))
        }
    }
}
