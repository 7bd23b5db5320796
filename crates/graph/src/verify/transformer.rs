//! Invariants of operators that only transformers have.

use super::{check_accumulator, ensure, same_shape};
use crate::ir::{Embedding, Graph, MatMul, Node, Op};
use crate::shapes::{Check, elements};

/// Most rows of an embedding: the client encrypts one value for each.
const MAX_ROWS: usize = 1 << 20;
/// Most terms of all products of matrices: each is multiplied.
const MAX_TERMS: usize = 1 << 36;

/// A table of `[rows, columns]` at positions that the client knows; its results are signed.
pub(super) fn check_embedding(graph: &Graph, node: &Node, table: &Embedding) -> Check<bool> {
    let (input, output) = (graph.input_of(node, 0), graph.output_of(node));
    let known = graph.known().get(node.inputs[0]).copied() == Some(true);
    ensure(known, || "looks up at positions that the client does not know".into())?;
    let [length] = input.shape[..] else {
        return Err(format!("looks up at positions {:?}", input.shape));
    };
    let fits = matches!(output.shape[..], [_, same] if same == length);
    ensure(fits, || format!("{length} rows make {:?}", output.shape))?;
    ensure((1..=MAX_ROWS).contains(&table.rows), || format!("a table of {} rows", table.rows))?;
    elements(&[table.rows, length])?;
    let entries = table.rows.saturating_mul(output.shape[0]);
    ensure(entries <= 1 << 28, || format!("a table of {entries} entries"))?;
    let Embedding { weight_bits, shift, .. } = *table;
    let widths = (2..=32).contains(&weight_bits) && shift < weight_bits;
    ensure(widths, || format!("entries of {weight_bits} bits, shift {shift}"))?;
    let plain = output.format.bits + shift;
    ensure(plain <= super::MAX_ACCUMULATOR_BITS, || format!("results of {plain} bits"))?;
    Ok(true)
}

/// Fitting sides and widths; products are signed.
pub(super) fn check_product_of_matrices(
    graph: &Graph,
    node: &Node,
    matmul: &MatMul,
) -> Check<bool> {
    let [a, b] = [0, 1].map(|i| graph.input_of(node, i));
    let output = graph.output_of(node);
    let sides = MatMul::sides(&a.shape, &b.shape);
    let [count, rows, inner, columns] =
        sides.ok_or_else(|| format!("multiplies {:?} by {:?}", a.shape, b.shape))?;
    let want = a.shape.iter().take(a.shape.len() - 2).copied().chain([rows, columns]);
    ensure(output.shape.iter().copied().eq(want), || format!("makes {:?}", output.shape))?;
    let terms = [rows, inner, columns].iter().try_fold(count, |all, side| all.checked_mul(*side));
    ensure(terms.is_some_and(|terms| terms <= MAX_TERMS), || "too many products".into())?;
    check_accumulator(matmul.accumulator_bits, matmul.shift, a, output)?;
    check_accumulator(matmul.accumulator_bits, matmul.shift, b, output)?;
    Ok(true)
}

/// Numbers that make a function, wide enough shares; tells whether results are signed.
pub(super) fn check_functions(graph: &Graph, node: &Node) -> Check<bool> {
    let (input, output) = (graph.input_of(node, 0), graph.output_of(node));
    same_shape(input, output)?;
    let (need, signed) = match node.op {
        Op::Softmax { bits, .. } => graph.softmax(node).map(|_| (bits, false))?,
        Op::LayerNorm { bits, .. } => graph.layer_norm(node).map(|_| (bits, true))?,
        Op::Gelu { magnitude, .. } => graph.gelu(node).map(|_| (magnitude + 3, true))?,
        Op::Smu { smooth, .. } => graph.smu(node).map(|_| (smooth.bits + 1, true))?,
        Op::ReluSoftmax { smooth, .. } => {
            check_mask(graph, node)?;
            graph.relu_softmax(node).map(|_| (smooth.bits + 1, false))?
        }
        _ => return Err("is no function".into()),
    };
    let have = input.format.bits;
    ensure(have >= need, || format!("`{}` has {have} bits, needs {need}", input.name))?;
    Ok(signed)
}

/// A second input is the client's and of the first's shape; its lowest bits count.
fn check_mask(graph: &Graph, node: &Node) -> Check<()> {
    let Some(mask) = node.inputs.get(1) else { return Ok(()) };
    let known = graph.known().get(*mask).copied() == Some(true);
    ensure(known, || "is masked by what the client does not know".into())?;
    same_shape(graph.input_of(node, 0), graph.input_of(node, 1))
}
