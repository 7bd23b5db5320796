//! Graphs of integers that are never rescaled: ranges in the worst case, and the interpreter.
//!
//! Values between input and output may have any size, so the interpreter has 128 bits. It
//! refuses what the protocol would get wrong: outputs beyond their width.

use crate::interpret::pool;
use crate::ir::{Conv, Exact, Linear, Model, NodeWeights, Op};
use crate::width::{Range, taps_per_channel};
use crate::{Error, Result};

/// Bits within which the interpreter computes.
const MOST_BITS: u32 = 126;

/// The range of the output over all inputs.
///
/// # Errors
/// [`Error::Invalid`] when a value may leave 126 bits. The model's shapes were verified.
pub(crate) fn check(model: &Model) -> Result<Range> {
    let graph = &model.graph;
    let [low, high] = graph.input_range.map(i128::from);
    let mut ranges = vec![Range::new(0, 0); graph.tensors.len()];
    ranges[graph.input] = Range::new(low, high);
    for (index, node) in graph.nodes.iter().enumerate() {
        let x = ranges[node.inputs[0]];
        let range = match &node.op {
            Op::Linear(linear) => sums(linear, &model.weights[&index], x),
            Op::SumPool(window) => {
                let zero = Range::new(x.low.min(0), x.high.max(0));
                zero.times(window.size() as i128)
            }
            Op::Product { .. } => {
                let most = x.low.saturating_abs().max(x.high.saturating_abs());
                Range::new(0, most.saturating_mul(most))
            }
            Op::Sum { multipliers: [m0, m1], .. } => {
                let second = node.inputs.get(1).map_or(x, |second| ranges[*second]);
                x.times(i128::from(*m0)).plus(second.times(i128::from(*m1)))
            }
            Op::Offset => {
                let constants = || model.weights[&index].bias.iter().map(|c| i128::from(*c));
                let ends = [constants().min(), constants().max()].map(|end| end.unwrap_or(0));
                x.plus(Range::new(ends[0], ends[1]))
            }
            _ => x,
        };
        if range.width() > MOST_BITS {
            let why = format!("values may exceed {MOST_BITS} bits");
            return Err(Error::invalid("verify", &node.name, why));
        }
        ranges[node.output] = range;
    }
    Ok(ranges[graph.output])
}

fn sums(linear: &Linear, weights: &NodeWeights, x: Range) -> Range {
    let (low, high) = (x.low.min(0), x.high.max(0));
    let rows = weights.weight.chunks_exact(taps_per_channel(&linear.conv));
    let of_row = |(row, bias): (&[i32], &i64)| {
        let sum = |keep: fn(i32) -> i32| row.iter().map(|w| i128::from(keep(*w))).sum::<i128>();
        let (positive, negative) = (sum(|w| w.max(0)), sum(|w| w.min(0)));
        let ends = Range::new(low, high);
        let all = ends.times(positive).plus(ends.times(negative));
        all.plus(Range::new(i128::from(*bias), i128::from(*bias)))
    };
    let ranges = rows.zip(&weights.bias).map(of_row);
    let join = |a: Range, b: Range| Range::new(a.low.min(b.low), a.high.max(b.high));
    ranges.reduce(join).unwrap_or(Range::new(0, 0))
}

/// The values of every tensor; those that exceed 64 bits, which no protocol shows to anybody,
/// mod 2^64.
///
/// # Errors
/// [`Error::Misuse`] when an output leaves its width.
pub(crate) fn run(model: &Model, exact: &Exact, input: &[i64]) -> Result<Vec<Vec<i64>>> {
    let graph = &model.graph;
    let mut tensors = vec![Vec::new(); graph.tensors.len()];
    tensors[graph.input] = input.iter().map(|x| i128::from(*x)).collect();
    for (index, node) in graph.nodes.iter().enumerate() {
        let x: &Vec<i128> = &tensors[node.inputs[0]];
        tensors[node.output] = match &node.op {
            Op::Linear(linear) => convolve(&linear.conv, &model.weights[&index], x),
            Op::SumPool(window) => pool(window, x, 0, |a, b| a + b),
            Op::Product { .. } => x.iter().map(|v| v * v).collect(),
            Op::Sum { multipliers, .. } => {
                let [m0, m1] = multipliers.map(i128::from);
                x.iter().zip(&tensors[node.inputs[1]]).map(|(a, b)| a * m0 + b * m1).collect()
            }
            Op::Offset => {
                let constants = &model.weights[&index].bias;
                x.iter().zip(constants).map(|(v, c)| v + i128::from(*c)).collect()
            }
            _ => x.clone(),
        };
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

/// `W*x + bias`.
fn convolve(conv: &Conv, weights: &NodeWeights, x: &[i128]) -> Vec<i128> {
    let (height, width) = (conv.out_height(), conv.out_width());
    let (plane, each) = (conv.in_height * conv.in_width, conv.group_channels());
    let per_group = conv.out_channels / conv.groups;
    let rows = weights.weight.chunks_exact(taps_per_channel(conv)).zip(&weights.bias);
    let mut out = Vec::with_capacity(conv.out_channels * height * width);
    for (channel, (row, bias)) in rows.enumerate() {
        let first = channel / per_group * each * plane;
        let inputs = &x[first..first + each * plane];
        for window in 0..height * width {
            let sum = if conv.is_fully_connected() {
                row.iter().zip(inputs).map(|(w, v)| i128::from(*w) * v).sum()
            } else {
                window_sum(conv, row, inputs, [window / width, window % width])
            };
            out.push(sum + i128::from(*bias));
        }
    }
    out
}

fn window_sum(conv: &Conv, row: &[i32], inputs: &[i128], at: [usize; 2]) -> i128 {
    let [rows, columns] = conv.kernel;
    let plane = conv.in_height * conv.in_width;
    let sides = [conv.in_height, conv.in_width];
    let place = |axis: usize, tap: usize| {
        let position = at[axis] * conv.stride[axis] + tap * conv.dilation[axis];
        position.checked_sub(conv.padding[axis]).filter(|position| *position < sides[axis])
    };
    let mut sum = 0;
    for y in 0..rows {
        let Some(down) = place(0, y) else { continue };
        for x in 0..columns {
            let Some(across) = place(1, x) else { continue };
            let taps = row.iter().skip(y * columns + x).step_by(rows * columns);
            let values = inputs.iter().skip(down * conv.in_width + across).step_by(plane);
            sum += taps.zip(values).map(|(w, v)| i128::from(*w) * v).sum::<i128>();
        }
    }
    sum
}
