//! Invariants of operators that rearrange or combine elements.

use super::{ensure, same_shape, same_width};
use crate::arrange::last_viewed;
use crate::ir::{Graph, Node, Tensor, View};
use crate::shapes::Check;

/// Largest number of a table's entries.
const MAX_TABLE: usize = 256;

/// Equal shapes but for the outermost axis, equal widths; tells whether one is signed.
pub(super) fn check_concat(graph: &Graph, node: &Node, output: &Tensor) -> Check<bool> {
    let mut outermost = 0usize;
    let mut signed = false;
    for input in node.inputs.iter().map(|i| &graph.tensors[*i]) {
        let fits = input.shape.get(1..) == output.shape.get(1..);
        ensure(fits, || format!("puts {:?} into {:?}", input.shape, output.shape))?;
        same_width(input, output)?;
        outermost = outermost.saturating_add(input.shape[0]);
        signed |= input.format.signed;
    }
    let all = output.shape[0] == outermost;
    ensure(all, || format!("{outermost} parts of {}", output.shape[0]))?;
    Ok(signed)
}

pub(super) fn check_view(view: &View, input: &Tensor, output: &Tensor) -> Check<()> {
    same_width(input, output)?;
    let inside = view.strides.len() == output.shape.len()
        && last_viewed(view, &output.shape).is_some_and(|last| last < input.len());
    ensure(inside, || format!("shows more than the {} elements", input.len()))
}

pub(super) fn check_pad(before: &[usize], input: &Tensor, output: &Tensor) -> Check<()> {
    same_width(input, output)?;
    let rank = before.len() == input.shape.len() && before.len() == output.shape.len();
    let mut axes = before.iter().zip(&input.shape).zip(&output.shape);
    let inside =
        axes.all(|((before, side), out)| before.checked_add(*side).is_some_and(|end| end <= *out));
    ensure(rank && inside, || format!("pads {:?} to {:?}", input.shape, output.shape))
}

/// Factors fit their shares and the product's width is one a protocol has; tells
/// whether the product is signed.
pub(super) fn check_product(
    factor_bits: [u32; 2],
    graph: &Graph,
    node: &Node,
    output: &Tensor,
) -> Check<bool> {
    let mut signed = false;
    for (bits, index) in factor_bits.into_iter().zip(0..) {
        let input = graph.input_of(node, index);
        same_shape(input, output)?;
        let fits = (1..=input.format.bits).contains(&bits);
        ensure(fits, || format!("a factor of {bits} bits of {}", input.format.bits))?;
        signed |= input.format.signed;
    }
    let square = node.inputs[0] == node.inputs[1];
    Ok(signed && !square)
}

/// A table of 2 to [`MAX_TABLE`] entries that fit the output; tells whether one is negative.
pub(super) fn check_lookup(values: &[i64], input: &Tensor, output: &Tensor) -> Check<bool> {
    same_shape(input, output)?;
    let size = values.len();
    let sized = (2..=MAX_TABLE).contains(&size) && size.is_power_of_two();
    ensure(sized, || format!("a table of {size} entries"))?;
    let (bits, need) = (input.format.bits, size.ilog2());
    ensure(bits >= need, || format!("{bits} bits for a table of {size} entries"))?;
    let bound = 1i64 << (output.format.bits - 1);
    let fits = values.iter().all(|v| (-bound..bound).contains(v));
    ensure(fits, || "an entry does not fit the output".into())?;
    Ok(values.iter().any(|v| *v < 0))
}
