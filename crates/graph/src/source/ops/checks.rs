//! What operators check before they tell the shape of their output.

use crate::error::Check;
use crate::ops::geometry::{Window, check_window};
use crate::source::floats::Floats;

/// The shape of the only input.
pub(super) fn one<'a>(inputs: &[&'a [usize]]) -> Check<&'a [usize]> {
    match *inputs {
        [input] => Ok(input),
        _ => Err(arity(1, inputs.len())),
    }
}

/// The shapes of both inputs.
pub(super) fn two<'a>(inputs: &[&'a [usize]]) -> Check<(&'a [usize], &'a [usize])> {
    match *inputs {
        [a, b] => Ok((a, b)),
        _ => Err(arity(2, inputs.len())),
    }
}

fn arity(want: usize, have: usize) -> String {
    format!("has {have} inputs, needs {want}")
}

/// Checks that weights, which exist, have that shape.
pub(super) fn expect(floats: &Floats, name: &str, shape: &[usize]) -> Check<()> {
    let have = &floats[name].shape;
    (have == shape).then_some(()).ok_or(format!("`{name}` is {have:?}, not {shape:?}"))
}

/// Checks a width of activations.
pub(super) fn check_bits(bits: u32) -> Check<()> {
    (1..=12).contains(&bits).then_some(()).ok_or(format!("results of {bits} bits"))
}

pub(super) fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// Shape of tensors one after another along the first axis.
pub(super) fn concatenated(inputs: &[&[usize]]) -> Check<Vec<usize>> {
    let Some(first) = inputs.first() else { return Err(arity(1, 0)) };
    let mut shape = first.to_vec();
    shape[0] = 0;
    for input in inputs {
        if input.get(1..) != first.get(1..) {
            return Err(format!("puts {first:?} and {input:?} together"));
        }
        shape[0] = shape[0].saturating_add(input[0]);
    }
    Ok(shape)
}

/// Geometry of a pool on `input`.
pub(super) fn window(
    input: &[usize],
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 4],
) -> Check<Window> {
    let [channels, height, width] = *input else {
        return Err(format!("pooling needs [channels, height, width], got {input:?}"));
    };
    let window = Window { channels, height, width, kernel, stride, padding };
    check_window(&window)?;
    Ok(window)
}
