//! Runs the steps of a plan, one batch of inputs at a time, at both parties.

use mpc::linear::coefficient::{self, Worker};
use mpc::linear::falcon::Small;
use mpc::linear::lola;
use mpc::linear::shared;
use mpc::{Need, Share, open, prime};
use ring::Random;
use wire::{Channel, Error, Packed, Phase, Result, Segment};

use crate::ahead::{self, Inference, LayerAhead};
use crate::exchange;
use crate::keys::{ClientKeys, ServerKeys};
use crate::local;
use crate::nonlinear::{Feed, Sliced};
use crate::offline::{Offline, stretches};
use crate::plan::Plan;
use crate::prepared::Prepared;
use crate::steps::{
    Action, EvaluateStep, Fitted, LinearStep, ProductStep, SlotsStep, Step, missing,
};
use crate::tensors::Tensors;

/// What a party brings to a run.
pub(crate) enum Party<'a> {
    /// Keys and the quantised inputs of one run, one after another.
    Client { keys: &'a ClientKeys, input: &'a [i64], threads: usize },
    /// Public keys and transformed weights.
    Server { keys: &'a ServerKeys, prepared: &'a Prepared, threads: usize },
}

impl Party<'_> {
    /// This party's share of the input of a run.
    fn input(&self, plan: &Plan) -> Result<Share> {
        let graph = plan.graph();
        let input = graph.tensors.get(graph.input).ok_or_else(|| missing(graph.input))?;
        let known = match self {
            Self::Client { input, .. } => Some(*input),
            Self::Server { .. } => None,
        };
        Ok(Share::known(known, input.len() * plan.settings().batch(), input.format.bits))
    }

    /// Threads that it may use; the other party's may differ.
    pub(crate) fn threads(&self) -> usize {
        match self {
            Self::Client { threads, .. } | Self::Server { threads, .. } => *threads,
        }
    }
}

/// Runs all steps, each stretch after its offline phase. The client gets the opened
/// words, the server nothing.
pub(crate) fn run(
    channel: &mut Channel,
    plan: &Plan,
    party: &mut Party<'_>,
    offline: &mut Offline,
    rng: &mut Random,
) -> Result<Vec<u64>> {
    run_watched(channel, plan, party, offline, rng, &mut |_| {})
}

/// Like [`run`]; `watch` sees this party's share after each step.
pub(crate) fn run_watched(
    channel: &mut Channel,
    plan: &Plan,
    party: &mut Party<'_>,
    offline: &mut Offline,
    rng: &mut Random,
    watch: &mut dyn FnMut(&Share),
) -> Result<Vec<u64>> {
    let input = party.input(plan)?;
    let mut results = Tensors::new(plan, vec![(plan.graph().input, input)]);
    run_on(channel, plan, party, &mut results, offline, rng, watch)?;
    Ok(results.into_opened())
}

/// Runs all steps on the tensors that are there.
pub(crate) fn run_on(
    channel: &mut Channel,
    plan: &Plan,
    party: &mut Party<'_>,
    tensors: &mut Tensors,
    offline: &mut Offline,
    rng: &mut Random,
    watch: &mut dyn FnMut(&Share),
) -> Result<()> {
    offline.set_threads(party.threads());
    for stretch in stretches(plan.steps()) {
        let steps = plan.steps().iter().enumerate();
        let steps = steps.skip(stretch.start).take(stretch.len());
        let need: Need = ahead::need(steps.clone().map(|(_, step)| step), Step::need_ahead);
        let mut pads = offline.prepare(channel, &need)?;
        let mut layers =
            ahead::transferred(channel, steps.clone(), party, &mut pads, offline, rng)?;
        let linear = exchange::chosen(steps.clone());
        layers.extend(exchange::encrypted(channel, &linear, party, rng)?);
        for (index, step) in steps {
            channel.enter(Phase::Online, Some(index));
            let inputs = tensors.take_inputs(step, index)?;
            let mut feed = Feed::of(step, index, &mut pads, offline);
            let prepared = layers.remove(&index);
            let result = apply(channel, step, party, inputs, &mut feed, prepared, rng)?;
            watch(&result);
            tensors.put(step, result);
        }
    }
    Ok(())
}

/// Runs all steps on what was prepared for one run.
pub(crate) fn run_prepared(
    channel: &mut Channel,
    plan: &Plan,
    party: &mut Party<'_>,
    inference: Inference,
    rng: &mut Random,
) -> Result<Vec<u64>> {
    let input = party.input(plan)?;
    let mut results = Tensors::new(plan, vec![(plan.graph().input, input)]);
    run_prepared_on(channel, plan, party, &mut results, inference, rng)?;
    Ok(results.into_opened())
}

/// Runs all steps on the tensors that are there and what was prepared for one run.
pub(crate) fn run_prepared_on(
    channel: &mut Channel,
    plan: &Plan,
    party: &mut Party<'_>,
    tensors: &mut Tensors,
    inference: Inference,
    rng: &mut Random,
) -> Result<()> {
    let Inference { mut pads, mut layers } = inference;
    for (index, step) in plan.steps().iter().enumerate() {
        channel.enter(Phase::Online, Some(index));
        let inputs = tensors.take_inputs(step, index)?;
        let (mut feed, ahead) = (Feed::Made(&mut pads), layers.remove(&index));
        let result = apply(channel, step, party, inputs, &mut feed, ahead, rng)?;
        tensors.put(step, result);
    }
    Ok(())
}

/// Runs one step on this party's shares of its inputs.
fn apply(
    channel: &mut Channel,
    step: &Step,
    party: &mut Party<'_>,
    inputs: Vec<Share>,
    feed: &mut Feed<'_>,
    ahead: Option<LayerAhead>,
    rng: &mut Random,
) -> Result<Share> {
    let input = |i: usize| inputs.get(i).ok_or_else(|| Error::misuse("a step without input"));
    match &step.action {
        Action::Linear(linear) => {
            let bits = linear.layer.plain_bits();
            let expanded = match linear.positions {
                Some(sides) => Some(local::one_hot(channel.role(), sides, input(0)?, bits)),
                None => None,
            };
            let x = match &expanded {
                Some(expanded) => expanded,
                None => input(0)?,
            };
            let addend = inputs.get(1);
            let y = match ahead {
                Some(ahead) => finish_ahead(channel, step, linear, party, ahead, x, addend)?,
                None => multiply(channel, step, linear, party, x, addend, rng)?,
            };
            drop(inputs);
            finish(channel, linear.truncate.as_ref(), y, feed)
        }
        Action::Transfer(layer) => {
            let Some(LayerAhead::Transfer(ahead)) = ahead else {
                return Err(Error::misuse("a layer that was not prepared"));
            };
            let mut products = layer.products(channel, ahead, party, step, input(0)?)?;
            for extension in &layer.extensions {
                products = fit(channel, extension, vec![products], feed)?;
            }
            let y = layer.results(&products, party, step, inputs.get(1))?;
            let y = layer.rescaled(channel.role(), y)?;
            drop(inputs);
            finish(channel, layer.truncate.as_ref(), y, feed)
        }
        Action::Product(product) => {
            let y = multiply_shared(channel, product, party, input(0)?, input(1)?, rng)?;
            let y = y.plus(channel.role(), product.half);
            drop(inputs);
            finish(channel, product.truncate.as_ref(), y, feed)
        }
        Action::Evaluate(evaluate) => evaluated(channel, evaluate, party, rng),
        Action::Slots(slots) => slot_products(channel, step, slots, party, input(0)?, rng),
        Action::Known(modulus) => Ok(prime::known(input(0)?, *modulus)),
        Action::Small(Some(small)) => small.run(channel, input(0)?, rng),
        Action::Small(None) => Ok(Small::known(input(0)?)),
        Action::Nonlinear(sliced) => sliced.run(channel, inputs, feed),
        Action::Fitted(fitted) => fit(channel, fitted, inputs, feed),
        Action::Arrange { places, inputs: each } => Ok(local::arrange(input(0)?, places, *each)),
        Action::Concat { lengths } => Ok(local::concat(&inputs, lengths)),
        Action::Offset => match party {
            Party::Client { .. } => input(0).cloned(),
            Party::Server { prepared, .. } => {
                Ok(local::offset(input(0)?, prepared.constants(step)?))
            }
        },
        Action::SumPool { windows, inputs: each, modulus } => {
            Ok(local::pool(input(0)?, windows, *each, *modulus))
        }
        Action::Sum(sum) => {
            let total = local::add(channel.role(), sum, input(0)?, input(1)?)?;
            drop(inputs);
            finish(channel, sum.truncate.as_ref(), total, feed)
        }
        Action::Reshape => input(0).cloned(),
        Action::Narrow(bits) => input(0)?.narrow(*bits),
        Action::Features(tiles) => Ok(tiles.features(input(0)?)),
        Action::Gather(tiles) => Ok(tiles.outputs(input(0)?)),
        Action::Open { bits, .. } => Ok(Share::new(open::to_client(channel, input(0)?)?, *bits)),
    }
}

/// A protocol between two constants.
fn fit(
    channel: &mut Channel,
    fitted: &Fitted,
    inputs: Vec<Share>,
    feed: &mut Feed<'_>,
) -> Result<Share> {
    let role = channel.role();
    let mut ready = Vec::with_capacity(inputs.len());
    for (share, place) in inputs.into_iter().zip(0..) {
        let width = fitted.narrow.and_then(|widths| widths.get(place).copied());
        let share = share.plus(role, fitted.before);
        let share = share.narrow(width.unwrap_or(share.bits()))?;
        ready.push(match fitted.transpose {
            Some(sides) => local::transpose(&share, sides),
            None => share,
        });
    }
    let result = fitted.sliced.run(channel, ready, feed)?;
    let result = match fitted.transpose {
        Some([rows, columns]) => local::transpose(&result, [columns, rows]),
        None => result,
    };
    Ok(result.plus(role, fitted.after))
}

/// A product of two shared tensors.
fn multiply_shared(
    channel: &mut Channel,
    product: &ProductStep,
    party: &mut Party<'_>,
    a: &Share,
    b: &Share,
    rng: &mut Random,
) -> Result<Share> {
    let degree = product.layer.params().degree();
    let worker = &mut Worker { rng, threads: party.threads() };
    match party {
        Party::Client { keys, .. } => {
            shared::client(channel, &product.layer, keys.for_degree(degree)?, a, b, worker)
        }
        Party::Server { keys, .. } => {
            let (public, unfold) = (keys.for_degree(degree)?, keys.for_unfolding(degree));
            let keys = shared::ServerKeys { public, unfold };
            shared::server(channel, &product.layer, keys, a, b, worker)
        }
    }
}

/// The exact truncation that may follow.
fn finish(
    channel: &mut Channel,
    truncate: Option<&Sliced>,
    y: Share,
    feed: &mut Feed<'_>,
) -> Result<Share> {
    match truncate {
        Some(sliced) => sliced.run(channel, vec![y], feed),
        None => Ok(y),
    }
}

/// A linear layer that was prepared.
fn finish_ahead(
    channel: &mut Channel,
    step: &Step,
    linear: &LinearStep,
    party: &Party<'_>,
    ahead: LayerAhead,
    x: &Share,
    addend: Option<&Share>,
) -> Result<Share> {
    match (ahead, party) {
        (LayerAhead::Client(ahead), Party::Client { .. }) => {
            ahead.run(channel, &linear.layer, x, addend)
        }
        (LayerAhead::Server(ahead), Party::Server { prepared, .. }) => {
            ahead.run(channel, &linear.layer, prepared.weights(step)?, x, addend)
        }
        _ => Err(Error::misuse("a layer prepared for the other party")),
    }
}

/// A linear layer on packed slots.
fn slot_products(
    channel: &mut Channel,
    step: &Step,
    SlotsStep { layer, bits, .. }: &SlotsStep,
    party: &mut Party<'_>,
    x: &Share,
    rng: &mut Random,
) -> Result<Share> {
    let worker = &mut Worker { rng, threads: party.threads() };
    let mut words = match party {
        Party::Client { keys, .. } => {
            layer.client(channel, keys.for_slots()?, x.words(), worker)?
        }
        Party::Server { keys, prepared, .. } => {
            let (keys, weights) = (keys.for_slots()?, prepared.slot_weights(step)?);
            layer.server(channel, keys, weights, x.words(), worker)?
        }
    };
    Ok(Share::new(std::mem::take(&mut *words), *bits))
}

/// Messages of these layouts.
fn receive_all<const TAG: u8>(
    channel: &mut Channel,
    layouts: Vec<Vec<Segment>>,
) -> Result<Vec<Packed<TAG>>> {
    layouts.iter().map(|layout| channel.receive(layout)).collect()
}

/// A whole network under encryption: request and answer.
fn evaluated(
    channel: &mut Channel,
    EvaluateStep { plan, bits, .. }: &EvaluateStep,
    party: &mut Party<'_>,
    rng: &mut Random,
) -> Result<Share> {
    let worker = &mut Worker { rng, threads: party.threads() };
    match party {
        Party::Client { keys, input, .. } => {
            let keys = keys.for_evaluation()?;
            for prime in 0..plan.primes().len() {
                let request = keys.codec.encrypt(plan, &keys.secret, input, prime, worker)?;
                for message in lola::request_messages(plan, request, prime)? {
                    channel.send(&message)?;
                }
            }
            // The server sends nothing before it has evaluated the whole network.
            channel.expect_silence(true)?;
            let answer = receive_all(channel, plan.answer_messages()?)?;
            channel.expect_silence(false)?;
            let results = keys.codec.decrypt(&keys.secret, lola::answer_of(answer))?;
            Ok(Share::new(results.into_iter().map(|v| v as u64).collect(), *bits))
        }
        Party::Server { keys, prepared, .. } => {
            let (keys, weights) = (keys.for_evaluation()?, prepared.network()?);
            let mut layouts = plan.request_messages().into_iter();
            let mut request = |_| {
                let messages = receive_all(channel, layouts.next().unwrap_or_default())?;
                Ok(lola::request_of(plan, messages))
            };
            let answer = lola::answer(plan, keys, weights, &mut request, worker)?;
            for message in lola::answer_messages(plan, answer)? {
                channel.send(&message)?;
            }
            Ok(Share::new(Vec::new(), *bits))
        }
    }
}

fn multiply(
    channel: &mut Channel,
    step: &Step,
    linear: &LinearStep,
    party: &mut Party<'_>,
    x: &Share,
    addend: Option<&Share>,
    rng: &mut Random,
) -> Result<Share> {
    let degree = linear.layer.params().degree();
    let worker = &mut Worker { rng, threads: party.threads() };
    match party {
        Party::Client { keys, .. } => {
            let key = keys.for_degree(degree)?;
            coefficient::client(channel, &linear.layer, key, x, addend, worker)
        }
        Party::Server { keys, prepared, .. } => {
            let key = keys.for_degree(degree)?;
            let weights = prepared.weights(step)?;
            coefficient::server(channel, &linear.layer, key, weights, x, addend, worker)
        }
    }
}
