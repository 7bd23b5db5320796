//! Integer weights of one linear node.
//!
//! Each output channel is quantised to `weight_bits` and multiplied by a small
//! integer, so that one public shift serves the whole tensor: a shift per
//! channel would publish the channels' norms.
//!
//! Rounding moves the mean of an output by what it adds to the weights times the
//! means of the inputs. Where these are known the bias takes it back: Nagel et al.,
//! "Data-Free Quantization Through Weight Equalization and Bias Correction"
//! (ICCV 2019), section 4.2.

use crate::ir::NodeWeights;
use crate::{Error, Result};
use zeroize::Zeroizing;

/// The largest multiplier lies above this, at most at twice this, unless the
/// shift has reached 0 or its limit.
const MULTIPLIER_FLOOR: f64 = 8.0;
const MULTIPLIER_LIMIT: f64 = 32768.0;
const SHIFT_LIMIT: u32 = 30;
/// Shift of a node whose weights are all zero.
const SHIFT_OF_ZERO: u32 = 8;
const BIAS_LIMIT: f64 = (1u64 << 50) as f64;

/// What [`quantise`] works on.
pub(super) struct FloatLinear<'a> {
    pub(super) name: &'a str,
    /// Row-major, one equally long row per output channel.
    pub(super) weight: &'a [f32],
    /// One per output channel.
    pub(super) bias: Option<&'a [f32]>,
    pub(super) channels: usize,
    /// Sets of channels that are multiplied apart.
    pub(super) groups: usize,
    /// Mean of each channel of the input, where known.
    pub(super) means: Option<&'a [f64]>,
    pub(super) input_scale: f64,
    pub(super) output_scale: f64,
}

/// The integers and the public numbers that go with them.
pub(super) struct Quantised {
    pub(super) weights: NodeWeights,
    /// Signed width that holds every product of weight and multiplier.
    pub(super) weight_bits: u32,
    pub(super) shift: u32,
    /// Real value of one unit of the accumulator.
    pub(super) accumulator_scale: f64,
}

/// The least shift that suits a layer.
pub(super) fn own_shift(linear: &FloatLinear<'_>, weight_bits: u32) -> u32 {
    choose_shift(ratios(linear, weight_bits).into_iter().fold(0.0, f64::max))
}

/// Multiplier of each channel at shift 0, before rounding up.
fn ratios(linear: &FloatLinear<'_>, weight_bits: u32) -> Vec<f64> {
    let peak = |row: &[f32]| row.iter().map(|w| f64::from(w.abs())).fold(0.0, f64::max);
    let ratio = linear.input_scale / (linear.output_scale * largest(weight_bits));
    rows(linear).map(|row| peak(row) * ratio).collect()
}

fn largest(weight_bits: u32) -> f64 {
    f64::from((1u32 << (weight_bits - 1)) - 1)
}

fn rows<'a>(linear: &FloatLinear<'a>) -> impl Iterator<Item = &'a [f32]> {
    linear.weight.chunks_exact((linear.weight.len() / linear.channels).max(1))
}

/// The integers at a shift, [`own_shift`] or more.
pub(super) fn quantise(
    linear: &FloatLinear<'_>,
    weight_bits: u32,
    shift: u32,
) -> Result<Quantised> {
    let largest = largest(weight_bits);
    let ratios = ratios(linear, weight_bits);
    let accumulator_scale = linear.output_scale / f64::from(shift).exp2();
    let weight_scale = accumulator_scale / linear.input_scale;

    let mut top = 1.0f64;
    let mut weight = Vec::with_capacity(linear.weight.len());
    for (row, ratio) in rows(linear).zip(&ratios) {
        let multiplier = (ratio * f64::from(shift).exp2()).ceil().max(1.0);
        if multiplier.is_nan() || multiplier > MULTIPLIER_LIMIT {
            let what = "its weights are far too large for the calibrated range of its output";
            return Err(unsupported(linear, what));
        }
        top = top.max(multiplier);
        let step = multiplier * weight_scale;
        let round = |w: &f32| (f64::from(*w) / step).round().clamp(-largest, largest);
        weight.extend(row.iter().map(|w| (round(w) * multiplier) as i32));
    }
    let weight_bits = weight_bits + top.log2().ceil() as u32;
    let moved = moved_means(linear, &weight, weight_scale);
    let bias = quantise_bias(linear, &moved, accumulator_scale)?;
    Ok(Quantised { weights: NodeWeights { weight, bias }, weight_bits, shift, accumulator_scale })
}

/// The smallest shift that lifts the largest multiplier above its floor.
fn choose_shift(ratio: f64) -> u32 {
    if ratio == 0.0 {
        return SHIFT_OF_ZERO;
    }
    let lifts = |shift: &u32| ratio * f64::from(*shift).exp2() > MULTIPLIER_FLOOR;
    (0..SHIFT_LIMIT).find(lifts).unwrap_or(SHIFT_LIMIT)
}

/// How far rounding moves the mean of each output, as far as is known; padding counts
/// as the rest of the input.
fn moved_means(linear: &FloatLinear<'_>, weight: &[i32], scale: f64) -> Zeroizing<Vec<f64>> {
    let Some(means) = linear.means else { return vec![0.0; linear.channels].into() };
    let inputs = means.len() / linear.groups;
    let row = linear.weight.len() / linear.channels;
    let error = |(w, int): (&f32, &i32)| f64::from(*int) * scale - f64::from(*w);
    let rows = linear.weight.chunks_exact(row).zip(weight.chunks_exact(row));
    let moved = rows.enumerate().map(|(channel, (floats, ints))| {
        let group = channel / (linear.channels / linear.groups);
        let taps = floats.chunks_exact(row / inputs).zip(ints.chunks_exact(row / inputs));
        let sums = taps.map(|(floats, ints)| floats.iter().zip(ints).map(error).sum::<f64>());
        sums.zip(&means[group * inputs..]).map(|(sum, mean)| sum * mean).sum()
    });
    Zeroizing::new(moved.collect())
}

fn quantise_bias(linear: &FloatLinear<'_>, moved: &[f64], scale: f64) -> Result<Vec<i64>> {
    let bias = |channel: usize| linear.bias.map_or(0.0, |bias| f64::from(bias[channel]));
    let round = |(channel, moved): (usize, &f64)| {
        let rounded = ((bias(channel) - moved) / scale).round();
        let fits = rounded.abs() <= BIAS_LIMIT;
        let what = "its bias is far too large for the calibrated range of its output";
        fits.then_some(rounded as i64).ok_or_else(|| unsupported(linear, what))
    };
    moved.iter().enumerate().map(round).collect()
}

fn unsupported(linear: &FloatLinear<'_>, what: &str) -> Error {
    Error::unsupported(linear.name, what, "calibrate with inputs like the real ones")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(linear: &FloatLinear<'_>, bits: u32) -> Result<Quantised> {
        quantise(linear, bits, own_shift(linear, bits))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn weights_are_near_and_multipliers_fill_four_bits(
            weight in prop::collection::vec(-2.0f32..2.0, 12),
            input_scale in 0.001f64..0.1,
            output_scale in 0.01f64..0.1,
        ) {
            prop_assume!(weight.iter().any(|w| w.abs() > 0.1));
            let linear = FloatLinear {
                name: "test", weight: &weight, bias: Some(&[0.5, -0.5, 7.0]), channels: 3,
                groups: 1, means: None,
                input_scale, output_scale,
            };
            let q = whole(&linear, 8).unwrap();
            prop_assert!(q.weight_bits == 12 || q.shift == 0);
            let scale = q.accumulator_scale / input_scale;
            for (row, ints) in weight.chunks(4).zip(q.weights.weight.chunks(4)) {
                let peak = row.iter().fold(0.0f32, |m, w| m.max(w.abs()));
                // Half a step of 8 bits, the step stretched by rounding the multiplier up.
                let step = (f64::from(peak) / 127.0 + scale) / 2.0;
                for (w, i) in row.iter().zip(ints) {
                    prop_assert!((f64::from(*w) - f64::from(*i) * scale).abs() <= step * 1.0001);
                }
            }
            for (b, i) in [0.5, -0.5, 7.0].iter().zip(&q.weights.bias) {
                prop_assert!((b - *i as f64 * q.accumulator_scale).abs() <= q.accumulator_scale);
            }
        }
    }

    /// Coarse weights in two groups of two inputs: with the means of the inputs the mean
    /// of each output is right to a unit of its accumulator, without them it is not.
    #[test]
    fn known_means_correct_the_bias() {
        let weight: Vec<f32> = (0..24).map(|i| (i * i % 17) as f32 * 0.11 - 0.9).collect();
        let means = [3.0, -1.5, 0.75, 2.0];
        let linear = |means| FloatLinear {
            name: "test",
            weight: &weight,
            bias: Some(&[0.25, -1.0, 0.0, 4.0]),
            channels: 4,
            groups: 2,
            means,
            input_scale: 0.01,
            output_scale: 0.1,
        };
        let output = |channel: usize, weights: &[f64], bias: f64| {
            let inputs = &means[channel / 2 * 2..][..2];
            let taps = weights[channel * 6..].chunks(3).zip(inputs);
            bias + taps.map(|(taps, mean)| taps.iter().sum::<f64>() * mean).sum::<f64>()
        };
        let floats: Vec<f64> = weight.iter().map(|w| f64::from(*w)).collect();
        let errors = |q: &Quantised| {
            let scale = q.accumulator_scale / 0.01;
            let ints: Vec<f64> = q.weights.weight.iter().map(|w| f64::from(*w) * scale).collect();
            let bias = |channel: usize| q.weights.bias[channel] as f64 * q.accumulator_scale;
            let wanted = |channel| output(channel, &floats, [0.25, -1.0, 0.0, 4.0][channel]);
            [0, 1, 2, 3]
                .map(|o| (output(o, &ints, bias(o)) - wanted(o)).abs() / q.accumulator_scale)
        };
        let plain = whole(&linear(None), 3).unwrap();
        let corrected = whole(&linear(Some(&means)), 3).unwrap();
        assert_eq!(plain.weights.weight, corrected.weights.weight);
        assert!(errors(&plain).iter().all(|error| *error > 10.0));
        assert!(errors(&corrected).iter().all(|error| *error <= 0.5001));
    }

    #[test]
    fn zero_weights_and_huge_ones() {
        let linear = |weight| FloatLinear {
            name: "test",
            weight,
            bias: None,
            channels: 1,
            groups: 1,
            means: None,
            input_scale: 1.0,
            output_scale: 1.0,
        };
        let zero = whole(&linear(&[0.0; 4]), 8).unwrap();
        assert_eq!((zero.weights.weight.as_slice(), zero.shift), (&[0; 4][..], SHIFT_OF_ZERO));
        assert!(matches!(whole(&linear(&[1e30]), 8), Err(Error::Unsupported { .. })));
    }
}
