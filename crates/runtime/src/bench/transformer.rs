//! Non-linear functions of transformers, and their results in the clear.

use mpc::transformer::gelu::{Calibration, Gelu};
use mpc::transformer::layernorm::{self, LayerNorm};
use mpc::transformer::softmax::Softmax;
use wire::{Error, Result};

use super::operation::Operation;
use super::single::{Planned, digits};
use super::task::{Input, Output};
use crate::nonlinear::{Nonlinear, Sliced};
use crate::steps::Action;

/// Plans `operation`.
///
/// # Errors
/// [`Error::Misuse`] for sizes and widths that no protocol has.
pub(super) fn plan(operation: &Operation) -> Result<Planned> {
    match *operation {
        Operation::Gelu { rows, cols, bits, out_bits, range, radix } => {
            gelu(rows.saturating_mul(cols), [bits, out_bits], range, radix)
        }
        Operation::Softmax { rows, cols, bits, out_bits, range, radix } => {
            let count = rows.saturating_mul(cols);
            let radix = digits(radix, count, bits.saturating_sub(1))?;
            let width = bits.saturating_sub(1);
            let scale = step(range, width);
            let softmax = Sliced::rows(rows, cols, |rows| {
                let plan = Softmax::new([rows, cols], bits, scale, out_bits, radix)?;
                Ok(Nonlinear::Softmax(Box::new(plan)))
            })?;
            let input = Input { width, ..Input::plain(count, bits) };
            Ok((input, Output::signed(out_bits), Action::Nonlinear(softmax)))
        }
        Operation::LayerNorm { rows, cols, bits, out_bits, range, radix } => {
            let count = rows.saturating_mul(cols);
            let radix = digits(radix, count, bits)?;
            let calibration = layernorm::Calibration {
                least: bits.saturating_sub(7),
                unit: 1.0 / step(range, out_bits),
            };
            let norm = Sliced::rows(rows, cols, |rows| {
                let plan = LayerNorm::new([rows, cols], bits, calibration, out_bits, radix)?;
                Ok(Nonlinear::LayerNorm(Box::new(plan)))
            })?;
            let input = Input { width: bits.saturating_sub(1), ..Input::plain(count, bits) };
            Ok((input, Output::signed(out_bits), Action::Nonlinear(norm)))
        }
        _ => Err(Error::misuse("an operation that is not a transformer's")),
    }
}

fn gelu(
    count: usize,
    [bits, out_bits]: [u32; 2],
    range: f64,
    radix: Option<u32>,
) -> Result<Planned> {
    let radix = digits(radix, count, bits.saturating_sub(1))?;
    let (magnitude, scale) = (out_bits.saturating_sub(1), step(range, out_bits));
    let gelu = Sliced::new(count, |count| {
        let plan = Gelu::new(count, bits, Calibration { magnitude, scale }, out_bits, radix)?;
        Ok(Nonlinear::Gelu(Box::new(plan)))
    })?;
    // Wider inputs may not be so large that saturation wraps around.
    let width = if bits > out_bits { bits - 1 } else { bits };
    let input = Input { width, ..Input::plain(count, bits) };
    Ok((input, Output::signed(out_bits), Action::Nonlinear(gelu)))
}

/// A last place of signed values of `bits` whose bound is `range`.
fn step(range: f64, bits: u32) -> f64 {
    range / (1u64 << bits.saturating_sub(1).min(62)) as f64
}

/// The result of `plan` for `values` in the clear, and its largest distance from the real
/// function in last places.
pub(super) fn clear(plan: &Nonlinear, values: &[i64]) -> Option<(Vec<i64>, f64)> {
    match plan {
        Nonlinear::Gelu(plan) => {
            let error = values.iter().map(|x| plan.error(*x)).fold(0.0, f64::max);
            Some((values.iter().map(|x| plan.clear(*x)).collect(), error))
        }
        Nonlinear::Softmax(plan) => {
            let rows = || values.chunks(plan.cols());
            let error = rows().map(|row| plan.error(row)).fold(0.0, f64::max);
            Some((rows().flat_map(|row| plan.clear(row)).collect(), error))
        }
        Nonlinear::LayerNorm(plan) => {
            let rows = || values.chunks(plan.cols());
            let error = rows().map(|row| plan.error(row)).fold(0.0, f64::max);
            Some((rows().flat_map(|row| plan.clear(row)).collect(), error))
        }
        _ => None,
    }
}
