//! Functions by an inverse square root, from the affine start and from others.

use graph::functions;
use graph::functions::newton::Newton;
use graph::functions::smu::Smooth;
use graph::functions::starts::Start;
use mpc::comet::smu::Smu;
use mpc::comet::softmax::ReluSoftmax;
use mpc::transformer::layernorm::LayerNorm;
use runtime::step::Action;
use runtime::step::sliced::Sliced;
use wire::{Error, Result};

use crate::operation::{Function, Operation};
use crate::values::{Input, Output, Planned, digits, last_place};

/// Smoothness in GELU's place, and before a softmax.
const SMOOTHNESS: [f64; 2] = [0.8, 0.5];
/// Added to denominators.
const EPSILON: f64 = 0.5;
/// Bits after the point of a softmax's parts beyond those of scores.
const PART_BITS: u32 = 2;
/// Inverse roots of rows.
const ROWS: Newton = Newton { iterations: 3, ratio: 2, precision: 10 };
/// Most iterations that a start is given where it leaves the number open.
const MOST: u32 = 12;

/// Plans `operation`.
///
/// # Errors
/// [`Error::Misuse`] for sizes and widths that no protocol has, and for a start that leaks
/// unless that is accepted.
pub(crate) fn plan(operation: &Operation) -> Result<Planned> {
    let Operation::Comet {
        function,
        rows,
        cols,
        bits,
        out_bits,
        range,
        start,
        of_elements,
        radix,
        accept_leakage,
    } = *operation
    else {
        return Err(Error::misuse("an operation that is no function by inverse square roots"));
    };
    if start == Start::Flooding && !accept_leakage {
        return Err(Error::misuse(
            "start `flooding` demands shares that are not uniform, which leak; use affine, or \
             --accept-leakage with data that nobody minds",
        ));
    }
    let count = rows.saturating_mul(cols);
    let radix = digits(radix, count, bits.saturating_sub(1))?;
    let smooth = Smooth {
        bits: bits.saturating_sub(1),
        scale: last_place(range, bits.saturating_sub(1)),
        slope: 0.0,
        smoothness: SMOOTHNESS[usize::from(function == Function::Softmax)],
        fraction: if function == Function::Softmax { PART_BITS } else { 0 },
    };
    let input = Input { width: bits.saturating_sub(1), ..Input::plain(count, bits) };
    let (out_bits, sliced) = match function {
        Function::Gelu => {
            let (newton, least) = chosen(smooth, start)?;
            let function = functions::Smu::unchecked(smooth, start, newton, least + 1);
            let function = function.map_err(Error::Misuse)?;
            let sliced = Sliced::new(count, |count| Smu::new(count, &function, radix))?;
            (least + 1, sliced)
        }
        Function::Softmax => {
            let (newton, _) = chosen(smooth, start)?;
            let both = [newton, of_rows(start)];
            let function =
                functions::ReluSoftmax::from(cols, smooth, EPSILON, start, both, out_bits);
            let function = function.map_err(Error::Misuse)?;
            let sliced = Sliced::rows(rows, cols, |rows| {
                let plan = ReluSoftmax::new(rows, &function, false, radix)?;
                let plan = match of_elements {
                    true => plan.with_divisions_of_elements(radix)?,
                    false => plan,
                };
                Ok(plan)
            })?;
            (out_bits, sliced)
        }
        Function::LayerNorm => {
            let calibration = functions::Calibration {
                least: bits.saturating_sub(7),
                unit: 1.0 / last_place(range, out_bits),
            };
            let root = (start, of_rows(start));
            let function = functions::LayerNorm::by_newton(cols, bits, calibration, out_bits, root);
            let function = function.map_err(Error::Misuse)?;
            let sliced = Sliced::rows(rows, cols, |rows| {
                let plan = LayerNorm::new(rows, &function, radix)?;
                let plan = match of_elements {
                    true => plan.with_roots_of_elements(radix)?,
                    false => plan,
                };
                Ok(plan)
            })?;
            (out_bits, sliced)
        }
    };
    Ok((input, Output::signed(out_bits), Action::from(sliced)))
}

/// The iteration of a smooth maximum from `start`, and the width of results.
fn chosen(smooth: Smooth, start: Start) -> Result<(Newton, u32)> {
    let (own, bits) = functions::Smu::least(smooth).map_err(Error::Misuse)?;
    if start == Start::Affine {
        return Ok((own, bits));
    }
    // As few iterations and bits as are enough.
    let most = if start == Start::Flooding { MOST } else { 1 };
    let plans = (1..=most).flat_map(|iterations| {
        (4..=14).map(move |precision| Newton { iterations, precision, ..own })
    });
    let enough = |newton: &Newton| {
        let plan = functions::Smu::unchecked(smooth, start, *newton, bits + 2);
        plan.is_ok_and(|plan| plan.error() <= functions::smu::ERROR)
    };
    let runs =
        |newton: &Newton| functions::Smu::unchecked(smooth, start, *newton, bits + 2).is_ok();
    // Some are never near on a wide range; then their error is shown.
    let found = plans.clone().find(enough).or_else(|| plans.clone().find(runs));
    let newton = found.ok_or_else(|| Error::misuse("a range on which this start diverges"))?;
    Ok((newton, bits + 1))
}

/// The iteration of inverse roots of rows; a constant takes longest over a wide range.
fn of_rows(start: Start) -> Newton {
    let iterations = if start == Start::Flooding { MOST + 8 } else { ROWS.iterations };
    Newton { iterations, ..ROWS }
}
