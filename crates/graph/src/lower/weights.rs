//! Integer weights of one linear node.
//!
//! Each output channel is quantised to `weight_bits` and multiplied by a small
//! integer, so that one public shift serves the whole tensor: a shift per
//! channel would publish the channels' norms.

use crate::ir::NodeWeights;
use crate::{Error, Result};

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

pub(super) fn quantise(linear: &FloatLinear<'_>, weight_bits: u32) -> Result<Quantised> {
    let largest = f64::from((1u32 << (weight_bits - 1)) - 1);
    let rows = || linear.weight.chunks_exact((linear.weight.len() / linear.channels).max(1));
    let peak = |row: &[f32]| row.iter().map(|w| f64::from(w.abs())).fold(0.0, f64::max);
    // Multiplier of each channel at shift 0, before rounding up.
    let ratio = linear.input_scale / (linear.output_scale * largest);
    let ratios: Vec<f64> = rows().map(|row| peak(row) * ratio).collect();
    let shift = choose_shift(ratios.iter().copied().fold(0.0, f64::max));
    let accumulator_scale = linear.output_scale / f64::from(shift).exp2();
    let weight_scale = accumulator_scale / linear.input_scale;

    let mut top = 1.0f64;
    let mut weight = Vec::with_capacity(linear.weight.len());
    for (row, ratio) in rows().zip(&ratios) {
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
    let bias = quantise_bias(linear, accumulator_scale)?;
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

fn quantise_bias(linear: &FloatLinear<'_>, scale: f64) -> Result<Vec<i64>> {
    let Some(bias) = linear.bias else { return Ok(vec![0; linear.channels]) };
    let round = |b: &f32| {
        let rounded = (f64::from(*b) / scale).round();
        let fits = rounded.abs() <= BIAS_LIMIT;
        let what = "its bias is far too large for the calibrated range of its output";
        fits.then_some(rounded as i64).ok_or_else(|| unsupported(linear, what))
    };
    bias.iter().map(round).collect()
}

fn unsupported(linear: &FloatLinear<'_>, what: &str) -> Error {
    Error::unsupported(linear.name, what, "calibrate with inputs like the real ones")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
                input_scale, output_scale,
            };
            let q = quantise(&linear, 8).unwrap();
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

    #[test]
    fn zero_weights_and_huge_ones() {
        let linear = |weight| FloatLinear {
            name: "test",
            weight,
            bias: None,
            channels: 1,
            input_scale: 1.0,
            output_scale: 1.0,
        };
        let zero = quantise(&linear(&[0.0; 4]), 8).unwrap();
        assert_eq!((zero.weights.weight.as_slice(), zero.shift), (&[0; 4][..], SHIFT_OF_ZERO));
        assert!(matches!(quantise(&linear(&[1e30]), 8), Err(Error::Unsupported { .. })));
    }
}
