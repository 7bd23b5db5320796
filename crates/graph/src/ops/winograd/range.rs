//! The worst case of a convolution in the Winograd domain, over its real weights.
//!
//! UFO bounds the growth of every transform by the norms of its matrix (lemma 1); these
//! bounds are attained by some input, and never wider.

use super::layer::{Winograd, feature_rows, output_rows};
use crate::ops::known::Known;
use crate::ops::range::{Range, half};
use crate::tensor::NodeWeights;

/// Signed widths of the sums of products and of the accumulator, whatever an input of values
/// from `low` to `high` is.
pub fn worst_case_bits(layer: &Winograd, weights: &NodeWeights, [low, high]: [i64; 2]) -> [u32; 2] {
    let input = Range::new(low.into(), high.into());
    let sums = products(layer, weights, &input);
    [sums, accumulator(layer, weights, &[input.into()])].map(Range::width)
}

/// Range of the sums of products, over all places and output channels.
pub(crate) fn products(layer: &Winograd, weights: &NodeWeights, input: &Range) -> Range {
    let inputs = layer.conv.in_channels;
    let features = features(layer, *input);
    let mut all = Range::ZERO;
    for kernels in weights.weight.chunks_exact((inputs * layer.places()).max(1)) {
        for (place, feature) in features.iter().enumerate() {
            let column = kernels.iter().skip(place).step_by(layer.places());
            all = all.join(weighed(*feature, column.map(|w| i128::from(*w))));
        }
    }
    all
}

/// Range of each place's features.
fn features(layer: &Winograd, input: Range) -> Vec<Range> {
    let rows = feature_rows(layer.tile);
    let products = |a: &'static [i64], b: &'static [i64]| {
        a.iter().flat_map(move |a| b.iter().map(move |b| i128::from(a * b)))
    };
    let pairs = rows.iter().flat_map(|a| rows.iter().map(move |b| (a, b)));
    pairs.map(|(a, b)| weighed(input, products(a, b))).collect()
}

/// All sums of values of `range`, or zeros, times `factors`.
fn weighed(range: Range, factors: impl Iterator<Item = i128>) -> Range {
    let range = range.join(Range::ZERO);
    let (positive, negative) =
        factors.fold((0, 0), |(up, down), f: i128| (up + f.max(0), down + f.min(0)));
    range.times(positive).plus(range.times(negative))
}

/// Range of the accumulator, rounding term included: of what the three transforms together
/// make of a tile's inputs, for every output of a tile.
pub(crate) fn accumulator(layer: &Winograd, weights: &NodeWeights, inputs: &[Known]) -> Range {
    let skip = match (layer.addend, inputs.get(1)) {
        (Some(factor), Some(skip)) => skip.times(i128::from(factor)),
        _ => Range::ZERO,
    };
    let rounding = i128::from(half(layer.shift));
    let kernels = weights.weight.chunks_exact((layer.conv.in_channels * layer.places()).max(1));
    let sums = kernels.zip(&weights.bias).map(|(kernels, bias)| {
        let constant = i128::from(*bias) + rounding;
        let sums = effective(layer, kernels);
        let ranges = sums.map(|taps| weighed(inputs[0].range, taps.into_iter()));
        let widest = ranges.reduce(Range::join).unwrap_or(Range::ZERO);
        widest.plus(Range::new(constant, constant))
    });
    sums.reduce(Range::join).unwrap_or(Range::ZERO).plus(skip)
}

/// For each output of a tile the factors of all inputs that it sees, for the transformed
/// kernels `[in_channels, places]` of one output channel.
fn effective<'a>(layer: &'a Winograd, kernels: &'a [i32]) -> impl Iterator<Item = Vec<i128>> + 'a {
    let outputs = output_rows(layer.tile);
    let pairs = outputs.iter().flat_map(move |a| outputs.iter().map(move |b| (*a, *b)));
    pairs.map(move |(a, b)| {
        let each = kernels.chunks_exact(layer.places().max(1));
        each.flat_map(|kernel| pulled_back(layer, kernel, a, b)).collect()
    })
}

/// `B [U (.) (a b^T)] B^T`.
fn pulled_back(layer: &Winograd, kernel: &[i32], a: &[i64], b: &[i64]) -> Vec<i128> {
    let (rows, side) = (feature_rows(layer.tile), layer.side());
    let scaled: Vec<i128> = kernel
        .iter()
        .enumerate()
        .map(|(place, u)| i128::from(*u) * i128::from(a[place / side] * b[place % side]))
        .collect();
    // First the columns of each row, then the rows.
    let mut half = vec![0; side * side];
    let mut taps = vec![0; side * side];
    for (p, q, c) in triples(side) {
        half[p * side + c] += scaled[p * side + q] * i128::from(rows[q][c]);
    }
    for (p, r, c) in triples(side) {
        taps[r * side + c] += i128::from(rows[p][r]) * half[p * side + c];
    }
    taps
}

fn triples(side: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..side * side * side).map(move |i| (i / side / side, i / side % side, i % side))
}
