//! What operators of transformers have in common: arguments that are clipped, and results in
//! narrow shares.

use crate::error::Result;
use crate::functions::Smu;
use crate::functions::newton::Newton;
use crate::functions::smu::Smooth;
use crate::ops::Extend;
use crate::source::lowering::{IntegerNode, Lowering};
use crate::source::scaling::{TOLERANCE, levels, side};
use crate::tensor::Format;

/// Inverse roots of variances, and of denominators: one for each row, so precise ones.
pub(super) const NORM: Newton = Newton { iterations: 3, ratio: 2, precision: 10 };
/// Widths that are chosen once ranges are known.
pub(super) const LATER: u32 = 12;

/// Clips the tensor at a place to at most so many bits at its own scale, fewer where the
/// calibrated range needs fewer, and tells how many. Where its scale is so fine that the range
/// needs more, the tensor is rescaled first.
pub(super) fn clip_within(
    step: &mut dyn Lowering,
    place: usize,
    name: &str,
    range: (f64, f64),
    bits: u32,
) -> Result<u32> {
    let most = levels(bits - 1);
    if side(range) > (most + 1.0) * step.input(place)?.format.scale * (1.0 + TOLERANCE) {
        step.rescale(place, &format!("{name}.rescaled"), side(range) / most)?;
    }
    let scale = step.input(place)?.format.scale;
    let needed = (side(range) / scale).log2().ceil().clamp(1.0, 15.0) as u32 + 1;
    let bits = bits.min(needed.max(4));
    let half = f64::from(1u32 << (bits - 1));
    step.clip_to(place, name, (-half * scale, (half - 1.0) * scale), bits)
}

/// Writes the output by a node with results in narrow shares, and these in wider ones.
pub(super) fn extended(step: &mut dyn Lowering, node: IntegerNode) -> Result<()> {
    let Format { scale, signed, .. } = node.format;
    let narrow = step.before("narrow", node)?;
    step.finish(IntegerNode::new(Extend, &[narrow], scale, signed))
}

/// The cheapest iteration that finds a smooth maximum, and the bits of its results.
pub(super) fn least_newton(step: &dyn Lowering, smooth: Smooth) -> Result<(Newton, u32)> {
    Smu::least(smooth).map_err(|why| {
        let instead = "train it with a larger smoothness, or calibrate with real inputs";
        step.refuse(&format!("is {why}"), instead)
    })
}
