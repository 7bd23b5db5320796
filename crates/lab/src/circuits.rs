//! Non-linear operations by garbled circuits, one step each.

use graph::Nonlinear as Way;
use mpc::garbled::{Clip, Function, Garbled, Ring};
use mpc::softmax;
use ring::Modulus;
use runtime::step::Action;
use runtime::step::sliced::Sliced;
use wire::{Error, Result};

use crate::operation::Operation;
use crate::values::{Input, Output, Planned};

/// Plans `operation` if it is to run on garbled circuits.
///
/// # Errors
/// [`Error::Misuse`] for widths that the circuits have no room for.
pub(crate) fn plan(operation: &Operation) -> Result<Option<Planned>> {
    let planned = match *operation {
        Operation::Relu { count, bits, out_bits, saturate, nonlinear: Way::Gc, .. } => {
            let out_bits = out_bits.unwrap_or(bits);
            let clip = Clip { low: 0, saturate: saturate.unwrap_or(bits.saturating_sub(1)) };
            let then = Function { clip: Some(clip), ..Function::default() };
            each(Input::plain(count, bits), bits, then, out_bits)?
        }
        Operation::MaxPool { count, bits, window, nonlinear: Way::Gc, .. } => {
            let input = Input { width: bits - 1, ..Input::plain(count * window, bits) };
            maxima(input, window, Ring::Power(bits), Function::default(), bits)?
        }
        Operation::Argmax { count, bits, nonlinear: Way::Gc, .. } => {
            let index = count.max(2).next_power_of_two().ilog2();
            let top = Garbled::top(1, count, Ring::Power(bits), bits, Ring::Power(index), None)?;
            let input = Input { width: bits - 1, ..Input::plain(count, bits) };
            let output = Output { bits: index, signed: false };
            (input, output, Action::from(Sliced::whole(count, top)))
        }
        Operation::Truncate { count, bits, drop, out_bits, nonlinear: Way::Gc, .. } => {
            let out_bits = out_bits.unwrap_or(bits.saturating_sub(drop));
            let then = Function { drop, floor: true, clip: None };
            each(Input::plain(count, bits), bits, then, out_bits)?
        }
        Operation::Extend { count, bits, out_bits, nonlinear: Way::Gc, .. } => {
            each(Input::plain(count, bits), bits, Function::default(), out_bits)?
        }
        Operation::Circuit { count, modulus, window, relu } => {
            let modulus = Modulus::new(modulus).filter(|p| p.bits() >= 4);
            let modulus = modulus.ok_or_else(|| Error::misuse("a modulus below 2^62, not of 8"))?;
            let (bits, width) = (modulus.bits(), modulus.bits() - 1);
            let clip = relu.then_some(Clip { low: 0, saturate: width - 1 });
            let then = Function { clip, ..Function::default() };
            let input = Input { width, modulus: Some(modulus), ..Input::plain(count, bits) };
            maxima(input, window, Ring::Prime(modulus), then, bits)?
        }
        Operation::Probability { count, bits, digits } => {
            let softmax = probability(count, bits, digits)?;
            let output = Output { bits: softmax.sum_bits(), signed: false };
            let sliced = Sliced::whole(count, softmax);
            let input = Input { width: bits - 1, ..Input::plain(count, bits) };
            (input, output, Action::from(sliced))
        }
        _ => return Ok(None),
    };
    Ok(Some(planned))
}

/// Of logits between -8 and 8 at full width.
pub(crate) fn probability(count: usize, bits: u32, digits: u32) -> Result<softmax::Plan> {
    let scale = f64::from(bits.saturating_sub(4)).exp2().recip();
    softmax::Plan::new(count, Ring::Power(bits), bits - 1, scale, digits)
}

/// One circuit for each value.
fn each(input: Input, bits: u32, then: Function, out_bits: u32) -> Result<Planned> {
    let rings = [Ring::Power(bits), Ring::Power(out_bits)];
    let sliced =
        Sliced::new(input.count, |count| Garbled::map(count, rings[0], bits, then, rings[1]))?;
    Ok((input, Output::signed(out_bits), Action::from(sliced)))
}

/// One circuit for `window` values that follow each other.
fn maxima(
    input: Input,
    window: usize,
    from: Ring,
    then: Function,
    out_bits: u32,
) -> Result<Planned> {
    if window == 0 || !input.count.is_multiple_of(window) {
        return Err(Error::misuse("values that are no whole number of windows"));
    }
    let starts = (0..input.count).step_by(window);
    let windows: Vec<Vec<usize>> = starts.map(|at| (at..at + window).collect()).collect();
    let width = input.width;
    let sliced = Sliced::windows(&windows, |inputs, windows| {
        Garbled::maximum(inputs, windows, from, width, then, Ring::Power(out_bits))
    })?;
    Ok((input, Output::signed(out_bits), Action::from(sliced)))
}
