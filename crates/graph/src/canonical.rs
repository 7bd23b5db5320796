//! Filters of canonical size, so that a client cannot tell the sizes of the real ones
//! (FALCON, section 5.2: filters are padded, the padding is lost in the encryption).
//!
//! The canonical filter is the largest that sees the same positions: its size follows from
//! the sides of input and output, the stride and a margin, all of them public. The real
//! taps sit somewhere in it, the others are zero, which no protocol treats differently.

use crate::ir::{Conv, Linear, Model, NodeWeights};

/// Gives every linear node a filter of canonical size. The results stay what they are.
pub fn canonical_filters(model: &mut Model) {
    for (index, node) in model.graph.nodes.iter_mut().enumerate() {
        let (Some(Linear { conv, .. }), Some(weights)) =
            (node.op.get_mut(), model.weights.get_mut(&index))
        else {
            continue;
        };
        let new = canonical(conv);
        let old = std::mem::replace(conv, new);
        moved(&old, conv, weights);
    }
}

/// One side of a convolution.
#[derive(Clone, Copy)]
struct Side {
    input: usize,
    output: usize,
    stride: usize,
    /// Zeros before and after.
    padding: [usize; 2],
}

impl Side {
    /// Zeros of the canonical filter before and after the input: none for a filter that is
    /// used once and so sees all of the input anyway, else the first of 2, 4, 8, ... that
    /// is enough.
    fn margin(self) -> usize {
        let padding = self.padding.into_iter().max().unwrap_or_default();
        match self.output {
            1 => 0,
            _ => padding.next_power_of_two().max(2),
        }
    }

    /// The most taps that `output` positions leave room for.
    fn taps(self) -> usize {
        let reach = self.output.saturating_sub(1) * self.stride;
        (self.input + 2 * self.margin()).saturating_sub(reach)
    }
}

fn sides(conv: &Conv) -> [Side; 2] {
    let [top, left, bottom, right] = conv.padding;
    let [rows, columns] = conv.stride;
    [
        (conv.in_height, conv.out_height(), rows, [top, bottom]),
        (conv.in_width, conv.out_width(), columns, [left, right]),
    ]
    .map(|(input, output, stride, padding)| Side {
        input,
        output,
        // What is used once has no stride.
        stride: if output == 1 { 1 } else { stride },
        padding,
    })
}

/// A convolution with a canonical filter in place of its own.
fn canonical(conv: &Conv) -> Conv {
    let sides = sides(conv);
    let [rows, columns] = sides.map(Side::margin);
    Conv {
        kernel: sides.map(Side::taps),
        stride: sides.map(|side| side.stride),
        padding: [rows, columns, rows, columns],
        dilation: [1, 1],
        ..conv.clone()
    }
}

/// The weights of `old` at their places in the filter of `new`. Taps that see nothing but
/// zeros are dropped.
fn moved(old: &Conv, new: &Conv, weights: &mut NodeWeights) {
    let place = |axis: usize, tap: usize| {
        let place = tap * old.dilation[axis] + new.padding[axis];
        place.checked_sub(old.padding[axis]).filter(|place| *place < new.kernel[axis])
    };
    let [rows, columns] = old.kernel;
    let each = new.kernel[0] * new.kernel[1];
    let filters = weights.weight.len() / (rows * columns).max(1);
    let mut weight = vec![0; filters * each];
    for (old, new_filter) in weights
        .weight
        .chunks_exact((rows * columns).max(1))
        .zip(weight.chunks_exact_mut(each.max(1)))
    {
        for (tap, value) in old.iter().enumerate() {
            let (row, column) = (place(0, tap / columns), place(1, tap % columns));
            let Some((row, column)) = row.zip(column) else { continue };
            if let Some(to) = new_filter.get_mut(row * new.kernel[1] + column) {
                *to = *value;
            }
        }
    }
    // The old weights are erased when they are dropped.
    let bias = std::mem::take(&mut weights.bias);
    *weights = NodeWeights { weight, bias };
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn conv(side: usize, kernel: usize, stride: usize, pad: usize) -> Conv {
        Conv {
            in_channels: 2,
            in_height: side,
            in_width: side,
            out_channels: 3,
            kernel: [kernel, kernel],
            stride: [stride, stride],
            padding: [pad; 4],
            dilation: [1, 1],
            groups: 1,
        }
    }

    /// The plain convolution of one image.
    fn convolve(conv: &Conv, weight: &[i32], x: &[i64]) -> Vec<i64> {
        let [rows, columns] = conv.kernel;
        let pixel = |c: usize, row: Option<usize>, column: Option<usize>| {
            let (row, column) =
                (row.filter(|r| *r < conv.in_height)?, column.filter(|c| *c < conv.in_width)?);
            x.get((c * conv.in_height + row) * conv.in_width + column).copied()
        };
        let mut results = Vec::new();
        for o in 0..conv.out_channels {
            for (i, j) in
                (0..conv.out_height()).flat_map(|i| (0..conv.out_width()).map(move |j| (i, j)))
            {
                let mut sum = 0;
                for (c, a) in (0..conv.in_channels).flat_map(|c| (0..rows).map(move |a| (c, a))) {
                    for b in 0..columns {
                        let row = (i * conv.stride[0] + a * conv.dilation[0])
                            .checked_sub(conv.padding[0]);
                        let column = (j * conv.stride[1] + b * conv.dilation[1])
                            .checked_sub(conv.padding[1]);
                        let tap = ((o * conv.in_channels + c) * rows + a) * columns + b;
                        sum += i64::from(weight[tap]) * pixel(c, row, column).unwrap_or(0);
                    }
                }
                results.push(sum);
            }
        }
        results
    }

    #[test]
    fn results_stay_and_sizes_follow_from_the_shapes() {
        let cases = [
            (conv(8, 3, 1, 1), [5, 2]),
            (conv(8, 5, 1, 2), [5, 2]),
            (conv(8, 1, 1, 0), [5, 2]),
            (conv(8, 7, 1, 3), [9, 4]),
            (conv(12, 5, 1, 0), [9, 2]),
            (conv(8, 3, 2, 1), [6, 2]),
            (conv(8, 2, 2, 0), [6, 2]),
            (conv(4, 4, 1, 0), [4, 0]),
            (conv(4, 6, 3, 1), [4, 0]),
            (conv(1, 1, 1, 0), [1, 0]),
            (Conv { dilation: [2, 2], ..conv(8, 3, 1, 2) }, [5, 2]),
        ];
        for (old, [kernel, padding]) in cases {
            let taps = 6 * old.kernel[0] * old.kernel[1];
            let weight: Vec<i32> = (0..taps).map(|i| (i * 37 % 19) as i32 - 9).collect();
            let values = 2 * old.in_height * old.in_width;
            let x: Vec<i64> = (0..values).map(|i| (i * 23 % 31) as i64 - 15).collect();
            let mut weights = NodeWeights { weight: weight.clone(), bias: vec![1, 2, 3] };
            let new = canonical(&old);
            moved(&old, &new, &mut weights);
            assert_eq!((new.kernel, new.padding), ([kernel; 2], [padding; 4]), "{old:?}");
            let sizes = |conv: &Conv| [conv.out_height(), conv.out_width()];
            assert_eq!(sizes(&new), sizes(&old));
            assert_eq!(convolve(&new, &weights.weight, &x), convolve(&old, &weight, &x), "{old:?}");
            assert_eq!(weights.bias, [1, 2, 3]);
        }
    }
}
