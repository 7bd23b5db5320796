//! The functions of transformers, by oblivious transfer, or by garbled circuits in part.

use graph::{Graph, Node, Op};
use mpc::comet::smu::Smu;
use mpc::comet::softmax::ReluSoftmax;
use mpc::compare::Radix;
use mpc::transformer::gelu::Gelu;
use mpc::transformer::layernorm::LayerNorm;
use mpc::transformer::softmax::Softmax;
use wire::{Error, Result};

use crate::plan::composed::Composed;
use crate::plan::sliced::Sliced;
use crate::plan::step::Action;

/// How what is computed once a row is: factors of layer norms, reciprocals of softmaxes.
/// Other functions have no rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowsBy {
    /// By transfers.
    Transfers,
    /// By garbled circuits.
    Circuits,
}

/// Plans a node that is one, with comparisons in `digits` where they are given, and what is
/// computed once a row as `rows` says.
///
/// # Errors
/// [`Error::Misuse`] for widths that no protocol has, and for circuits of
/// Newton's iterations.
pub(super) fn action(
    graph: &Graph,
    node: &Node,
    batch: usize,
    digits: Option<Radix>,
    rows_by: RowsBy,
) -> Result<Action> {
    let fastest = |count, bits| digits.unwrap_or_else(|| Radix::fastest(count, bits));
    let (input, output) = (graph.input_of(node, 0), graph.output_of(node));
    let (count, bits) = (output.len() * batch, input.format.bits);
    let (narrow, sliced, transpose) = match node.op {
        Op::Softmax { bits, .. } => {
            let softmax = graph.softmax(node).map_err(Error::misuse)?;
            let columns = output.shape.last().copied().unwrap_or(1);
            let radix = fastest(count, bits.saturating_sub(1));
            let sliced = Sliced::rows(count / columns, columns, |rows| {
                let plan = match rows_by {
                    RowsBy::Transfers => Softmax::new(rows, &softmax, radix)?,
                    RowsBy::Circuits => Softmax::with_circuits(rows, &softmax, radix)?,
                };
                Ok(plan)
            })?;
            (bits, sliced, None)
        }
        Op::LayerNorm { bits, .. } => {
            let norm = graph.layer_norm(node).map_err(Error::misuse)?;
            let columns = output.shape.first().copied().unwrap_or(1);
            let radix = fastest(count, bits);
            let sliced = Sliced::rows(count / columns, columns, |rows| {
                let plan = match rows_by {
                    RowsBy::Transfers => LayerNorm::new(rows, &norm, radix)?,
                    RowsBy::Circuits => LayerNorm::with_circuits(rows, &norm, radix)?,
                };
                Ok(plan)
            })?;
            (bits, sliced, Some([columns, output.len() / columns]))
        }
        Op::Smu { smooth, .. } => {
            let smu = graph.smu(node).map_err(Error::misuse)?;
            let radix = fastest(count, smooth.bits);
            let sliced = Sliced::new(count, |count| Smu::new(count, &smu, radix))?;
            (smooth.bits + 1, sliced, None)
        }
        Op::ReluSoftmax { smooth, .. } => {
            let softmax = graph.relu_softmax(node).map_err(Error::misuse)?;
            let columns = output.shape.last().copied().unwrap_or(1);
            let (radix, masked) = (fastest(count, smooth.bits), node.inputs.len() > 1);
            let sliced = Sliced::rows(count / columns, columns, |rows| {
                let plan = ReluSoftmax::new(rows, &softmax, masked, radix)?;
                Ok(plan)
            })?;
            let narrow = Some([smooth.bits + 1, 1]);
            return Ok(Action::from(Composed { narrow, ..Composed::from(sliced) }));
        }
        _ => {
            let gelu = graph.gelu(node).map_err(Error::misuse)?;
            let radix = fastest(count, bits.saturating_sub(1));
            let sliced = Sliced::new(count, |count| {
                let plan = Gelu::new(count, bits, &gelu, output.format.bits, radix)?;
                Ok(plan)
            })?;
            (bits, sliced, None)
        }
    };
    let narrow = Some([narrow; 2]);
    Ok(Action::from(Composed { narrow, transpose, ..Composed::from(sliced) }))
}
