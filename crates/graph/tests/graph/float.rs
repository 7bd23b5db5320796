//! Float reference: the source graph as an importer defines it, before any pass.

use crate::numbers::Numbers;
use crate::winograd;
use std::collections::BTreeMap;
use tacit_graph::source::Program;
use tacit_graph::source::ops::{
    Add, AddConstant, AveragePool, BatchNormalization, Clip, Concat, Conv, Gemm, MaxPool, Multiply,
    Pad, QuantisedConv, Relu, Scale, Table, View,
};
use tacit_graph::{Ranges, SourceOp};

/// Value of every tensor by name.
pub(crate) fn run(program: &Program, x: &[f32]) -> BTreeMap<String, Vec<f64>> {
    let shapes = program.shapes().unwrap();
    let mut values = BTreeMap::new();
    values.insert("x".to_owned(), x.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>());
    for node in &program.source.nodes {
        let x = &values[&node.inputs[0]];
        let (from, to) = (&shapes[&node.inputs[0]], &shapes[&node.output]);
        let pairs = || x.iter().zip(&values[&node.inputs[1]]);
        let y = if node.op.is::<Add>() {
            pairs().map(|(a, b)| a + b).collect()
        } else if node.op.is::<Multiply>() {
            pairs().map(|(a, b)| a * b).collect()
        } else if node.op.is::<Concat>() {
            node.inputs.iter().flat_map(|i| values[i].clone()).collect()
        } else {
            unary(program, &node.op, x, from, to)
        };
        values.insert(node.output.clone(), y);
    }
    values
}

fn unary(program: &Program, op: &SourceOp, x: &[f64], from: &[usize], to: &[usize]) -> Vec<f64> {
    let floats = |name: &String| -> Vec<f64> {
        program.floats[name].data.iter().map(|v| f64::from(*v)).collect()
    };
    let plane = from.iter().skip(1).product::<usize>();
    if let Some(Conv { kernel, stride, padding, dilation, groups, weight, bias }) = op.get() {
        let (w, group) = (floats(weight), from[0] / groups);
        let b = bias.as_ref().map_or(vec![0.0; to[0]], floats);
        positions(to)
            .map(|[o, y, x0]| {
                let mut sum = b[o];
                for [i, ky, kx] in positions(&[group, kernel[0], kernel[1]]) {
                    let iy = (y * stride[0] + ky * dilation[0]).wrapping_sub(padding[0]);
                    let ix = (x0 * stride[1] + kx * dilation[1]).wrapping_sub(padding[1]);
                    if iy < from[1] && ix < from[2] {
                        let channel = o / (to[0] / groups) * group + i;
                        let tap = ((o * group + i) * kernel[0] + ky) * kernel[1] + kx;
                        sum += w[tap] * x[(channel * from[1] + iy) * from[2] + ix];
                    }
                }
                sum
            })
            .collect()
    } else if let Some(QuantisedConv { weight, scale, bias, .. }) = op.get() {
        let (weights, scales, biases) = (floats(weight), floats(scale), floats(bias));
        let sums = winograd::convolve([from[0], to[0]], [from[1], from[2]], &weights, x);
        let plane = to[1] * to[2];
        let y = sums.iter().enumerate();
        y.map(|(i, sum)| scales[i / plane] * sum + biases[i / plane]).collect()
    } else if let Some(Gemm { weight, bias }) = op.get() {
        let b = bias.as_ref().map_or(vec![0.0; to[0]], floats);
        let dot = |row: &[f64]| row.iter().zip(x).map(|(w, v)| w * v).sum::<f64>();
        floats(weight).chunks(x.len()).zip(b).map(|(row, b)| dot(row) + b).collect()
    } else if let Some(BatchNormalization { scale, bias, mean, variance, epsilon }) = op.get() {
        let (s, b, m, v) = (floats(scale), floats(bias), floats(mean), floats(variance));
        let norm = |c: usize, x: f64| s[c] * (x - m[c]) / (v[c] + epsilon).sqrt() + b[c];
        x.iter().enumerate().map(|(i, x)| norm(i / plane, *x)).collect()
    } else if let Some(Relu { maximum, .. }) = op.get() {
        x.iter().map(|v| v.max(0.0).min(maximum.unwrap_or(f64::MAX))).collect()
    } else if let Some(MaxPool { kernel, stride, padding }) = op.get() {
        windows(x, from, to, *kernel, *stride, *padding)
            .map(|taps| taps.into_iter().fold(f64::MIN, f64::max))
            .collect()
    } else if let Some(AveragePool { kernel, stride, padding, .. }) = op.get() {
        windows(x, from, to, *kernel, *stride, *padding)
            .map(|taps| taps.iter().sum::<f64>() / (kernel[0] * kernel[1]) as f64)
            .collect()
    } else if let Some(AddConstant { constant }) = op.get() {
        let c = floats(constant);
        x.iter().enumerate().map(|(i, x)| x + c[i / plane]).collect()
    } else if let Some(Clip { minimum, maximum }) = op.get() {
        let (low, high) = (minimum.unwrap_or(f64::MIN), maximum.unwrap_or(f64::MAX));
        x.iter().map(|v| v.clamp(low, high)).collect()
    } else if let Some(Scale { factor }) = op.get() {
        x.iter().map(|v| v * factor).collect()
    } else if let Some(Table { function, alpha, beta }) = op.get() {
        x.iter().map(|v| function.at(*v, *alpha, *beta)).collect()
    } else if let Some(View { start, strides, .. }) = op.get() {
        positions(to)
            .map(|[i, j, k]| x[start + i * strides[0] + j * strides[1] + k * strides[2]])
            .collect()
    } else if let Some(Pad { before, .. }) = op.get() {
        positions(to)
            .map(|at| {
                let [i, j, k] = [0, 1, 2].map(|axis| at[axis].wrapping_sub(before[axis]));
                let inside = i < from[0] && j < from[1] && k < from[2];
                if inside { x[(i * from[1] + j) * from[2] + k] } else { 0.0 }
            })
            .collect()
    } else {
        x.to_vec()
    }
}

pub(crate) fn positions(shape: &[usize]) -> impl Iterator<Item = [usize; 3]> + use<> {
    let [a, b, c] = [shape[0], shape[1], shape[2]];
    (0..a * b * c).map(move |i| [i / (b * c), i / c % b, i % c])
}

/// The real elements under each window.
pub(crate) fn windows<'a, T: Copy>(
    x: &'a [T],
    from: &'a [usize],
    to: &[usize],
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 4],
) -> impl Iterator<Item = Vec<T>> + use<'a, T> {
    positions(to).map(move |[c, y, x0]| {
        let taps = positions(&[1, kernel[0], kernel[1]]).filter_map(|[_, ky, kx]| {
            let iy = (y * stride[0] + ky).wrapping_sub(padding[0]);
            let ix = (x0 * stride[1] + kx).wrapping_sub(padding[1]);
            (iy < from[1] && ix < from[2]).then(|| x[(c * from[1] + iy) * from[2] + ix])
        });
        taps.collect()
    })
}

/// Inputs and the range of every tensor over them.
pub(crate) fn calibrate(program: &Program, seed: u64, low: f32) -> (Vec<Vec<f32>>, Ranges) {
    let mut numbers = Numbers(seed);
    let length = program.source.input.shape.iter().product();
    let inputs: Vec<Vec<f32>> = (0..24).map(|_| numbers.reals(length, low, 1.0)).collect();
    let mut ranges = Ranges::new();
    for (name, values) in inputs.iter().flat_map(|x| run(program, x)) {
        let range = ranges.entry(name).or_insert((f64::MAX, f64::MIN));
        for v in values {
            *range = (range.0.min(v), range.1.max(v));
        }
    }
    (inputs, ranges)
}
