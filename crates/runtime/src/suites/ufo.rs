//! Suite `ufo`: linear layers by transfers that choose by the bits of low-bit weights, 3x3
//! convolutions in the Winograd domain where the model has them there; the rest as in the
//! default suite.

use graph::{Graph, Linear, Node, Op, WeightBits, Winograd};
use mpc::linear::ot_matmul::Layer;
use wire::{Error, Result};

use super::auto;
use crate::linear::ot_matmul::{OtLayer, Rescale};
use crate::plan::options::{OptionsByStep, StepOptions};
use crate::plan::settings::Settings;
use crate::plan::step::{Action, Step};

/// Most pieces of a plan that clients send, and most transfers: pricing a plan takes time for
/// each, and a client prices the plan of a server it does not trust.
const MOST_PIECES: usize = 1 << 21;
const MOST_TRANSFERS: usize = 1 << 30;

/// Most products of a bit and a value of a layer that another suite has transferred.
const MOST_AT_ONCE: usize = 1 << 26;

/// Most bits of a weight.
const MOST_BITS: u32 = graph::choice::MOST_CHOICES as u32;

pub(super) fn steps(
    graph: &Graph,
    settings: Settings,
    choices: &OptionsByStep,
) -> Result<Vec<Step>> {
    let mut steps = of_nodes(graph, settings, choices)?;
    steps.extend(auto::last(graph, settings, choices.of(graph.nodes.len()))?);
    Ok(steps)
}

/// The steps of all nodes.
pub(super) fn of_nodes(
    graph: &Graph,
    settings: Settings,
    choices: &OptionsByStep,
) -> Result<Vec<Step>> {
    let mut steps = Vec::with_capacity(graph.nodes.len() + 2);
    let (mut pieces, mut transfers) = (0usize, 0usize);
    for (index, node) in graph.nodes.iter().enumerate() {
        let action = action(graph, node, settings.batch(), choices.of(index));
        let action = action.map_err(|e| auto::at(&node.name, e))?;
        if let Action::Linear(layer) = &action
            && let Some(step) = layer.downcast::<OtLayer>()
        {
            pieces = pieces.saturating_add(step.layer.product().pieces());
            transfers = transfers.saturating_add(step.layer.product().transfers());
        }
        if pieces > MOST_PIECES || transfers > MOST_TRANSFERS {
            let why = format!("up to it the plan takes more than {MOST_TRANSFERS} transfers");
            return Err(auto::at(&node.name, Error::misuse(why)));
        }
        steps.push(Step::of_node(graph, index, action));
    }
    Ok(steps)
}

pub(super) fn action(
    graph: &Graph,
    node: &Node,
    batch: usize,
    choice: StepOptions,
) -> Result<Action> {
    let out_bits = graph.output_of(node).format.bits;
    let step = match &node.op {
        Op::Linear(_) | Op::Winograd(_) if !choice.is_none() => {
            return Err(Error::misuse("layers of suite ufo have nothing to choose"));
        }
        Op::Linear(linear) => positions(linear, out_bits, batch)?,
        Op::Winograd(layer) => tiles(layer, out_bits, batch)?,
        _ => return auto::chosen(graph, node, batch, choice),
    };
    Ok(Action::linear(step))
}

/// One layer of another suite by transfers, where one part of its correlations is enough.
///
/// # Errors
/// [`Error::Misuse`] where it is not.
pub(super) fn layer(linear: &Linear, out_bits: u32, batch: usize) -> Result<Action> {
    let outputs = linear.conv.out_channels * linear.conv.out_height() * linear.conv.out_width();
    let taps = linear.conv.group_channels() * linear.conv.kernel[0] * linear.conv.kernel[1];
    let transfers = [batch, outputs, taps, linear.weight_bits as usize];
    if transfers.into_iter().fold(1, usize::saturating_mul) > MOST_AT_ONCE {
        return Err(Error::misuse("a layer of too many products to be transferred at once"));
    }
    let step = positions(linear, out_bits, batch)?;
    if step.feeds_itself() {
        return Err(Error::misuse("a layer of too many products to be transferred at once"));
    }
    Ok(Action::linear(step))
}

/// Computed mod the width of the result before its rescale: no more than that is kept.
fn positions(linear: &Linear, out_bits: u32, images: usize) -> Result<OtLayer> {
    let Linear { conv, weight_bits, shift, rounding, addend, choice, .. } = linear;
    if choice.is_none() && *weight_bits > MOST_BITS {
        let why = format!("weights of {weight_bits} bits; suite ufo takes up to {MOST_BITS}");
        return Err(Error::misuse(why));
    }
    let choice = choice.clone().unwrap_or_else(|| WeightBits::twos_complement(*weight_bits));
    let rescale = Rescale { shift: *shift, rounding: *rounding, addend: *addend, out_bits };
    let layer = Layer::positions(conv, rescale.bits(), &choice, images)?;
    OtLayer::new(layer, choice, rescale, (false, None))
}

/// In the ring of the products, if that is narrower than the results'.
fn tiles(layer: &Winograd, out_bits: u32, images: usize) -> Result<OtLayer> {
    let Winograd { conv, tile, choice, shift, rounding, addend, .. } = layer;
    let Winograd { product_bits, spare, stage_bits, .. } = layer;
    let rescale = Rescale { shift: *shift, rounding: *rounding, addend: *addend, out_bits };
    let bits = rescale.bits().min(*product_bits);
    let layer = Layer::tiles(conv, *tile, bits, choice, images)?;
    OtLayer::new(layer, choice.clone(), rescale, (*spare, *stage_bits))
}
