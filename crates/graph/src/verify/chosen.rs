//! Invariants of products by the bits of weights, and of changes of width.

use super::{MAX_ACCUMULATOR_BITS, check_addend, ensure, image, same_shape};
use crate::ir::{Graph, Linear, Node, Tensor};
use crate::shapes::{Check, check_conv, elements};
use crate::winograd::{TILES, Winograd};

/// Most bits that one node drops.
const MAX_DROP: u32 = 30;

/// The bits of a linear node's weights, if it names them, make weights of its width.
pub(super) fn check_choice(linear: &Linear) -> Check<()> {
    let Some(choice) = &linear.choice else { return Ok(()) };
    choice.check()?;
    let limit = 1i64 << (linear.weight_bits - 1);
    let inside = choice.range().iter().all(|end| end.abs() < limit);
    ensure(inside, || "its weight bits exceed weight_bits".into())
}

pub(super) fn check_winograd(graph: &Graph, node: &Node, layer: &Winograd) -> Check<()> {
    let (input, output) = (graph.input_of(node, 0), graph.output_of(node));
    let conv = &layer.conv;
    check_conv(conv)?;
    let small =
        (conv.kernel, conv.stride, conv.dilation, conv.groups) == ([3, 3], [1, 1], [1, 1], 1);
    ensure(small, || "is not a dense 3x3 kernel of stride 1".into())?;
    ensure(TILES.contains(&layer.tile), || format!("tiles of {}", layer.tile))?;
    image(input, [conv.in_channels, conv.in_height, conv.in_width])?;
    image(output, [conv.out_channels, conv.out_height(), conv.out_width()])?;
    for channels in [conv.in_channels, conv.out_channels] {
        elements(&[layer.places(), channels, layer.columns()])?;
    }
    elements(&[conv.out_channels, conv.in_channels, layer.places()])?;
    layer.choice.check()?;
    widths(layer, input, output)?;
    if let [_, addend] = node.inputs[..] {
        let width = [layer.accumulator_bits, layer.shift];
        check_addend((layer.addend, width), &graph.tensors[addend], output)?;
    }
    Ok(())
}

/// The input is reduced to the ring of the products, the output is a shift of the accumulator.
fn widths(layer: &Winograd, input: &Tensor, output: &Tensor) -> Check<()> {
    let Winograd { product_bits, accumulator_bits, shift, spare, .. } = *layer;
    let fits = (2..=accumulator_bits).contains(&product_bits)
        && accumulator_bits <= MAX_ACCUMULATOR_BITS
        && shift < accumulator_bits;
    ensure(fits, || {
        format!("products of {product_bits} bits, accumulator of {accumulator_bits}, shift {shift}")
    })?;
    ensure(!spare || product_bits < accumulator_bits, || "spares a bit for nothing".into())?;
    let between = |stage: u32| product_bits < stage && stage < accumulator_bits;
    ensure(layer.stage_bits.is_none_or(between), || "a stage that is not between".into())?;
    ensure(input.format.bits >= product_bits, || {
        format!("`{}` has {} bits, products {product_bits}", input.name, input.format.bits)
    })?;
    ensure(output.format.bits <= accumulator_bits - shift, || {
        format!("output of {} bits from {accumulator_bits} - {shift}", output.format.bits)
    })
}

pub(super) fn check_requantize(drop: u32, input: &Tensor, output: &Tensor) -> Check<()> {
    same_shape(input, output)?;
    let bits = input.format.bits;
    ensure(drop <= MAX_DROP && drop + 2 <= bits, || format!("drops {drop} of {bits} bits"))
}
