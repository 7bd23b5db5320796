//! Linear layers on products by oblivious transfer.

use graph::{Linear, WeightBits, Winograd};
use mpc::linear::ot_matmul::Layer;
use wire::{Error, Result};

use crate::linear::ot_matmul::{OtLayer, Rescale};
use crate::step::Action;

/// Most products of a bit and a value of a layer that another suite has transferred.
const MOST_AT_ONCE: usize = 1 << 26;

/// Most bits of a weight.
const MOST_BITS: u32 = graph::choice::MOST_CHOICES as u32;

/// One layer of another suite by oblivious transfer, where one part of its correlations is enough.
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
pub(super) fn positions(linear: &Linear, out_bits: u32, images: usize) -> Result<OtLayer> {
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
pub(super) fn tiles(layer: &Winograd, out_bits: u32, images: usize) -> Result<OtLayer> {
    let Winograd { conv, tile, choice, shift, rounding, addend, .. } = layer;
    let Winograd { product_bits, headroom, stage_bits, .. } = layer;
    let rescale = Rescale { shift: *shift, rounding: *rounding, addend: *addend, out_bits };
    let bits = rescale.bits().min(*product_bits);
    let layer = Layer::tiles(conv, *tile, bits, choice, images)?;
    OtLayer::new(layer, choice.clone(), rescale, (*headroom, *stage_bits))
}
