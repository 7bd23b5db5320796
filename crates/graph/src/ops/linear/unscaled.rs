//! Convolutions that are never rescaled, in 128 bits.

use crate::ops::geometry::Conv;
use crate::ops::range::Range;
use crate::tensor::NodeWeights;

/// Range of the sums over all output channels.
pub(super) fn sums(conv: &Conv, weights: &NodeWeights, x: Range) -> Range {
    let (low, high) = (x.low.min(0), x.high.max(0));
    let rows = weights.weight.chunks_exact(conv.taps());
    let of_row = |(row, bias): (&[i32], &i64)| {
        let sum = |keep: fn(i32) -> i32| row.iter().map(|w| i128::from(keep(*w))).sum::<i128>();
        let (positive, negative) = (sum(|w| w.max(0)), sum(|w| w.min(0)));
        let ends = Range::new(low, high);
        let all = ends.times(positive).plus(ends.times(negative));
        all.plus(Range::new(i128::from(*bias), i128::from(*bias)))
    };
    let ranges = rows.zip(&weights.bias).map(of_row);
    ranges.reduce(Range::join).unwrap_or(Range::ZERO)
}

/// `W*x + bias`.
pub(super) fn convolve(conv: &Conv, weights: &NodeWeights, x: &[i128]) -> Vec<i128> {
    let (height, width) = (conv.out_height(), conv.out_width());
    let (plane, each) = (conv.in_height * conv.in_width, conv.group_channels());
    let per_group = conv.out_channels / conv.groups;
    let rows = weights.weight.chunks_exact(conv.taps()).zip(&weights.bias);
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
