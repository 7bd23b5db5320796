//! Runs the steps of a plan, one batch of inputs at a time, at both parties.

pub(crate) mod tensors;
pub(crate) mod weights;

use mpc::{Correlations, Demand, Share, open};
use ring::Random;
use wire::{Channel, Phase, Result};

use crate::linear::context::{Context, Party, input};
use crate::linear::protocol::{Exchange, Preprocessed};
use crate::plan::Plan;
use crate::plan::sliced::Feed;
use crate::plan::step::{Action, Step, missing};
use crate::preprocess::correlations::CorrelationSource;
use crate::preprocess::layers::{self, Inference, Preprocessor, layers_of};
use crate::preprocess::segments::segments;
use tensors::Tensors;

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

/// Runs all steps, each segment after its preprocessing. The client gets the opened
/// words, the server nothing.
pub(crate) fn run(
    channel: &mut Channel,
    plan: &Plan,
    party: &Party<'_>,
    source: &mut CorrelationSource,
    rng: &mut Random,
) -> Result<Vec<u64>> {
    run_watched(channel, plan, party, source, rng, &mut |_| {})
}

/// Runs as [`run`] does; `watch` sees this party's share after each step.
pub(crate) fn run_watched(
    channel: &mut Channel,
    plan: &Plan,
    party: &Party<'_>,
    source: &mut CorrelationSource,
    rng: &mut Random,
    watch: &mut dyn FnMut(&Share),
) -> Result<Vec<u64>> {
    let input = input_of(party, plan)?;
    let mut results = Tensors::new(plan, vec![(plan.graph().input, input)]);
    run_on(channel, plan, party, &mut results, source, rng, watch)?;
    Ok(results.into_opened())
}

/// Runs all steps on the tensors that are there.
fn run_on(
    channel: &mut Channel,
    plan: &Plan,
    party: &Party<'_>,
    tensors: &mut Tensors,
    source: &mut CorrelationSource,
    rng: &mut Random,
    watch: &mut dyn FnMut(&Share),
) -> Result<()> {
    source.set_threads(party.threads());
    for segment in segments(plan.steps()) {
        let steps = plan.steps().iter().enumerate();
        let steps = steps.skip(segment.start).take(segment.len());
        let demand: Demand =
            layers::demand(steps.clone().map(|(_, step)| step), Step::demand_ahead);
        let mut ots = source.prepare(channel, &demand)?;
        let mut ready = std::collections::BTreeMap::new();
        for exchange in [Exchange::ObliviousTransfer, Exchange::Encryption] {
            let some = layers_of(steps.clone(), exchange, false);
            let mut preprocessor = Preprocessor { channel, party: *party, source, rng };
            ready.extend(preprocessor.layers(&some, exchange, &mut ots)?);
        }
        for (index, step) in steps {
            channel.enter(Phase::Online, Some(index));
            let inputs = tensors.take_inputs(step, index)?;
            let mut feed = feed_of(step, index, &mut ots, source);
            let result = apply(channel, step, party, inputs, &mut feed, ready.remove(&index), rng)?;
            watch(&result);
            tensors.put(step, result);
        }
    }
    Ok(())
}

/// What `step` takes, the plan's `index`-th: part of `ots`, or what it makes itself.
fn feed_of<'a>(
    step: &Step,
    index: usize,
    ots: &'a mut Correlations,
    source: &'a mut CorrelationSource,
) -> Feed<'a> {
    if step.feeds_itself() { Feed::Later(source, index) } else { Feed::Made(ots) }
}

/// Runs all steps on what was preprocessed for one run.
pub(crate) fn run_prepared(
    channel: &mut Channel,
    plan: &Plan,
    party: &Party<'_>,
    inference: Inference,
    rng: &mut Random,
) -> Result<Vec<u64>> {
    let input = input_of(party, plan)?;
    let mut results = Tensors::new(plan, vec![(plan.graph().input, input)]);
    run_prepared_on(channel, plan, party, &mut results, inference, rng)?;
    Ok(results.into_opened())
}

/// Runs all steps on the tensors that are there and what was preprocessed for one run.
fn run_prepared_on(
    channel: &mut Channel,
    plan: &Plan,
    party: &Party<'_>,
    tensors: &mut Tensors,
    inference: Inference,
    rng: &mut Random,
) -> Result<()> {
    let Inference { mut ots, mut layers } = inference;
    for (index, step) in plan.steps().iter().enumerate() {
        channel.enter(Phase::Online, Some(index));
        let inputs = tensors.take_inputs(step, index)?;
        let (mut feed, ready) = (Feed::Made(&mut ots), layers.remove(&index));
        let result = apply(channel, step, party, inputs, &mut feed, ready, rng)?;
        tensors.put(step, result);
    }
    Ok(())
}

/// Runs all steps of `plan` between two parties that hold shares already, after what the plan
/// preprocesses. `shares` are this party's shares of the graph's first tensors, in the order of
/// their indices; the result is its share of what the last step writes.
///
/// # Errors
/// [`wire::Error::Misuse`] for shares that do not fit the plan, [`wire::Error::Peer`],
/// [`wire::Error::Transport`].
pub fn run_shares(
    channel: &mut Channel,
    plan: &Plan,
    party: &Party<'_>,
    shares: Vec<Share>,
    source: &mut CorrelationSource,
    rng: &mut Random,
) -> Result<Share> {
    let mut tensors = Tensors::new(plan, (0..).zip(shares).collect());
    if plan.settings().store() > 0 {
        let mut preprocessor = Preprocessor { channel, party: *party, source, rng };
        let inference = preprocessor.run(plan.steps())?;
        run_prepared_on(channel, plan, party, &mut tensors, inference, rng)?;
    } else {
        run_on(channel, plan, party, &mut tensors, source, rng, &mut |_| {})?;
    }
    tensors.into_last()
}

/// Runs one step on this party's shares of its inputs.
fn apply(
    channel: &mut Channel,
    step: &Step,
    party: &Party<'_>,
    inputs: Vec<Share>,
    feed: &mut Feed<'_>,
    preprocessed: Option<Preprocessed>,
    rng: &mut Random,
) -> Result<Share> {
    match &step.action {
        Action::Local(local) => local.run(channel.role(), &inputs, party.constants(step.node)),
        Action::Protocol(composed) => composed.run(channel, inputs, feed),
        Action::Linear(layer) => {
            let cx = &mut Context { channel, party: *party, rng, node: step.node, feed };
            layer.run(cx, inputs, preprocessed)
        }
        Action::Reveal(shown) => {
            Ok(Share::new(open::to_client(channel, input(&inputs, 0)?)?, shown.bits))
        }
    }
}
