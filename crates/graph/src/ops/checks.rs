//! Checks of tensors that several operators make.

use crate::error::Check;
use crate::tensor::Tensor;

/// Ok where `condition` holds, else why not.
pub fn ensure(condition: bool, why: impl FnOnce() -> String) -> Check<()> {
    if condition { Ok(()) } else { Err(why()) }
}

/// Checks that two tensors have one shape.
///
/// # Errors
/// Both shapes, in words.
pub fn same_shape(a: &Tensor, b: &Tensor) -> Check<()> {
    ensure(a.shape == b.shape, || format!("shapes {:?} and {:?}", a.shape, b.shape))
}

/// Checks that the output's shares are as wide as the input's.
///
/// # Errors
/// Both widths, in words.
pub fn same_width(input: &Tensor, output: &Tensor) -> Check<()> {
    let (have, want) = (output.format.bits, input.format.bits);
    ensure(have == want, || format!("keeps its width, but {have} is not {want}"))
}

/// Checks that a tensor's shape is `[channels, height, width]`, or `[channels]` for a single
/// position.
pub(crate) fn image(tensor: &Tensor, want: [usize; 3]) -> Check<()> {
    let flat = want[1..] == [1, 1] && tensor.shape == want[..1];
    ensure(flat || tensor.shape == want, || {
        format!("tensor `{}` is {:?}, not {want:?}", tensor.name, tensor.shape)
    })
}

/// Checks that a tensor's shares are wide enough for a function.
pub(crate) fn wide_enough(input: &Tensor, need: u32) -> Check<()> {
    let have = input.format.bits;
    ensure(have >= need, || format!("`{}` has {have} bits, needs {need}", input.name))
}
