//! The oracle: the very integers that the protocols compute, in the clear.
//!
//! Sums wrap mod 2^64. In a model that [`crate::verify_model`] accepts nothing
//! ever wraps, because every accumulator fits its width.

use crate::arrange::arrangement;
use crate::ir::{Conv, Graph, Linear, Model, NodeWeights, Op, Window};
use crate::model::verify_shapes;
use crate::width::{half, taps_per_channel};
use crate::{Error, Result};
use rayon::prelude::*;
use ring::Fixed;
use std::ops::Range;

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
    let one = |input: &Vec<i64>| {
        let mut tensors = run(model, input)?;
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
    run(model, input)
}

/// Index of the first largest value; 0 for an empty slice.
pub fn argmax(values: &[i64]) -> usize {
    (1..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best })
}

/// The model's shapes were verified.
fn run(model: &Model, input: &[i64]) -> Result<Vec<Vec<i64>>> {
    let graph = &model.graph;
    check_input(graph, input)?;
    let mut tensors = vec![Vec::new(); graph.tensors.len()];
    tensors[graph.input] = input.to_vec();
    for (index, node) in graph.nodes.iter().enumerate() {
        let x = &tensors[node.inputs[0]];
        let second = || &tensors[node.inputs[1]];
        tensors[node.output] = match &node.op {
            Op::Linear(linear) => {
                let skip = linear.addend.map(|factor| (factor, second().as_slice()));
                apply_linear(linear, &model.weights[&index], x, skip)
            }
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
        };
    }
    Ok(tensors)
}

fn check_input(graph: &Graph, input: &[i64]) -> Result<()> {
    let want = graph.tensors[graph.input].len();
    if input.len() != want {
        return Err(Error::Misuse(format!("input has {} values, needs {want}", input.len())));
    }
    let [low, high] = graph.input_range;
    match input.iter().find(|v| !(low..=high).contains(*v)) {
        Some(v) => Err(Error::Misuse(format!("input value {v} is outside {low}..={high}"))),
        None => Ok(()),
    }
}

fn rescale(accumulator: i64, shift: u32) -> i64 {
    accumulator.wrapping_add(half(shift)) >> shift
}

fn apply_linear(
    linear: &Linear,
    weights: &NodeWeights,
    x: &[i64],
    skip: Option<(i64, &[i64])>,
) -> Vec<i64> {
    let mut sums = convolve(&linear.conv, weights, x);
    if let Some((factor, skip)) = skip {
        for (sum, skip) in sums.iter_mut().zip(skip) {
            *sum = sum.wrapping_add(skip.wrapping_mul(factor));
        }
    }
    sums.iter_mut().for_each(|sum| *sum = rescale(*sum, linear.shift));
    sums
}

/// `W*x + bias`, `[out_channels, out_height, out_width]`.
fn convolve(conv: &Conv, weights: &NodeWeights, x: &[i64]) -> Vec<i64> {
    let plane = conv.out_height() * conv.out_width();
    let mut sums: Vec<i64> =
        weights.bias.iter().flat_map(|bias| std::iter::repeat_n(*bias, plane)).collect();
    let rows = weights.weight.chunks_exact(taps_per_channel(conv));
    let in_plane = conv.in_height * conv.in_width;
    let group_inputs = conv.group_channels() * in_plane;
    let group_outputs = conv.out_channels / conv.groups;
    for (channel, (row, out)) in rows.zip(sums.chunks_exact_mut(plane)).enumerate() {
        let first = channel / group_outputs * group_inputs;
        let inputs = &x[first..first + group_inputs];
        if in_plane == 1 && row.len() == inputs.len() {
            out[0] = out[0].wrapping_add(dot(row, inputs));
        } else {
            let kernels = row.chunks_exact(conv.kernel[0] * conv.kernel[1]);
            for (kernel, image) in kernels.zip(inputs.chunks_exact(in_plane)) {
                correlate(conv, kernel, image, out);
            }
        }
    }
    sums
}

fn dot(row: &[i32], x: &[i64]) -> i64 {
    row.iter().zip(x).fold(0, |sum, (w, v)| sum.wrapping_add(v.wrapping_mul(i64::from(*w))))
}

/// Adds one kernel's correlation with one image to one output plane.
fn correlate(conv: &Conv, kernel: &[i32], image: &[i64], out: &mut [i64]) {
    let (height, width) = (conv.out_height(), conv.out_width());
    let [top, left, ..] = conv.padding;
    for (tap, weight) in kernel.iter().enumerate() {
        let down = tap / conv.kernel[1] * conv.dilation[0];
        let across = tap % conv.kernel[1] * conv.dilation[1];
        let columns = span(width, conv.in_width, conv.stride[1], across, left);
        for y in span(height, conv.in_height, conv.stride[0], down, top) {
            let from = (y * conv.stride[0] + down - top) * conv.in_width;
            let row = &image[from..from + conv.in_width];
            let out = &mut out[y * width..(y + 1) * width][columns.clone()];
            let first = (columns.start * conv.stride[1] + across).saturating_sub(left);
            add_scaled(out, i64::from(*weight), &row[first.min(row.len())..], conv.stride[1]);
        }
    }
}

/// `out[i] += weight * row[i * stride]`.
fn add_scaled(out: &mut [i64], weight: i64, row: &[i64], stride: usize) {
    let add = |(sum, v): (&mut i64, &i64)| *sum = sum.wrapping_add(weight.wrapping_mul(*v));
    if stride == 1 {
        out.iter_mut().zip(row).for_each(add);
    } else {
        out.iter_mut().zip(row.iter().step_by(stride)).for_each(add);
    }
}

/// Output positions `o` for which `o * stride + offset - pad` lies in `0..side`.
fn span(count: usize, side: usize, stride: usize, offset: usize, pad: usize) -> Range<usize> {
    let start = pad.saturating_sub(offset).div_ceil(stride);
    let end = (side + pad).saturating_sub(offset).div_ceil(stride).min(count);
    start.min(end)..end
}

/// Folds the real elements of every window.
fn pool(window: &Window, x: &[i64], start: i64, fold: fn(i64, i64) -> i64) -> Vec<i64> {
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
        let fixed = Fixed { scale: tensor.format.scale, range: self.input_range };
        let encode = |(index, value): (usize, &f32)| {
            let integer = fixed.encode(f64::from(*value));
            let why = || Error::Misuse(format!("input value {index} is not a finite number"));
            integer.ok_or_else(why)
        };
        values.iter().enumerate().map(encode).collect()
    }

    /// Real values of output integers.
    pub fn dequantize_output(&self, values: &[i64]) -> Vec<f64> {
        let scale = self.tensors[self.output].format.scale;
        values.iter().map(|v| *v as f64 * scale).collect()
    }
}
