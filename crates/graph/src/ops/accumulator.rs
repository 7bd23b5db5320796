//! Sums that are rescaled: how low bits are dropped, and what widths such sums have.

use super::checks::ensure;
use crate::error::Check;
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// Widest accumulator of a verified graph.
pub(crate) const MAX_ACCUMULATOR_BITS: u32 = 60;
/// Bits of a multiplier's magnitude.
const MULTIPLIER_BITS: u32 = 31;

/// How a linear layer drops its `shift` low bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rounding {
    /// `(acc + 2^(shift-1)) >> shift`, bit for bit.
    Exact,
    /// Unbiased, within one or two units of the exact result.
    Stochastic,
}

/// What an operator with an accumulator says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accumulator {
    /// Signed width of the accumulator.
    pub bits: u32,
    /// Low bits dropped from it.
    pub shift: u32,
    /// How the low bits are dropped.
    pub rounding: Rounding,
}

/// Checks that a multiplier is small enough for every protocol.
pub(crate) fn check_multiplier(multiplier: i64) -> Check<()> {
    let fits = multiplier.unsigned_abs() < 1 << MULTIPLIER_BITS;
    ensure(fits, || format!("multiplier {multiplier} is too large"))
}

/// Checks widths: the input is reduced to the accumulator locally, the output is a local
/// shift of it.
pub(crate) fn check_accumulator(
    bits: u32,
    shift: u32,
    input: &Tensor,
    output: &Tensor,
) -> Check<()> {
    ensure((2..=MAX_ACCUMULATOR_BITS).contains(&bits) && shift < bits, || {
        format!("accumulator of {bits} bits, shift {shift}")
    })?;
    ensure(input.format.bits >= bits, || {
        format!("`{}` has {} bits, accumulator {bits}", input.name, input.format.bits)
    })?;
    ensure(output.format.bits <= bits - shift, || {
        format!("output of {} bits from {bits} - {shift}", output.format.bits)
    })
}

/// Checks the second input of a linear layer, whose multiple is added to the accumulator.
pub(crate) fn check_addend(
    (multiplier, [bits, shift]): (Option<i64>, [u32; 2]),
    addend: &Tensor,
    output: &Tensor,
) -> Check<()> {
    super::checks::same_shape(addend, output)?;
    check_multiplier(multiplier.unwrap_or(0))?;
    check_accumulator(bits, shift, addend, output)
}

/// Checks that an accumulator's range fits its width.
pub(crate) fn fits(range: super::range::Range, bits: u32) -> Check<()> {
    let need = range.width();
    (need <= bits).then_some(()).ok_or(format!("accumulator needs {need} bits, has {bits}"))
}
