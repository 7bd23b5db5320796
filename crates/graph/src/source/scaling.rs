//! How ranges of real values, integers of so many bits, and scales belong together.

use crate::ops::relu::{FAR_BITS, MAX_SATURATE};

/// Relative tolerance between ranges that should agree.
pub(crate) const TOLERANCE: f64 = 1e-6;
/// Bits that hidden states have beyond activations.
pub(crate) const HIDDEN_BITS: u32 = 3;

/// Where a clipping operator stops: the smallest integer and the bits above it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Clipped {
    /// The smallest result.
    pub(crate) low: i64,
    /// Bits of the distance from the smallest to the largest result.
    pub(crate) bits: u32,
}

/// The largest integer of so many bits.
pub(crate) fn levels(bits: u32) -> f64 {
    f64::from((1u32 << bits) - 1)
}

/// A usable range: 1 for a tensor that was always zero, never so small that
/// dividing by it overflows.
pub(crate) fn positive(range: f64) -> f64 {
    if range > 0.0 { range.max(1e-30) } else { 1.0 }
}

/// The distance of a range's farther end from zero, as a usable range.
pub(crate) fn side((low, high): (f64, f64)) -> f64 {
    positive(high.max(-low))
}

/// A range with zero in it, so that windows begin near it.
pub(crate) fn around_zero((low, high): (f64, f64)) -> (f64, f64) {
    (low.min(0.0), high.max(0.0))
}

/// The integer of probability 1, among activations of so many bits.
pub(crate) fn peak(activation_bits: u32) -> f64 {
    levels(activation_bits - 1)
}

/// The shortest window of at least `least` bits around a range, in integers of a scale.
pub(crate) fn window((from, to): (f64, f64), least: u32, scale: f64) -> Option<Clipped> {
    let low = (from / scale).round();
    // Half a unit less may be rounding of the lower end.
    let slack = if from == 0.0 { 0.0 } else { scale / 2.0 };
    let holds = |bits: &u32| {
        (low + levels(*bits)) * scale >= to * (1.0 - TOLERANCE) - slack * (1.0 + TOLERANCE)
    };
    let bits = (least..=MAX_SATURATE).find(holds)?;
    (low.abs() <= f64::from(1u32 << (bits + FAR_BITS))).then_some(Clipped { low: low as i64, bits })
}
