//! Suites `gazelle` and `gala`: slot-packed encryption for linear layers, oblivious
//! transfer for the rest.
//!
//! A linear layer is up to four steps: shares of the input enter the prime of the layer,
//! products under encryption, shares of the results leave the prime, exact truncation. What
//! only the client knows enters without a word.

use std::collections::{BTreeMap, BTreeSet};

use graph::{Graph, Linear, Node, Tensor, View, ops};
use he::bfv::{Params, RotationKeys};
use mpc::compare::Radix;
use mpc::extend::Sign;
use mpc::prime::{Enter, Leave};
use ring::Modulus;
use wire::{Error, Result};

use super::ending::last;
use super::node_context::NodeContext;
use super::refusal::at;
use super::registered;
use crate::linear::slots::{Packed, Packing, SlotLayer};
use crate::plan::options::StepOptions;
use crate::plan::settings::Settings;
use crate::step::composed::Composed;
use crate::step::local::{Known, WeightedSum};
use crate::step::sliced::{Sliced, truncation};
use crate::step::{Action, Step};

/// Bytes of rotation keys that a party holds.
const MOST_KEY_BYTES: usize = 1 << 30;

pub(super) fn steps(graph: &Graph, settings: Settings, packing: Packing) -> Result<Vec<Step>> {
    one_by_one(settings, packing)?;
    let mut steps = of_nodes(graph, packing, true)?;
    steps.extend(last(graph, settings, StepOptions::default())?);
    Ok(steps)
}

/// Neither batches nor stores.
pub(super) fn one_by_one(settings: Settings, packing: Packing) -> Result<()> {
    if settings.batch() > 1 || settings.store() > 0 {
        let why = format!("suite `{}` runs inputs one by one, unprepared", packing.name());
        return Err(Error::misuse(format!("{why}; drop --batch and --offline, or use suite auto")));
    }
    Ok(())
}

/// The steps of all nodes. Whether the input is `private` to the client; else it is shared.
pub(super) fn of_nodes(graph: &Graph, packing: Packing, private: bool) -> Result<Vec<Step>> {
    // The steps that end a plan write two tensors of their own.
    let next = graph.tensors.len() + 2;
    let facts = facts(graph, private);
    let layers = layers(graph, &facts, packing)?;
    let mut planner = Planner { graph, facts, layers, steps: Vec::new(), next };
    for (index, node) in graph.nodes.iter().enumerate() {
        planner.node(index, node).map_err(|e| at(&node.name, e))?;
    }
    Ok(planner.steps)
}

/// The layers of all linear nodes, under one set of parameters.
pub(super) fn layers(
    graph: &Graph,
    facts: &[Facts],
    packing: Packing,
) -> Result<BTreeMap<usize, Packed>> {
    let layers = shared(each(graph, facts, packing)?)?;
    check_keys(layers.values())?;
    Ok(layers)
}

/// The layers of all linear nodes, each under the cheapest parameters for itself.
fn each(graph: &Graph, facts: &[Facts], packing: Packing) -> Result<BTreeMap<usize, Packed>> {
    let mut layers = BTreeMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let Some(linear) = node.op.get::<Linear>() else { continue };
        let held = facts.get(input(node)).map_or(1, |facts| facts.bits);
        let plain_bits = linear.accumulator_bits.max(width(graph, node, linear)).max(held);
        let layer = packing.layer(&linear.conv, held, plain_bits);
        layers.insert(index, layer.map_err(|e| at(&node.name, e))?);
    }
    Ok(layers)
}

/// The same layers under one set of parameters, so that there is one set of keys: the
/// smallest of theirs that hold them all.
fn shared(layers: BTreeMap<usize, Packed>) -> Result<BTreeMap<usize, Packed>> {
    let mut candidates: Vec<Params> = layers.values().map(|layer| layer.params().clone()).collect();
    candidates.sort_by_key(|params| (params.degree(), params.modulus_bits()));
    candidates.dedup();
    let mut refusal = Ok(layers.clone());
    for params in candidates {
        let moved = |(index, layer): (&usize, &Packed)| Ok((*index, layer.with_params(&params)?));
        match layers.iter().map(moved).collect() {
            Ok(layers) => return Ok(layers),
            error => refusal = error,
        }
    }
    refusal
}

/// A client makes the keys for whatever plan it is offered.
fn check_keys<'a>(layers: impl Iterator<Item = &'a Packed>) -> Result<()> {
    let (mut steps, mut each) = (BTreeSet::new(), 0);
    for layer in layers {
        steps.extend(layer.rotations());
        each = RotationKeys::bytes(layer.params());
    }
    let bytes = each.saturating_mul(steps.len());
    if bytes > MOST_KEY_BYTES {
        let (have, want) = (MOST_KEY_BYTES >> 20, bytes >> 20);
        return Err(Error::misuse(format!(
            "the keys of {} rotations take {want} MB, more than {have}; use smaller layers, or \
             suite auto, which rotates nothing",
            steps.len()
        )));
    }
    Ok(())
}

struct Planner<'a> {
    graph: &'a Graph,
    facts: Vec<Facts>,
    layers: BTreeMap<usize, Packed>,
    steps: Vec<Step>,
    /// The next tensor that is not the graph's.
    next: usize,
}

impl Planner<'_> {
    fn node(&mut self, index: usize, node: &Node) -> Result<()> {
        match (node.op.get::<Linear>(), self.layers.remove(&index)) {
            (Some(linear), Some(layer)) => self.linear(index, node, linear, layer),
            _ => {
                let action = registered::action(&NodeContext::plain(self.graph, node))?;
                self.steps.push(Step::of_node(self.graph, index, action));
                Ok(())
            }
        }
    }

    fn linear(&mut self, index: usize, node: &Node, linear: &Linear, layer: Packed) -> Result<()> {
        let prime = Modulus::new(layer.prime()).ok_or_else(|| Error::misuse("a large prime"))?;
        let (width, outputs) = (width(self.graph, node, linear), layer.outputs());
        let part = |what: &str| format!("{} ({what})", node.name);
        let facts = self.facts.get(input(node)).copied().unwrap_or(Facts::NONE);
        let enter = entry(facts, layer.inputs(), prime)?;
        let entered = self.push(part("enter"), None, vec![input(node)], None, enter);

        // A sum adds the half that rounding takes by itself.
        let half = if linear.addend.is_none() { linear.shift } else { 0 };
        let half = if half == 0 { 0 } else { 1 << (half - 1) };
        let products = Action::linear(SlotLayer { layer, bits: prime.bits(), half });
        let multiplied = self.push(node.name.clone(), Some(index), vec![entered], None, products);

        let last = (linear.shift == 0 && linear.addend.is_none()).then_some(node.output);
        let radix = Radix::fastest(outputs, prime.bits());
        let leave = Sliced::new(outputs, |count| Leave::new(count, prime, width, radix))?;
        let leave = Action::from(leave);
        let left = self.push(part("leave"), None, vec![multiplied], last, leave);
        if last.is_none() {
            let round = round(self.graph, node, linear, outputs)?;
            let reads = [left].into_iter().chain(node.inputs.get(1).copied()).collect();
            self.push(part("round"), None, reads, Some(node.output), round);
        }
        Ok(())
    }

    /// Adds a step that writes a tensor of its own if not one of the graph's; says which.
    fn push(
        &mut self,
        name: String,
        node: Option<usize>,
        reads: Vec<usize>,
        writes: Option<usize>,
        action: Action,
    ) -> usize {
        let writes = writes.unwrap_or(self.next);
        self.next += 1;
        self.steps.push(Step { name, node, reads, writes, action });
        writes
    }
}

/// The tensor that a linear node multiplies.
pub(super) fn input(node: &Node) -> usize {
    node.inputs.first().copied().unwrap_or_default()
}

/// Width of the results before bits are dropped.
pub(super) fn width(graph: &Graph, node: &Node, linear: &Linear) -> u32 {
    graph.output_of(node).format.bits + linear.shift
}

fn entry(Facts { bits, sign, known }: Facts, inputs: usize, prime: Modulus) -> Result<Action> {
    if known {
        return Ok(Action::local(Known(prime)));
    }
    let sliced = Sliced::new(inputs, |count| {
        Enter::new(count, bits, prime, sign, Radix::fastest(count, bits))
    })?;
    Ok(Action::from(Composed { narrow: Some([bits; 2]), ..Composed::from(sliced) }))
}

fn round(graph: &Graph, node: &Node, linear: &Linear, outputs: usize) -> Result<Action> {
    let (out, width) = (graph.output_of(node).format.bits, width(graph, node, linear));
    let truncate = match linear.shift {
        0 => None,
        drop => Some(truncation(outputs, width, drop, out, Radix::fastest(outputs, drop))?),
    };
    match (linear.addend, truncate) {
        (Some(factor), truncate) => {
            let sum = WeightedSum { multipliers: [1, factor], width, shift: linear.shift };
            Ok(match truncate {
                None => Action::local(sum),
                Some(truncate) => {
                    Action::from(Composed { sum: Some(sum), ..Composed::from(truncate) })
                }
            })
        }
        (None, Some(truncate)) => Ok(Action::from(truncate)),
        (None, None) => Err(Error::misuse("a layer that needs no rounding")),
    }
}

/// What the public graph tells of a tensor.
#[derive(Clone, Copy)]
pub(super) struct Facts {
    /// Signed width of the values, at most that of the shares.
    pub(super) bits: u32,
    sign: Sign,
    /// Whether the server's share is zero: the input, or the input rearranged.
    pub(super) known: bool,
}

/// Of all tensors. Shares are often wider than values, for those who read them.
pub(super) fn facts(graph: &Graph, private: bool) -> Vec<Facts> {
    let shares = |tensor: &Tensor| Facts { bits: tensor.format.bits, ..Facts::NONE };
    let mut facts: Vec<Facts> = graph.tensors.iter().map(shares).collect();
    let [low, high] = graph.input_range;
    let magnitude = low.unsigned_abs().max(high.unsigned_abs());
    let bits = u64::BITS - magnitude.leading_zeros() + 1;
    let sign = if low >= 0 { Sign::NonNegative } else { Sign::Unknown };
    narrow(&mut facts, graph.input, Facts { bits, sign, known: private });
    for node in &graph.nodes {
        let of = |i: usize| node.inputs.get(i).and_then(|i| facts.get(*i)).copied();
        let first = of(0).unwrap_or(Facts::NONE);
        let result = if let Some(ops::Relu { saturate, low: 0 }) = node.op.get() {
            Facts { bits: saturate + 1, sign: Sign::NonNegative, known: false }
        } else if node.op.is::<ops::Reshape>() || node.op.is::<View>() || node.op.is::<ops::Pad>() {
            first
        } else if node.op.is::<ops::MaxPool>() || node.op.is::<ops::Extend>() {
            Facts { known: false, ..first }
        } else if let Some(ops::SumPool(window)) = node.op.get() {
            let grown = (2 * window.size().max(1) - 1).ilog2();
            Facts { bits: first.bits + grown, known: false, ..first }
        } else {
            Facts::NONE
        };
        narrow(&mut facts, node.output, result);
    }
    facts
}

impl Facts {
    /// Nothing.
    pub(super) const NONE: Self = Self { bits: u32::MAX, sign: Sign::Unknown, known: false };
}

/// Takes over what is known of a tensor, if it says more than the width of its shares.
fn narrow(facts: &mut [Facts], tensor: usize, known: Facts) {
    if let Some(have) = facts.get_mut(tensor)
        && known.bits <= have.bits
    {
        *have = known;
    }
}
