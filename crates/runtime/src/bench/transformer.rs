//! Non-linear functions of transformers, and their results in the clear.

use mpc::transformer::gelu::{Calibration, Gelu};
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
            let count = rows.saturating_mul(cols);
            let radix = digits(radix, count, bits.saturating_sub(1))?;
            let magnitude = out_bits.saturating_sub(1).min(63);
            let calibration = Calibration { magnitude, scale: range / (1u64 << magnitude) as f64 };
            let gelu = Sliced::new(count, |count| {
                let plan = Gelu::new(count, bits, calibration, out_bits, radix)?;
                Ok(Nonlinear::Gelu(Box::new(plan)))
            })?;
            // Wider inputs may not be so large that saturation wraps around.
            let width = if bits > out_bits { bits - 1 } else { bits };
            let input = Input { width, ..Input::plain(count, bits) };
            Ok((input, Output::signed(out_bits), Action::Nonlinear(gelu)))
        }
        _ => Err(Error::misuse("an operation that is not a transformer's")),
    }
}

/// The result of `plan` for `values` in the clear, and its largest distance from the real
/// function in last places.
pub(super) fn clear(plan: &Nonlinear, values: &[i64]) -> Option<(Vec<i64>, f64)> {
    match plan {
        Nonlinear::Gelu(plan) => {
            let error = values.iter().map(|x| plan.error(*x)).fold(0.0, f64::max);
            Some((values.iter().map(|x| plan.clear(*x)).collect(), error))
        }
        _ => None,
    }
}
