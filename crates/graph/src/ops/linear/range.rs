//! The worst case of a linear layer's accumulator, over its real weights.

use crate::ops::geometry::Conv;
use crate::ops::known::{Known, Part};
use crate::ops::range::{Range, half};
use crate::tensor::NodeWeights;

/// Range of the accumulator, rounding term included, over all output channels
/// and every input in `inputs`; padded positions are covered because zero is.
pub(super) fn accumulator(
    conv: &Conv,
    (addend, shift): (Option<i64>, u32),
    weights: &NodeWeights,
    inputs: &[Known],
) -> Range {
    let skip = match (addend, inputs.get(1)) {
        (Some(factor), Some(skip)) => skip.times(i128::from(factor)),
        _ => Range::ZERO,
    };
    let rounding = i128::from(half(shift));
    let per_channel = conv.taps();
    // A norm is one of a position; several groups or taps see other sums.
    let parts = match conv.groups == 1 && conv.kernel == [1, 1] {
        true => inputs[0].parts(conv.in_channels),
        false => vec![Part { length: per_channel, range: inputs[0].range, norm: None }],
    };
    let channels = weights.weight.chunks_exact(per_channel).zip(&weights.bias);
    let sums = channels.map(|(row, bias)| {
        let constant = i128::from(*bias) + rounding;
        let mut rest = row;
        parts.iter().fold(Range::new(constant, constant), |sum, part| {
            let (row, others) = rest.split_at(part.length.min(rest.len()));
            rest = others;
            sum.plus(times_row(part, row))
        })
    });
    sums.reduce(Range::join).unwrap_or(Range::ZERO).plus(skip)
}

/// All sums of a part's values times `row`.
fn times_row(part: &Part, row: &[i32]) -> Range {
    let input = part.range.join(Range::ZERO);
    let (mut positive, mut negative) = (0i128, 0i128);
    for w in row {
        positive += i128::from((*w).max(0));
        negative += i128::from((*w).min(0));
    }
    let sums = input.times(positive).plus(input.times(negative));
    let Some(norm) = part.norm else { return sums };
    // Cauchy and Schwarz.
    let squares = row.iter().map(|w| f64::from(*w).powi(2)).sum::<f64>();
    let most = (squares.sqrt() * norm * (1.0 + 1e-9)).ceil() as i128;
    Range::new(sums.low.max(-most), sums.high.min(most))
}
