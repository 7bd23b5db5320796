//! Non-linear functions of transformers, and their results in the clear.

use graph::functions;
use mpc::Protocol;
use mpc::comet::smu::Smu;
use mpc::comet::softmax::ReluSoftmax;
use mpc::transformer::gelu::Gelu;
use mpc::transformer::layernorm::LayerNorm;
use mpc::transformer::softmax::Softmax;
use runtime::step::Action;
use runtime::step::sliced::Sliced;
use wire::{Error, Result};

use crate::operation::Operation;
use crate::values::{Input, Output, Planned, digits, last_place};

/// Plans `operation`.
///
/// # Errors
/// [`Error::Misuse`] for sizes and widths that no protocol has.
pub(crate) fn plan(operation: &Operation) -> Result<Planned> {
    match *operation {
        Operation::Gelu { rows, cols, bits, out_bits, range, radix } => {
            gelu(rows.saturating_mul(cols), [bits, out_bits], range, radix)
        }
        Operation::Softmax { rows, cols, bits, out_bits, range, radix } => {
            let count = rows.saturating_mul(cols);
            let radix = digits(radix, count, bits.saturating_sub(1))?;
            let width = bits.saturating_sub(1);
            let scale = last_place(range, width);
            let top = (1i64 << width.clamp(1, 62).saturating_sub(1)) - 1;
            let function = match functions::Softmax::is_near(cols, bits, scale) {
                true => functions::Softmax::below(top, cols, bits, scale, out_bits),
                false => functions::Softmax::new(cols, bits, scale, out_bits),
            };
            let function = function.map_err(Error::Misuse)?;
            let softmax = Sliced::rows(rows, cols, |rows| {
                let plan = Softmax::new(rows, &function, radix)?;
                Ok(plan)
            })?;
            let input = Input { width, ..Input::plain(count, bits) };
            Ok((input, Output::signed(out_bits), Action::from(softmax)))
        }
        Operation::LayerNorm { rows, cols, bits, out_bits, range, radix } => {
            let count = rows.saturating_mul(cols);
            let radix = digits(radix, count, bits)?;
            let calibration = functions::Calibration {
                least: bits.saturating_sub(7),
                unit: 1.0 / last_place(range, out_bits),
            };
            let function = functions::LayerNorm::new(cols, bits, calibration, out_bits);
            let function = function.map_err(Error::Misuse)?;
            let norm = Sliced::rows(rows, cols, |rows| {
                let plan = LayerNorm::new(rows, &function, radix)?;
                Ok(plan)
            })?;
            let input = Input { width: bits.saturating_sub(1), ..Input::plain(count, bits) };
            Ok((input, Output::signed(out_bits), Action::from(norm)))
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
    let scale = last_place(range, out_bits);
    let magnitude = functions::Gelu::least(scale)
        .ok_or_else(|| Error::misuse("GELU of so small a range has too many values"))?;
    let function = functions::Gelu::new(magnitude, scale).map_err(Error::Misuse)?;
    let gelu = Sliced::new(count, |count| {
        let plan = Gelu::new(count, bits, &function, out_bits, radix)?;
        Ok(plan)
    })?;
    // Wider inputs may not be so large that moving them wraps around, or the result is too wide.
    let width = if bits > magnitude + 2 { bits - 1 } else { bits };
    let input = Input { width: width.min(out_bits), ..Input::plain(count, bits) };
    Ok((input, Output::signed(out_bits), Action::from(gelu)))
}

/// The result of `plan` for `values` in the clear, and its largest distance from the real
/// function in last places.
pub(crate) fn clear(plan: &dyn Protocol, values: &[i64]) -> Option<(Vec<i64>, f64)> {
    let largest = |errors: &mut dyn Iterator<Item = f64>| errors.fold(0.0, f64::max);
    if let Some(function) = plan.downcast().map(Gelu::function) {
        let error = largest(&mut values.iter().map(|x| function.error(*x)));
        return Some((values.iter().map(|x| function.clear(*x)).collect(), error));
    }
    if let Some(function) = plan.downcast().map(Smu::function) {
        let error = |x: &i64| (function.clear(*x) as f64 - function.real.at(*x)).abs();
        let error = largest(&mut values.iter().map(error));
        return Some((values.iter().map(|x| function.clear(*x)).collect(), error));
    }
    if let Some(function) = plan.downcast().map(Softmax::function) {
        let rows = || values.chunks(function.cols);
        let error = largest(&mut rows().map(|row| function.error(row)));
        return Some((rows().flat_map(|row| function.clear(row)).collect(), error));
    }
    if let Some(function) = plan.downcast().map(LayerNorm::function) {
        let rows = || values.chunks(function.cols);
        let error = largest(&mut rows().map(|row| function.error(row)));
        return Some((rows().flat_map(|row| function.clear(row)).collect(), error));
    }
    let function = plan.downcast().map(ReluSoftmax::function)?;
    let rows = || values.chunks(function.cols);
    let error = largest(&mut rows().map(|row| function.error(row)));
    Some((rows().flat_map(|row| function.clear(row, None)).collect(), error))
}
