//! Integer reference in `i128`, written from the definition of each operator,
//! that asserts every width on the way.

use crate::float::{positions, windows};
use crate::numbers::Numbers;
use crate::winograd;
use tacit_graph::ops::{
    Concat, Embedding, Extend, Fold, Gelu, LayerNorm, Lookup, MatMul, MaxPool, Offset, Pad,
    Product, Relu, ReluSoftmax, Requantize, Reshape, Smu, Softmax, Sum, SumPool, View, Winograd,
};
use tacit_graph::{Linear, Model, Tensor};

/// What protocols may be off by after one rescale.
const SLACK: i128 = 2;

pub(crate) fn fits(value: i128, bits: u32) -> bool {
    let half = 1i128 << (bits - 1);
    -half <= value && value < half
}

/// All tensors; panics when a value, or what a protocol computes from it,
/// leaves its width. `noise` is drawn from for the error of every rescale.
pub(crate) fn run(model: &Model, input: &[i64], noise: Option<&mut Numbers>) -> Vec<Vec<i64>> {
    let graph = &model.graph;
    let mut error = noise_source(noise);
    let mut values: Vec<Vec<i128>> = vec![vec![]; graph.tensors.len()];
    values[graph.input] = input.iter().map(|v| i128::from(*v)).collect();
    for (index, node) in graph.nodes.iter().enumerate() {
        let x = &values[node.inputs[0]];
        let (from, to) = (graph.input_of(node, 0), graph.output_of(node));
        let y = if let Some(linear) = node.op.get::<Linear>() {
            let skip = linear.addend.map(|m| (m, &values[node.inputs[1]]));
            let sums = (0..to.len()).map(|i| {
                let sum = accumulate(model, index, linear, x, i);
                sum + skip.map_or(0, |(m, skip)| i128::from(m) * skip[i])
            });
            sums.map(|s| rescale(s, linear.accumulator_bits, linear.shift, to)).collect()
        } else if let Some(layer) = node.op.get::<Winograd>() {
            let skip = layer.addend.map(|m| (m, &values[node.inputs[1]]));
            let sums = winograd::accumulate(layer, &model.weights[&index], x);
            let skip = |i: usize| skip.map_or(0, |(m, skip)| i128::from(m) * skip[i]);
            let sums = sums.into_iter().enumerate().map(|(i, sum)| sum + skip(i));
            sums.map(|s| rescale(s, layer.accumulator_bits, layer.shift, to)).collect()
        } else if let Some(Requantize { drop }) = node.op.get() {
            let raised = x.iter().map(|v| if *drop == 0 { *v } else { v + (1 << (drop - 1)) });
            let kept = raised.map(|v| {
                assert!(fits(v, from.format.bits), "{}", node.name);
                v >> drop
            });
            kept.collect()
        } else if let Some(Relu { saturate, low }) = node.op.get() {
            x.iter().map(|v| relu(*v, *saturate, i128::from(*low), from)).collect()
        } else if let Some(MaxPool(w)) = node.op.get() {
            windows(x, &from.shape, &to.shape, w.kernel, w.stride, w.padding)
                .map(|taps| largest(&taps, from))
                .collect()
        } else if let Some(SumPool(w)) = node.op.get() {
            windows(x, &from.shape, &to.shape, w.kernel, w.stride, w.padding)
                .map(|taps| taps.iter().sum())
                .collect()
        } else if let Some(Sum { multipliers: [m0, m1], accumulator_bits, shift }) = node.op.get() {
            let sum = |(a, b): (&i128, &i128)| a * i128::from(*m0) + b * i128::from(*m1);
            let pairs = x.iter().zip(&values[node.inputs[1]]);
            pairs.map(|pair| rescale(sum(pair), *accumulator_bits, *shift, to)).collect()
        } else if node.op.is::<Offset>() {
            let constants = &model.weights[&index].bias;
            x.iter().zip(constants).map(|(v, c)| v + i128::from(*c)).collect()
        } else if node.op.is::<Extend>() {
            let spare = x.iter().all(|v| fits(2 * v, from.format.bits));
            assert!(spare || !from.format.signed, "{}", node.name);
            x.clone()
        } else if node.op.is::<Concat>() {
            node.inputs.iter().flat_map(|i| values[*i].clone()).collect()
        } else if let Some(view) = node.op.get::<View>() {
            (0..to.len())
                .map(|i| {
                    let (mut rest, mut at) = (i, view.start);
                    for (side, stride) in to.shape.iter().zip(&view.strides).rev() {
                        at += rest % side * stride;
                        rest /= side;
                    }
                    x[at]
                })
                .collect()
        } else if let Some(Pad { before }) = node.op.get() {
            let mut y = vec![0; to.len()];
            for (i, v) in x.iter().enumerate() {
                let (mut rest, mut at, mut step) = (i, 0, 1);
                for axis in (0..before.len()).rev() {
                    at += (rest % from.shape[axis] + before[axis]) * step;
                    rest /= from.shape[axis];
                    step *= to.shape[axis];
                }
                y[at] = *v;
            }
            y
        } else if let Some(Product { factor_bits: [a, b] }) = node.op.get() {
            let pairs = x.iter().zip(&values[node.inputs[1]]);
            let product = |(x, y): (&i128, &i128)| {
                assert!(fits(*x, *a) && fits(*y, *b), "{}", node.name);
                x * y
            };
            pairs.map(product).collect()
        } else if let Some(Lookup { low, values }) = node.op.get() {
            x.iter().map(|v| i128::from(values[(v - i128::from(*low)) as usize])).collect()
        } else if let Some(table) = node.op.get::<Embedding>() {
            let entries = &model.weights[&index].weight;
            let (columns, length) = (to.shape[0], to.shape[1]);
            let entry = |i: usize| entries[x[i % length] as usize * columns + i / length];
            let rows = (0..to.len()).map(|i| i128::from(entry(i)));
            let width = table.weight_bits.max(to.format.bits + table.shift);
            rows.map(|v| rescale(v, width, table.shift, to)).collect()
        } else if let Some(matmul) = node.op.get::<MatMul>() {
            let b = &values[node.inputs[1]];
            let inner = from.shape[from.shape.len() - 1];
            let columns = to.shape[to.shape.len() - 1];
            let height = to.shape[to.shape.len() - 2];
            let sum = |i: usize| {
                let (row, column) = (i / columns, i % columns);
                let first = row / height * inner;
                let terms =
                    (0..inner).map(|k| x[row * inner + k] * b[(first + k) * columns + column]);
                terms.sum::<i128>()
            };
            let sums = (0..to.len()).map(sum);
            sums.map(|s| rescale(s, matmul.accumulator_bits, matmul.shift, to)).collect()
        } else if node.op.is::<Softmax>() {
            let softmax = graph.softmax(node).unwrap();
            let rows = x.chunks(from.shape[from.shape.len() - 1]);
            let rows = rows.flat_map(|row| {
                let low = row.iter().min().unwrap();
                assert!(row.iter().all(|v| v - low <= softmax.span().into()), "{}", node.name);
                softmax.clear(&row.iter().map(|v| *v as i64).collect::<Vec<_>>())
            });
            rows.map(i128::from).collect()
        } else if node.op.is::<Fold>() {
            let fold = graph.fold(node).unwrap();
            x.iter().map(|v| i128::from(fold.clear(*v as i64))).collect()
        } else if node.op.is::<Gelu>() {
            let gelu = graph.gelu(node).unwrap();
            x.iter().map(|v| i128::from(gelu.clear(*v as i64))).collect()
        } else if let Some(Smu { smooth, .. }) = node.op.get() {
            assert!(x.iter().all(|v| fits(*v, smooth.bits)), "{}", node.name);
            let smu = graph.smu(node).unwrap();
            x.iter().map(|v| i128::from(smu.clear(*v as i64))).collect()
        } else if let Some(ReluSoftmax { smooth, .. }) = node.op.get() {
            assert!(x.iter().all(|v| fits(*v, smooth.bits)), "{}", node.name);
            let softmax = graph.relu_softmax(node).unwrap();
            let narrow = |values: &[i128]| values.iter().map(|v| *v as i64).collect::<Vec<_>>();
            let masks = node.inputs.get(1).map(|input| narrow(&values[*input]));
            let rows = x.chunks(softmax.cols).enumerate().flat_map(|(index, row)| {
                let mask = masks.as_ref().map(|m| &m[index * softmax.cols..][..row.len()]);
                softmax.clear(&narrow(row), mask)
            });
            rows.map(i128::from).collect()
        } else if let Some(LayerNorm { bits, .. }) = node.op.get() {
            assert!(x.iter().all(|v| fits(2 * v, *bits)), "{}", node.name);
            let norm = graph.layer_norm(node).unwrap();
            let rows = x.len() / from.shape[0];
            let mut y = vec![0; x.len()];
            for row in 0..rows {
                let values: Vec<i64> =
                    x.iter().skip(row).step_by(rows).map(|v| *v as i64).collect();
                let results = norm.clear(&values);
                y.iter_mut().skip(row).step_by(rows).zip(results).for_each(|(y, v)| *y = v.into());
            }
            y
        } else if node.op.is::<Reshape>() {
            x.clone()
        } else {
            panic!("`{}` has a test of its own", node.op.kind())
        };
        let rescales = node.op.is::<Linear>()
            || node.op.is::<Winograd>()
            || node.op.is::<Sum>()
            || node.op.is::<MatMul>()
            || node.op.is::<Embedding>();
        values[node.output] =
            if rescales { y.into_iter().map(|v| v + error()).collect() } else { y };
    }
    for (tensor, values) in graph.tensors.iter().zip(&values) {
        assert!(values.iter().all(|v| fits(*v, tensor.format.bits)), "{}", tensor.name);
        assert!(tensor.format.signed || values.iter().all(|v| *v >= 0), "{}", tensor.name);
    }
    let output = &values[graph.output];
    largest(output, &graph.tensors[graph.output]);
    values.into_iter().map(|t| t.into_iter().map(|v| v as i64).collect()).collect()
}

fn noise_source(noise: Option<&mut Numbers>) -> impl FnMut() -> i128 {
    let mut noise = noise;
    move || noise.as_mut().map_or(0, |numbers| numbers.below(5) as i128 - SLACK)
}

/// One output element of `W*x + bias`.
pub(crate) fn accumulate(
    model: &Model,
    node: usize,
    linear: &Linear,
    x: &[i128],
    at: usize,
) -> i128 {
    let (conv, weights) = (&linear.conv, &model.weights[&node]);
    let (height, width) = (conv.out_height(), conv.out_width());
    let [o, y, x0] = [at / (height * width), at / width % height, at % width];
    let group = conv.in_channels / conv.groups;
    let mut sum = i128::from(weights.bias[o]);
    for [i, ky, kx] in positions(&[group, conv.kernel[0], conv.kernel[1]]) {
        let iy = (y * conv.stride[0] + ky * conv.dilation[0]).wrapping_sub(conv.padding[0]);
        let ix = (x0 * conv.stride[1] + kx * conv.dilation[1]).wrapping_sub(conv.padding[1]);
        if iy < conv.in_height && ix < conv.in_width {
            let channel = o / (conv.out_channels / conv.groups) * group + i;
            let tap = ((o * group + i) * conv.kernel[0] + ky) * conv.kernel[1] + kx;
            let value = x[(channel * conv.in_height + iy) * conv.in_width + ix];
            sum += i128::from(weights.weight[tap]) * value;
        }
    }
    sum
}

pub(crate) fn rescale(sum: i128, accumulator_bits: u32, shift: u32, output: &Tensor) -> i128 {
    let rounded = if shift == 0 { sum } else { sum + (1 << (shift - 1)) };
    assert!(fits(rounded, accumulator_bits), "{rounded} in {accumulator_bits} bits");
    assert!(output.format.bits + shift <= accumulator_bits);
    let y = rounded >> shift;
    assert!(fits(y - SLACK, output.format.bits) && fits(y + SLACK, output.format.bits));
    y
}

fn relu(v: i128, saturate: u32, low: i128, input: &Tensor) -> i128 {
    let (top, v) = (1i128 << saturate, v - low);
    // The protocol looks at the signs of v and of v - 2^saturate.
    let near = [v, v - top, v + top];
    assert!(near.iter().all(|v| fits(*v, input.format.bits)), "{v} saturated at {saturate}");
    low + v.clamp(0, top - 1)
}

/// Maximum by differences, each of which must fit.
fn largest(values: &[i128], tensor: &Tensor) -> i128 {
    let (low, high) = (values.iter().min().unwrap(), values.iter().max().unwrap());
    assert!(fits(high - low, tensor.format.bits) && fits(low - high, tensor.format.bits));
    *high
}
