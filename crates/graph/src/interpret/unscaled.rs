//! Graphs of integers that are never rescaled: ranges in the worst case, and the interpreter.
//!
//! Values between input and output may have any size, so the interpreter has 128 bits. It
//! refuses what the protocol would get wrong: outputs beyond their width.

use crate::error::{Error, Result};
use crate::ir::{Model, Unscaled};
use crate::ops::Range;

/// Bits within which the interpreter computes.
const MOST_BITS: u32 = 126;

/// The range of the output over all inputs.
///
/// # Errors
/// [`Error::Invalid`] when a value may leave 126 bits. The model's shapes were verified.
pub(crate) fn check(model: &Model) -> Result<Range> {
    let graph = &model.graph;
    let [low, high] = graph.input_range.map(i128::from);
    let mut ranges = vec![Range::ZERO; graph.tensors.len()];
    ranges[graph.input] = Range::new(low, high);
    for (index, node) in graph.nodes.iter().enumerate() {
        let inputs: Vec<Range> = node.inputs.iter().map(|input| ranges[*input]).collect();
        let unscaled = (node.op.unscaled(&graph.site(node))).ok_or_else(|| rescales(&node.name))?;
        let range = unscaled.range(model.weights.get(&index), &inputs);
        if range.width() > MOST_BITS {
            let why = format!("values may exceed {MOST_BITS} bits");
            return Err(Error::invalid("verify", &node.name, why));
        }
        ranges[node.output] = range;
    }
    Ok(ranges[graph.output])
}

fn rescales(node: &str) -> Error {
    Error::invalid("verify", node, "cannot be computed without rescaling")
}

/// The values of every tensor; those that exceed 64 bits, which no protocol shows to anybody,
/// mod 2^64.
///
/// # Errors
/// [`Error::Misuse`] when an output leaves its width.
pub(crate) fn run(model: &Model, exact: &Unscaled, input: &[i64]) -> Result<Vec<Vec<i64>>> {
    let graph = &model.graph;
    let mut tensors = vec![Vec::new(); graph.tensors.len()];
    tensors[graph.input] = input.iter().map(|x| i128::from(*x)).collect();
    for (index, node) in graph.nodes.iter().enumerate() {
        let inputs: Vec<&[i128]> = node.inputs.iter().map(|i| tensors[*i].as_slice()).collect();
        let unscaled = (node.op.unscaled(&graph.site(node))).ok_or_else(|| rescales(&node.name))?;
        tensors[node.output] = unscaled.interpret(model.weights.get(&index), &inputs);
    }
    let most = 1i128 << (exact.output_bits - 1);
    if tensors[graph.output].iter().any(|v| v.abs() >= most) {
        return Err(Error::Misuse(format!(
            "an output leaves the {} bits that the model was compiled for; compile it with more \
             margin, or calibrate with inputs like this one",
            exact.output_bits
        )));
    }
    Ok(tensors.into_iter().map(|tensor| tensor.into_iter().map(|v| v as i64).collect()).collect())
}
