//! Runs the steps of a plan, one input at a time, at both parties.

use std::collections::BTreeMap;

use graph::{Model, Op};
use mpc::linear::coefficient::{self, ServerWeights};
use mpc::{Need, Pads, Share, argmax, extend, lookup, maximum, open, relu, sign, truncate};
use ring::Random;
use ring::word::mask;
use wire::{Channel, Error, Phase, Result, Role};

use crate::keys::{ClientKeys, ServerKeys};
use crate::offline::{Offline, stretches};
use crate::plan::Plan;
use crate::steps::{Action, LinearStep, Step, SumStep, missing};

/// What a party brings to a run.
pub(crate) enum Party<'a> {
    /// Keys and one quantised input.
    Client { keys: &'a ClientKeys, input: &'a [i64] },
    /// Public keys and transformed weights.
    Server { keys: &'a ServerKeys, prepared: &'a Prepared },
}

/// The server's weights, transformed once for all sessions.
#[derive(Default)]
pub(crate) struct Prepared(BTreeMap<usize, ServerWeights>);

impl Prepared {
    pub(crate) fn new(plan: &Plan, model: &Model) -> Result<Self> {
        let mut prepared = BTreeMap::new();
        for step in plan.steps() {
            if let (Some(node), Action::Linear(linear)) = (step.node, &step.action) {
                let Op::Linear(op) = plan.op(node)? else {
                    return Err(Error::misuse("a linear step without a linear node"));
                };
                let weights = model
                    .weights
                    .get(&node)
                    .ok_or_else(|| Error::misuse(format!("node `{}` has no weights", step.name)))?;
                let bias = rounded(&weights.bias, op);
                let ready = ServerWeights::new(&linear.layer, &weights.weight, &bias)?;
                prepared.insert(node, ready);
            }
        }
        Ok(Self(prepared))
    }
}

/// The bias, with the half unit that turns the exact floor into rounding. The
/// stochastic rescale rounds by itself.
fn rounded(bias: &[i64], op: &graph::Linear) -> Vec<i64> {
    let half = match (op.rounding, op.shift) {
        (graph::Rounding::Stochastic, _) | (_, 0) => 0,
        (graph::Rounding::Exact, shift) => 1i64 << (shift - 1),
    };
    bias.iter().map(|b| b + half).collect()
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
    let mut tensors = Tensors::new(plan, party)?;
    let mut opened = Vec::new();
    for stretch in stretches(plan.steps()) {
        let steps = plan.steps().iter().enumerate();
        let steps = steps.skip(stretch.start).take(stretch.len());
        let need: Need = steps.clone().map(|(_, step)| step.need()).sum();
        let mut pads = offline.prepare(channel, &need)?;
        for (index, step) in steps {
            channel.enter(Phase::Online, Some(index));
            let now = pads.split(channel.role(), &step.need())?;
            let inputs = tensors.take_inputs(plan, step, index)?;
            let result = apply(channel, step, party, inputs, now, rng)?;
            if matches!(step.action, Action::Open { .. }) {
                opened = result.words().to_vec();
            }
            watch(&result);
            tensors.put(plan, step, result);
        }
    }
    Ok(opened)
}

/// Shares of the tensors that are still needed.
struct Tensors {
    shares: BTreeMap<usize, Share>,
    /// The step after which each tensor is dropped.
    last_use: BTreeMap<usize, usize>,
    /// What steps without a node work on.
    current: usize,
}

/// Key of the values that flow through steps without a node.
const TAIL: usize = usize::MAX;

impl Tensors {
    fn new(plan: &Plan, party: &Party<'_>) -> Result<Self> {
        let graph = plan.graph();
        let input = graph.tensors.get(graph.input).ok_or_else(|| missing(graph.input))?;
        let known = match party {
            Party::Client { input, .. } => Some(*input),
            Party::Server { .. } => None,
        };
        let share = Share::known(known, input.len(), input.format.bits);
        let mut last_use = BTreeMap::from([(graph.output, usize::MAX)]);
        for (index, step) in plan.steps().iter().enumerate() {
            let node = step.node.and_then(|node| graph.nodes.get(node));
            for tensor in node.iter().flat_map(|node| &node.inputs) {
                let last = last_use.entry(*tensor).or_default();
                *last = (*last).max(index);
            }
        }
        let shares = BTreeMap::from([(graph.input, share)]);
        Ok(Self { shares, last_use, current: graph.output })
    }

    fn take_inputs(&mut self, plan: &Plan, step: &Step, index: usize) -> Result<Vec<Share>> {
        let ids = match step.node.and_then(|node| plan.graph().nodes.get(node)) {
            Some(node) => node.inputs.clone(),
            None => vec![self.current],
        };
        let read = |id: &usize| self.shares.get(id).cloned().ok_or_else(|| missing(*id));
        let inputs = ids.iter().map(read).collect::<Result<_>>()?;
        for id in ids {
            if self.last_use.get(&id).is_some_and(|last| *last <= index) {
                self.shares.remove(&id);
            }
        }
        Ok(inputs)
    }

    fn put(&mut self, plan: &Plan, step: &Step, share: Share) {
        let id = match step.node.and_then(|node| plan.graph().nodes.get(node)) {
            Some(node) => node.output,
            None => {
                self.current = TAIL;
                TAIL
            }
        };
        self.shares.insert(id, share);
    }
}

/// Runs one step on this party's shares of its inputs.
pub(crate) fn apply(
    channel: &mut Channel,
    step: &Step,
    party: &mut Party<'_>,
    inputs: Vec<Share>,
    pads: Pads,
    rng: &mut Random,
) -> Result<Share> {
    let mut inputs = inputs.into_iter();
    let x = inputs.next().ok_or_else(|| Error::misuse("a step without input"))?;
    let other = inputs.next();
    match &step.action {
        Action::Linear(linear) => {
            let addend = other.as_ref();
            let y = multiply(channel, step, linear, party, &x, addend, rng)?;
            match &linear.truncate {
                Some(plan) => truncate::run(channel, plan, &y, pads),
                None => Ok(y),
            }
        }
        Action::Relu(plan) => relu::run(channel, plan, &x, pads),
        Action::MaxPool(plan) => first(maximum::run(channel, plan, &x, None, pads)?),
        Action::SumPool(windows) => Ok(pool(&x, windows)),
        Action::Sum(sum) => {
            let y = other.ok_or_else(|| Error::misuse("a sum of one tensor"))?;
            add(channel, sum, &x, &y, pads)
        }
        Action::Reshape => Ok(x),
        Action::Argmax(plan) => argmax::run(channel, plan, &x, pads),
        Action::Truncate(plan) => truncate::run(channel, plan, &x, pads),
        Action::Extend(plan) => extend::run(channel, plan, &x, pads),
        Action::Signs(plan) => sign::run(channel, plan, &x, pads),
        Action::Lookup(step) => {
            let table = match channel.role() {
                Role::Client => &[],
                Role::Server => step.table.as_slice(),
            };
            lookup::run(channel, &step.plan, &x, table, pads)
        }
        Action::Multiply(plan) => {
            let y = other.ok_or_else(|| Error::misuse("a product of one tensor"))?;
            mpc::multiply::run(channel, plan, &x, &y, pads)
        }
        Action::Open { bits, .. } => Ok(Share::new(open::to_client(channel, &x)?, *bits)),
    }
}

fn first(mut shares: Vec<Share>) -> Result<Share> {
    shares.pop().ok_or_else(|| Error::misuse("a protocol without output"))
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
    match party {
        Party::Client { keys, .. } => {
            let key = keys.for_degree(degree)?;
            coefficient::client(channel, &linear.layer, key, x, addend, rng)
        }
        Party::Server { keys, prepared } => {
            let key = keys.for_degree(degree)?;
            let weights = step.node.and_then(|node| prepared.0.get(&node));
            let weights = weights.ok_or_else(|| Error::misuse("a layer without weights"))?;
            coefficient::server(channel, &linear.layer, key, weights, x, addend, rng)
        }
    }
}

fn pool(x: &Share, windows: &[Vec<usize>]) -> Share {
    let words = x.words();
    let sums = windows.iter().map(|window| {
        let values = window.iter().filter_map(|i| words.get(*i));
        values.fold(0u64, |sum, word| sum.wrapping_add(*word))
    });
    Share::new(sums.collect(), x.bits())
}

fn add(channel: &mut Channel, sum: &SumStep, x: &Share, y: &Share, pads: Pads) -> Result<Share> {
    let half = match (channel.role(), sum.shift) {
        (Role::Server, 1..) => 1u64 << (sum.shift - 1),
        _ => 0,
    };
    let zero = Share::new(vec![half & mask(sum.width); x.len()], sum.width);
    let total = zero
        .add_scaled(&x.narrow(sum.width)?, sum.multipliers[0])
        .add_scaled(&y.narrow(sum.width)?, sum.multipliers[1]);
    match &sum.truncate {
        Some(plan) => truncate::run(channel, plan, &total, pads),
        None => Ok(total),
    }
}
