//! Invariants of the public graph. A client runs these on the plan of a server
//! it does not trust, so nothing here panics or allocates by what it reads.

mod chosen;
mod exact;
mod rearranged;
mod transformer;

use crate::ir::{Embedding, Graph, Linear, MatMul, Node, Op, Rounding, Tensor, VERSION, Window};
use crate::shapes::{Check, check_conv, check_window, elements};
use crate::winograd::Winograd;
use crate::{Error, Result};
use rearranged::{check_concat, check_lookup, check_pad, check_product, check_view};
use std::collections::BTreeSet;
use transformer::{check_embedding, check_functions, check_product_of_matrices};

/// A client looks for the packing of every linear node it is offered.
const MAX_NODES: usize = 4096;
/// Elements of all tensors together.
const MAX_TOTAL: usize = 1 << 28;
/// Positions read by all pooling windows and views together; a plan lists each.
const MAX_POOLED: usize = 1 << 24;
/// Functions that are tried for all their arguments.
const MAX_TRIED: usize = 512;
const MAX_NAME: usize = 256;
/// Bits of a multiplier's magnitude.
const MULTIPLIER_BITS: u32 = 31;
pub(crate) const MAX_ACCUMULATOR_BITS: u32 = 60;
pub(crate) const MAX_SATURATE: u32 = 16;
/// How many times twice its length a clip's window may lie away from zero.
pub(crate) const FAR_BITS: u32 = 4;

/// Checks structure, shapes and widths.
///
/// # Errors
/// [`Error::Invalid`] with pass `verify`, naming the node or tensor.
pub fn verify(graph: &Graph) -> Result<()> {
    header(graph).map_err(|why| invalid("graph", why))?;
    let mut names = BTreeSet::new();
    let mut total = 0usize;
    for (index, tensor) in graph.tensors.iter().enumerate() {
        let label = shown(&tensor.name, index);
        total += check_tensor(tensor).map_err(|why| invalid(&label, why))?;
        if total > MAX_TOTAL || !names.insert(&tensor.name) {
            return Err(invalid(&label, "the name is taken or the tensors are too many"));
        }
    }
    input(graph).map_err(|why| invalid("input", why))?;
    nodes(graph)?;
    last_rounding(graph)?;
    exact::check(graph)?;
    labels(graph).map_err(|why| invalid("labels", why))
}

/// For each tensor whether the output can be reached from it without a product with what
/// the client does not know; an addend is no product. Indices are in range.
pub(crate) fn opened(graph: &Graph) -> Vec<bool> {
    let mut opened = vec![false; graph.tensors.len()];
    opened[graph.output] = true;
    let known = graph.known();
    for node in graph.nodes.iter().rev() {
        if opened[node.output] {
            let multiplied = match &node.op {
                Op::Linear(_) | Op::Winograd(_) => 1,
                Op::MatMul(_) if !node.inputs.iter().any(|input| known[*input]) => 2,
                _ => 0,
            };
            node.inputs.iter().skip(multiplied).for_each(|input| opened[*input] = true);
        }
    }
    opened
}

/// A result that was rounded locally would tell the client about noise and weights.
fn last_rounding(graph: &Graph) -> Result<()> {
    let opened = opened(graph);
    for node in &graph.nodes {
        if let Op::Linear(Linear { rounding: Rounding::Stochastic, .. })
        | Op::Winograd(Winograd { rounding: Rounding::Stochastic, .. })
        | Op::MatMul(MatMul { rounding: Rounding::Stochastic, .. })
        | Op::Embedding(Embedding { rounding: Rounding::Stochastic, .. }) = node.op
            && opened[node.output]
        {
            return Err(invalid(&node.name, "its result is opened, so it must round exactly"));
        }
    }
    Ok(())
}

fn invalid(node: &str, why: impl Into<String>) -> Error {
    Error::invalid("verify", node, why)
}

/// A name that is safe to print.
fn shown(name: &str, index: usize) -> String {
    check_name(name).map_or_else(|_| format!("#{index}"), |()| name.to_owned())
}

fn ensure(condition: bool, why: impl FnOnce() -> String) -> Check<()> {
    if condition { Ok(()) } else { Err(why()) }
}

/// Short and printable: a name from outside must not steer a terminal.
fn check_name(name: &str) -> Check<()> {
    let printable = !name.chars().any(char::is_control);
    ensure((1..=MAX_NAME).contains(&name.len()) && printable, || {
        format!("a name is empty, longer than {MAX_NAME} bytes or not printable")
    })
}

fn header(graph: &Graph) -> Check<()> {
    ensure(graph.version == VERSION, || {
        format!("version {} is not {VERSION}: use the program that wrote it", graph.version)
    })?;
    check_name(&graph.name)?;
    check_name(&graph.suite)?;
    ensure((1..=MAX_SATURATE).contains(&graph.activation_bits), || "activation_bits".into())?;
    let nodes = graph.nodes.len();
    ensure((1..=MAX_NODES).contains(&nodes), || format!("{nodes} nodes"))?;
    let tried = |node: &&Node| {
        let newton = matches!(node.op, Op::LayerNorm { newton: Some(_), .. });
        newton || matches!(node.op, Op::Smu { .. } | Op::ReluSoftmax { .. })
    };
    let tried = graph.nodes.iter().filter(tried).count();
    ensure(tried <= MAX_TRIED, || format!("{tried} functions by Newton's iteration"))?;
    ensure(graph.tensors.len() == nodes + 1, || {
        format!("{} tensors for {nodes} nodes and one input", graph.tensors.len())
    })
}

fn check_tensor(tensor: &Tensor) -> Check<usize> {
    check_name(&tensor.name)?;
    let format = &tensor.format;
    ensure((1..=63).contains(&format.bits), || format!("width {}", format.bits))?;
    ensure(format.scale.is_finite() && format.scale > 0.0, || format!("scale {}", format.scale))?;
    elements(&tensor.shape)
}

fn input(graph: &Graph) -> Check<()> {
    let tensor = graph.tensors.get(graph.input).ok_or("no such tensor")?;
    let [low, high] = graph.input_range;
    let bound = 1i64 << (tensor.format.bits - 1);
    ensure(low <= 0 && 0 < high && -bound <= low && high < bound, || {
        format!("range {low}..={high} does not fit {} bits", tensor.format.bits)
    })?;
    ensure(tensor.format.signed == (low < 0), || "sign and range disagree".into())?;
    let rows = &graph.input_rows;
    let inside = rows.iter().all(|[a, b]| low <= *a && *a <= 0 && 0 <= *b && *b <= high);
    let fits = rows.is_empty() || rows.len() == tensor.shape[0];
    ensure(inside && fits, || "ranges of its rows do not fit it".into())
}

fn labels(graph: &Graph) -> Check<()> {
    graph.labels.iter().try_for_each(|label| check_name(label))?;
    let (have, want) = (graph.labels.len(), graph.tensors[graph.output].len());
    ensure(have == 0 || have == want, || format!("{have} labels for {want} outputs"))
}

fn nodes(graph: &Graph) -> Result<()> {
    let mut written = vec![false; graph.tensors.len()];
    written[graph.input] = true;
    let mut names = BTreeSet::new();
    let mut pooled = 0usize;
    for (index, node) in graph.nodes.iter().enumerate() {
        let label = shown(&node.name, index);
        let unique = names.insert(&node.name);
        check_name(&node.name)
            .and_then(|()| ensure(unique, || "the name is taken".into()))
            .and_then(|()| wiring(node, &mut written))
            .and_then(|()| check_node(graph, node))
            .and_then(|()| check_listed(node, graph.output_of(node), &mut pooled))
            .map_err(|why| invalid(&label, why))?;
    }
    let output = written.get(graph.output).copied() == Some(true) && graph.output != graph.input;
    ensure(output, || "no node writes it".into()).map_err(|why| invalid("output", why))
}

/// Counts the positions that a plan lists for a node.
fn check_listed(node: &Node, output: &Tensor, pooled: &mut usize) -> Check<()> {
    if let Op::View(_) | Op::Pad { .. } = &node.op {
        *pooled = pooled.saturating_add(output.len());
    }
    if let Op::MaxPool(window) | Op::SumPool(window) = &node.op {
        let outputs = window.channels * window.out_height() * window.out_width();
        let taps = window.kernel[0].saturating_mul(window.kernel[1]);
        *pooled = pooled.saturating_add(outputs.saturating_mul(taps));
    }
    ensure(*pooled <= MAX_POOLED, || {
        format!("windows and views read more than {MAX_POOLED} positions")
    })
}

/// Inputs exist already, the output does not; two inputs only where the operator takes two.
fn wiring(node: &Node, written: &mut [bool]) -> Check<()> {
    let arity = match &node.op {
        Op::Sum { .. } | Op::Product { .. } | Op::MatMul(_) => 2,
        Op::Concat => node.inputs.len().max(1),
        Op::ReluSoftmax { .. } => node.inputs.len().clamp(1, 2),
        Op::Linear(Linear { addend, .. }) | Op::Winograd(Winograd { addend, .. }) => {
            1 + usize::from(addend.is_some())
        }
        _ => 1,
    };
    let count = node.inputs.len();
    ensure(count == arity, || format!("{count} inputs, needs {arity}"))?;
    for input in &node.inputs {
        let ready = written.get(*input).copied() == Some(true);
        ensure(ready, || format!("reads tensor #{input} before it exists"))?;
    }
    let slot = written.get_mut(node.output).ok_or("writes a tensor that does not exist")?;
    ensure(!*slot, || format!("tensor #{} is written twice", node.output))?;
    *slot = true;
    Ok(())
}

fn check_node(graph: &Graph, node: &Node) -> Check<()> {
    let input = graph.input_of(node, 0);
    let output = graph.output_of(node);
    let signed = match &node.op {
        Op::Linear(linear) => {
            check_linear(linear, input, output)?;
            if let [_, addend] = node.inputs[..] {
                let width = [linear.accumulator_bits, linear.shift];
                check_addend((linear.addend, width), &graph.tensors[addend], output)?;
            }
            true
        }
        Op::Winograd(layer) => {
            chosen::check_winograd(graph, node, layer)?;
            true
        }
        Op::Requantize { drop } => {
            chosen::check_requantize(*drop, input, output)?;
            input.format.signed
        }
        Op::Relu { saturate, low } => {
            same_shape(input, output)?;
            check_relu(*saturate, *low, input, output)?;
            *low < 0
        }
        Op::MaxPool(window) | Op::SumPool(window) => {
            check_pool(window, input, output)?;
            input.format.signed
        }
        Op::Sum { multipliers, accumulator_bits, shift } => {
            for (multiplier, index) in multipliers.iter().zip(0..) {
                let operand = graph.input_of(node, index);
                same_shape(operand, output)?;
                check_multiplier(*multiplier)?;
                check_accumulator(*accumulator_bits, *shift, operand, output)?;
            }
            true
        }
        Op::Reshape => {
            ensure(input.len() == output.len(), || "changes the number of elements".into())?;
            same_width(input, output)?;
            input.format.signed
        }
        Op::Offset => {
            same_shape(input, output)?;
            same_width(input, output)?;
            true
        }
        Op::Extend => {
            same_shape(input, output)?;
            let (from, to) = (input.format.bits, output.format.bits);
            ensure(from >= 2 && to > from, || format!("extends {from} bits to {to}"))?;
            input.format.signed
        }
        Op::Concat => check_concat(graph, node, output)?,
        Op::View(view) => {
            check_view(view, input, output)?;
            input.format.signed
        }
        Op::Pad { before } => {
            check_pad(before, input, output)?;
            input.format.signed
        }
        Op::Product { factor_bits } => check_product(*factor_bits, graph, node, output)?,
        Op::Lookup { values, .. } => check_lookup(values, input, output)?,
        Op::Embedding(table) => check_embedding(graph, node, table)?,
        Op::MatMul(matmul) => check_product_of_matrices(graph, node, matmul)?,
        Op::Softmax { .. }
        | Op::Gelu { .. }
        | Op::LayerNorm { .. }
        | Op::Smu { .. }
        | Op::ReluSoftmax { .. } => check_functions(graph, node)?,
    };
    // What is known not to be negative may be treated as if it were not.
    ensure(output.format.signed || !signed, || "the output's sign is wrong".into())
}

fn same_shape(a: &Tensor, b: &Tensor) -> Check<()> {
    ensure(a.shape == b.shape, || format!("shapes {:?} and {:?}", a.shape, b.shape))
}

fn same_width(input: &Tensor, output: &Tensor) -> Check<()> {
    let (have, want) = (output.format.bits, input.format.bits);
    ensure(have == want, || format!("keeps its width, but {have} is not {want}"))
}

/// `shape` is `[c, h, w]`, or `[c]` for a single position.
fn image(tensor: &Tensor, want: [usize; 3]) -> Check<()> {
    let flat = want[1..] == [1, 1] && tensor.shape == want[..1];
    ensure(flat || tensor.shape == want, || {
        format!("tensor `{}` is {:?}, not {want:?}", tensor.name, tensor.shape)
    })
}

fn check_linear(linear: &Linear, input: &Tensor, output: &Tensor) -> Check<()> {
    let conv = &linear.conv;
    check_conv(conv)?;
    image(input, [conv.in_channels, conv.in_height, conv.in_width])?;
    image(output, [conv.out_channels, conv.out_height(), conv.out_width()])?;
    ensure((2..=32).contains(&linear.weight_bits), || "weight_bits".into())?;
    chosen::check_choice(linear)?;
    check_accumulator(linear.accumulator_bits, linear.shift, input, output)
}

fn check_addend(
    (multiplier, [bits, shift]): (Option<i64>, [u32; 2]),
    addend: &Tensor,
    output: &Tensor,
) -> Check<()> {
    same_shape(addend, output)?;
    check_multiplier(multiplier.unwrap_or(0))?;
    check_accumulator(bits, shift, addend, output)
}

fn check_multiplier(multiplier: i64) -> Check<()> {
    let fits = multiplier.unsigned_abs() < 1 << MULTIPLIER_BITS;
    ensure(fits, || format!("multiplier {multiplier} is too large"))
}

/// The input is reduced to the accumulator locally, the output is a local shift of it.
fn check_accumulator(bits: u32, shift: u32, input: &Tensor, output: &Tensor) -> Check<()> {
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

fn check_relu(saturate: u32, low: i64, input: &Tensor, output: &Tensor) -> Check<()> {
    ensure((1..=MAX_SATURATE).contains(&saturate), || format!("saturates at {saturate} bits"))?;
    let near = low.unsigned_abs() <= 1 << (saturate + FAR_BITS);
    ensure(near, || format!("clips from {low} on over {saturate} bits"))?;
    let narrow = input.format.bits.min(output.format.bits);
    ensure(narrow > saturate + 1, || format!("{narrow} bits are too few for {saturate}"))
}

fn check_pool(window: &Window, input: &Tensor, output: &Tensor) -> Check<()> {
    check_window(window)?;
    ensure(input.shape == [window.channels, window.height, window.width], || {
        format!("window on {:?}", input.shape)
    })?;
    let side = [window.channels, window.out_height(), window.out_width()];
    ensure(output.shape == side, || format!("output is {side:?}, not {:?}", output.shape))?;
    same_width(input, output)
}
