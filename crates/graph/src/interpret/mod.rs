//! The oracle: the very integers that the protocols compute, in the clear.
//!
//! Sums wrap mod 2^64; graphs that are never rescaled have their own (`exact.rs`). In a model that [`crate::verify_model`] accepts nothing
//! ever wraps, because every accumulator fits its width.

mod narrow;
mod wide;
mod winograd;

use crate::arrange::arrangement;
use crate::ir::{Embedding, Graph, MatMul, Model, Node, NodeWeights, Op, Window};
use crate::model::verify_shapes;
use crate::width::half;
use crate::{Error, Result};
use narrow::Narrow;
use rayon::prelude::*;
use ring::Fixed;
use std::collections::BTreeMap;

/// The output integers for one quantised input.
///
/// # Errors
/// [`Error::Misuse`] when the input has the wrong length or leaves
/// [`Graph::input_range`]; [`Error::Invalid`] for an inconsistent model.
pub fn interpret(model: &Model, input: &[i64]) -> Result<Vec<i64>> {
    let mut tensors = trace(model, input)?;
    Ok(std::mem::take(&mut tensors[model.graph.output]))
}

/// [`interpret`] for many inputs, in parallel on rayon's current pool.
///
/// # Errors
/// As [`interpret`].
pub fn interpret_batch(model: &Model, inputs: &[Vec<i64>]) -> Result<Vec<Vec<i64>>> {
    verify_shapes(model)?;
    let kernels = kernels(model);
    let one = |input: &Vec<i64>| {
        let mut tensors = run(model, &kernels, input)?;
        Ok(std::mem::take(&mut tensors[model.graph.output]))
    };
    inputs.par_iter().map(one).collect()
}

/// The values of every tensor, by its index in the graph.
///
/// # Errors
/// As [`interpret`].
pub fn trace(model: &Model, input: &[i64]) -> Result<Vec<Vec<i64>>> {
    verify_shapes(model)?;
    run(model, &kernels(model), input)
}

/// Index of the first largest value; 0 for an empty slice.
pub fn argmax(values: &[i64]) -> usize {
    (1..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best })
}

/// The kernels of the linear nodes that have narrow ones, by node.
type Kernels = BTreeMap<usize, Narrow>;

fn kernels(model: &Model) -> Kernels {
    let nodes = model.graph.nodes.iter().enumerate();
    let narrow = |(index, op): (usize, &Op)| match op {
        Op::Linear(linear) => Some((index, Narrow::new(&linear.conv, &model.weights[&index])?)),
        _ => None,
    };
    nodes.filter_map(|(index, node)| narrow((index, &node.op))).collect()
}

/// The model's shapes were verified.
fn run(model: &Model, kernels: &Kernels, input: &[i64]) -> Result<Vec<Vec<i64>>> {
    let graph = &model.graph;
    check_input(graph, input)?;
    if let Some(exact) = &graph.exact {
        return crate::exact::run(model, exact, input);
    }
    let mut tensors = vec![Vec::new(); graph.tensors.len()];
    tensors[graph.input] = input.to_vec();
    for (index, node) in graph.nodes.iter().enumerate() {
        let x = &tensors[node.inputs[0]];
        let second = || &tensors[node.inputs[1]];
        tensors[node.output] = match &node.op {
            Op::Linear(linear) => {
                let skip = linear.addend.map(|factor| (factor, second().as_slice()));
                let weights = &model.weights[&index];
                let narrow = kernels.get(&index).and_then(|k| k.convolve(&linear.conv, x));
                let products = narrow.unwrap_or_else(|| wide::convolve(&linear.conv, weights, x));
                finish_linear(linear.shift, weights, products, skip)
            }
            Op::Winograd(layer) => {
                let skip = layer.addend.map(|factor| (factor, second().as_slice()));
                let weights = &model.weights[&index];
                let sums = winograd::convolve(layer, weights, x);
                finish_linear(layer.shift, weights, sums, skip)
            }
            Op::Requantize { drop } => x.iter().map(|v| rescale(*v, *drop)).collect(),
            Op::Relu { saturate, low } => {
                let high = low + (1 << saturate) - 1;
                x.iter().map(|v| (*v).clamp(*low, high)).collect()
            }
            Op::MaxPool(window) => pool(window, x, i64::MIN, i64::max),
            Op::SumPool(window) => pool(window, x, 0, i64::wrapping_add),
            Op::Sum { multipliers: [m0, m1], shift, .. } => {
                let pairs = x.iter().zip(second());
                let sum =
                    |(a, b): (&i64, &i64)| a.wrapping_mul(*m0).wrapping_add(b.wrapping_mul(*m1));
                pairs.map(|pair| rescale(sum(pair), *shift)).collect()
            }
            Op::Offset => {
                let constants = &model.weights[&index].bias;
                x.iter().zip(constants).map(|(v, c)| v.wrapping_add(*c)).collect()
            }
            Op::Reshape | Op::Extend => x.clone(),
            Op::Concat => node.inputs.iter().flat_map(|i| &tensors[*i]).copied().collect(),
            Op::View(_) | Op::Pad { .. } => {
                let places = arrangement(graph, node);
                places.into_iter().map(|place| place.map_or(0, |i| x[i])).collect()
            }
            Op::Product { .. } => {
                let pairs = x.iter().zip(second());
                pairs.map(|(a, b)| a.wrapping_mul(*b)).collect()
            }
            Op::Lookup { low, values } => {
                // Positions count modulo the table's size, as in the protocol.
                let at = |v: &i64| v.wrapping_sub(*low) as usize % values.len();
                x.iter().map(|v| values[at(v)]).collect()
            }
            Op::Embedding(table) => rows(table, &model.weights[&index], x),
            Op::MatMul(matmul) => {
                let sides = [0, 1].map(|i| graph.input_of(node, i).shape.as_slice());
                multiply(matmul, sides, x, second())
            }
            Op::ReluSoftmax { .. } => {
                let mask = node.inputs.get(1).map(|input| tensors[*input].as_slice());
                relu_softmax(graph, node, x, mask)?
            }
            Op::Softmax { .. } | Op::Gelu { .. } | Op::LayerNorm { .. } | Op::Smu { .. } => {
                function(graph, node, x)?
            }
        };
    }
    Ok(tensors)
}

fn check_input(graph: &Graph, input: &[i64]) -> Result<()> {
    let want = graph.tensors[graph.input].len();
    if input.len() != want {
        return Err(Error::Misuse(format!("input has {} values, needs {want}", input.len())));
    }
    for (v, [low, high]) in input.iter().zip(ranges_of_input(graph)) {
        if !(low..=high).contains(v) {
            return Err(Error::Misuse(format!("input value {v} is outside {low}..={high}")));
        }
    }
    Ok(())
}

/// The range of each value of the input.
fn ranges_of_input(graph: &Graph) -> impl Iterator<Item = [i64; 2]> {
    let rows = match graph.input_rows[..] {
        [] => std::slice::from_ref(&graph.input_range),
        _ => &graph.input_rows,
    };
    let each = graph.tensors[graph.input].len() / rows.len();
    rows.iter().flat_map(move |range| std::iter::repeat_n(*range, each))
}

/// `[columns, length]` out of a table `[rows, columns]`; positions are in range.
fn rows(table: &Embedding, weights: &NodeWeights, x: &[i64]) -> Vec<i64> {
    let columns = weights.weight.len() / table.rows.max(1);
    let entry = |(column, row): (usize, &i64)| {
        let place = *row as usize * columns + column;
        weights.weight.get(place).copied().unwrap_or(0)
    };
    let places = (0..columns).flat_map(|column| x.iter().map(move |row| (column, row)));
    places.map(|place| rescale(entry(place).into(), table.shift)).collect()
}

fn multiply(matmul: &MatMul, [a, b]: [&[usize]; 2], x: &[i64], y: &[i64]) -> Vec<i64> {
    let [_, _, inner, columns] = MatMul::sides(a, b).unwrap_or([0, 0, 1, 1]);
    let height = a.get(a.len().saturating_sub(2)).copied().unwrap_or(1);
    let mut out = Vec::with_capacity(x.len() / inner.max(1) * columns);
    let pairs = x.chunks_exact(height * inner).zip(y.chunks_exact(inner * columns));
    for (x, y) in pairs {
        for row in x.chunks_exact(inner) {
            let mut sums = vec![0i64; columns];
            for (factor, row) in row.iter().zip(y.chunks_exact(columns)) {
                let terms = sums.iter_mut().zip(row);
                terms.for_each(|(sum, y)| *sum = sum.wrapping_add(factor.wrapping_mul(*y)));
            }
            out.extend(sums.into_iter().map(|sum| rescale(sum, matmul.shift)));
        }
    }
    out
}

fn relu_softmax(graph: &Graph, node: &Node, x: &[i64], mask: Option<&[i64]>) -> Result<Vec<i64>> {
    let softmax = graph.relu_softmax(node);
    let softmax = softmax.map_err(|why| Error::invalid("interpret", &node.name, why))?;
    let columns = softmax.cols;
    let row = |(index, row): (usize, &[i64])| {
        let mask = mask.map(|mask| &mask[index * columns..][..columns]);
        softmax.clear(row, mask)
    };
    Ok(x.chunks_exact(columns).enumerate().flat_map(row).collect())
}

fn function(graph: &Graph, node: &Node, x: &[i64]) -> Result<Vec<i64>> {
    let invalid = |why| Error::invalid("interpret", &node.name, why);
    Ok(match node.op {
        Op::Softmax { .. } => {
            let softmax = graph.softmax(node).map_err(invalid)?;
            let columns = graph.input_of(node, 0).shape.last().copied().unwrap_or(1);
            x.chunks_exact(columns).flat_map(|row| softmax.clear(row)).collect()
        }
        Op::LayerNorm { .. } => {
            let norm = graph.layer_norm(node).map_err(invalid)?;
            let columns = graph.input_of(node, 0).shape[0];
            let rows = x.len() / columns;
            let row = |row: usize| {
                norm.clear(&x.iter().skip(row).step_by(rows).copied().collect::<Vec<_>>())
            };
            let results: Vec<Vec<i64>> = (0..rows).map(row).collect();
            (0..columns).flat_map(|column| results.iter().map(move |row| row[column])).collect()
        }
        Op::Smu { .. } => {
            let smu = graph.smu(node).map_err(invalid)?;
            let offset = smu.real.offset();
            smu.formula.results(x.iter().map(|v| v + offset)).collect()
        }
        _ => {
            let gelu = graph.gelu(node).map_err(invalid)?;
            x.iter().map(|v| gelu.clear(*v)).collect()
        }
    })
}

fn rescale(accumulator: i64, shift: u32) -> i64 {
    accumulator.wrapping_add(half(shift)) >> shift
}

/// Adds the bias and `skip`, a factor and the tensor it multiplies, and rescales.
fn finish_linear(
    shift: u32,
    weights: &NodeWeights,
    mut sums: Vec<i64>,
    skip: Option<(i64, &[i64])>,
) -> Vec<i64> {
    let plane = sums.len() / weights.bias.len().max(1);
    for (channel, bias) in sums.chunks_exact_mut(plane.max(1)).zip(&weights.bias) {
        channel.iter_mut().for_each(|sum| *sum = sum.wrapping_add(*bias));
    }
    if let Some((factor, skip)) = skip {
        for (sum, skip) in sums.iter_mut().zip(skip) {
            *sum = sum.wrapping_add(skip.wrapping_mul(factor));
        }
    }
    sums.iter_mut().for_each(|sum| *sum = rescale(*sum, shift));
    sums
}

/// Folds the real elements of every window.
pub(crate) fn pool<T: Copy>(window: &Window, x: &[T], start: T, fold: fn(T, T) -> T) -> Vec<T> {
    let (height, width) = (window.out_height(), window.out_width());
    let [top, left, ..] = window.padding;
    let reach = |o: usize, axis: usize, pad: usize, side: usize| {
        let first = o * window.stride[axis];
        let end = (first + window.kernel[axis]).saturating_sub(pad).min(side);
        first.saturating_sub(pad)..end
    };
    let mut out = Vec::with_capacity(window.channels * height * width);
    for image in x.chunks_exact(window.height * window.width) {
        for (oy, ox) in (0..height).flat_map(|oy| (0..width).map(move |ox| (oy, ox))) {
            let rows = reach(oy, 0, top, window.height);
            let columns = reach(ox, 1, left, window.width);
            let taps = rows.flat_map(|y| &image[y * window.width..][columns.clone()]);
            out.push(taps.fold(start, |a, b| fold(a, *b)));
        }
    }
    out
}

impl Graph {
    /// The client's integers: nearest, halves away from zero, clipped to
    /// [`Graph::input_range`].
    ///
    /// # Errors
    /// [`Error::Misuse`] for a wrong length and for values that are not finite.
    pub fn quantize_input(&self, values: &[f32]) -> Result<Vec<i64>> {
        let tensor = &self.tensors[self.input];
        if values.len() != tensor.len() {
            let shape = &tensor.shape;
            return Err(Error::Misuse(format!(
                "input has {} values, needs {shape:?}",
                values.len()
            )));
        }
        let ranges = ranges_of_input(self);
        let encode = |((index, value), range): ((usize, &f32), [i64; 2])| {
            let fixed = Fixed { scale: tensor.format.scale, range };
            let integer = fixed.encode(f64::from(*value));
            let why = || Error::Misuse(format!("input value {index} is not a finite number"));
            integer.ok_or_else(why)
        };
        values.iter().enumerate().zip(ranges).map(encode).collect()
    }

    /// Real values of output integers.
    pub fn dequantize_output(&self, values: &[i64]) -> Vec<f64> {
        let scale = self.tensors[self.output].format.scale;
        values.iter().map(|v| *v as f64 * scale).collect()
    }
}
