//! Convolutions in 64 bits, for weights and inputs of any size.

use crate::ops::geometry::Conv;
use crate::tensor::NodeWeights;
use std::ops::Range;

/// `W*x`, `[out_channels, out_height, out_width]`.
pub(in crate::ops) fn convolve(conv: &Conv, weights: &NodeWeights, x: &[i64]) -> Vec<i64> {
    let plane = conv.out_height() * conv.out_width();
    let mut sums = vec![0i64; conv.out_channels * plane];
    let rows = weights.weight.chunks_exact(conv.taps());
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
