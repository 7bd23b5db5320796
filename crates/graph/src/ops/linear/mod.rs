//! Convolutions and matrix products with weights of the server.

pub(super) mod narrow;
mod range;
mod unscaled;
pub(super) mod wide;

use super::accumulator::{self, Accumulator, Rounding, check_accumulator, check_addend};
use super::checks::{ensure, image};
use super::choice::WeightBits;
use super::geometry::{Conv, check_conv};
use super::known::Known;
use super::operator::{Kernel, Operator, Site, UnscaledOperator, Weighted};
use super::range::{Range, rescale};
use crate::error::Check;
use crate::tensor::{NodeWeights, Tensor};
use narrow::Narrow;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// A linear layer with its rescale:
/// `y = (W*x + bias + addend*skip + 2^(shift-1)) >> shift` (`shift` 0: no rounding).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Linear {
    /// Shapes of input and output, kernel, stride, padding, dilation and groups.
    pub conv: Conv,
    /// Signed width that holds every accumulator, the rounding term included,
    /// whatever the input. Every input's share is at least this wide and the
    /// output's share plus `shift` is at most this wide, so that the inputs are
    /// reduced and the output is shifted locally. Noise that carries an extreme
    /// accumulator across the wrap moves the output by a multiple of its modulus.
    pub accumulator_bits: u32,
    /// Signed width that holds every weight, e.g. 12.
    pub weight_bits: u32,
    /// Number of low bits that are dropped from the accumulator.
    pub shift: u32,
    /// How the low bits are dropped.
    pub rounding: Rounding,
    /// Multiplier of `inputs[1]`, which has the output's shape.
    pub addend: Option<i64>,
    /// The bits of a weight, for protocols that choose by them; two's complement of
    /// `weight_bits` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<WeightBits>,
    /// Bits of the largest sum of the squares of an output channel's weights: each is at most
    /// 2^square_bits. It bounds noise under encryption; what [`Self::weight_bits`] says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub square_bits: Option<u32>,
}

impl Linear {
    /// Returns the smallest [`Self::square_bits`] for `weights` of so many `channels`.
    pub fn bits_of_squares(weights: &[i32], channels: usize) -> u32 {
        let each = weights.len().checked_div(channels).unwrap_or(0).max(1);
        let square = |w: &i32| u64::from(w.unsigned_abs()).saturating_mul(w.unsigned_abs().into());
        let sums = weights
            .chunks(each)
            .map(|channel| channel.iter().map(square).fold(0u64, u64::saturating_add));
        let largest = sums.fold(1, u64::max);
        u64::BITS - (largest - 1).leading_zeros()
    }

    /// The bits of the weights, if they are named, make weights of their width.
    fn check_choice(&self) -> Check<()> {
        let Some(choice) = &self.choice else { return Ok(()) };
        choice.check()?;
        let limit = 1i64 << (self.weight_bits - 1);
        let inside = choice.range().iter().all(|end| end.abs() < limit);
        ensure(inside, || "its weight bits exceed weight_bits".into())
    }

    /// Range of the accumulator, rounding term included.
    fn accumulated(&self, weights: &NodeWeights, inputs: &[Known]) -> Range {
        range::accumulator(&self.conv, (self.addend, self.shift), weights, inputs)
    }

    /// Products with bias and addend, rescaled.
    fn finish(&self, weights: &NodeWeights, sums: Vec<i64>, inputs: &[&[i64]]) -> Vec<i64> {
        finish(self.shift, weights, sums, self.addend.zip(inputs.get(1).copied()))
    }
}

impl Operator for Linear {
    fn kind(&self) -> &'static str {
        "linear"
    }

    fn title(&self) -> &'static str {
        if self.conv.is_fully_connected() { "fully connected" } else { "convolution" }
    }

    fn inputs(&self) -> RangeInclusive<usize> {
        let count = 1 + usize::from(self.addend.is_some());
        count..=count
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        let (conv, input, output) = (&self.conv, site.input(), site.output);
        check_conv(conv)?;
        image(input, [conv.in_channels, conv.in_height, conv.in_width])?;
        image(output, [conv.out_channels, conv.out_height(), conv.out_width()])?;
        ensure((2..=32).contains(&self.weight_bits), || "weight_bits".into())?;
        ensure(self.square_bits.is_none_or(|bits| bits <= u64::BITS), || "square_bits".into())?;
        self.check_choice()?;
        check_accumulator(self.accumulator_bits, self.shift, input, output)?;
        if let [_, addend] = site.inputs[..] {
            let width = [self.accumulator_bits, self.shift];
            check_addend((self.addend, width), addend, output)?;
        }
        Ok(true)
    }

    fn multiplied(&self, _known: &[bool]) -> usize {
        1
    }

    fn weighted(&self) -> Option<&dyn Weighted> {
        Some(self)
    }

    fn unscaled(&self, _site: &Site<'_>) -> Option<&dyn UnscaledOperator> {
        (self.shift == 0 && self.addend.is_none()).then_some(self)
    }

    fn interpret(&self, site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let weights = site.needed_weights()?;
        Ok(self.finish(weights, wide::convolve(&self.conv, weights, inputs[0]), inputs))
    }

    fn kernel<'a>(&'a self, weights: Option<&'a NodeWeights>) -> Option<Kernel<'a>> {
        let weights = weights?;
        let narrow = Narrow::new(&self.conv, weights)?;
        Some(Box::new(move |inputs| {
            let sums = narrow.convolve(&self.conv, inputs[0])?;
            Some(self.finish(weights, sums, inputs))
        }))
    }

    fn output(&self, site: &Site<'_>, inputs: &[Known]) -> Known {
        let sums = self.sums(site, inputs);
        sums.map_or(Range::ZERO, |sums| sums.rescaled(self.shift)).into()
    }

    fn accumulator(&self) -> Option<Accumulator> {
        let Self { accumulator_bits: bits, shift, rounding, .. } = *self;
        Some(Accumulator { bits, shift, rounding })
    }

    fn sums(&self, site: &Site<'_>, inputs: &[Known]) -> Option<Range> {
        Some(self.accumulated(site.weights?, inputs))
    }

    fn fits(&self, site: &Site<'_>, inputs: &[Known]) -> Check<()> {
        let weights = site.needed_weights()?;
        accumulator::fits(self.accumulated(weights, inputs), self.accumulator_bits)
    }

    fn reads(&self, _signed: bool, _range: Range) -> u32 {
        self.accumulator_bits
    }

    fn working_bits(&self) -> Option<u32> {
        Some(self.accumulator_bits)
    }

    fn is_product(&self) -> bool {
        true
    }

    fn set_accumulator(&mut self, Accumulator { bits, rounding, .. }: Accumulator) {
        (self.accumulator_bits, self.rounding) = (bits, rounding);
    }
}

impl UnscaledOperator for Linear {
    fn range(&self, weights: Option<&NodeWeights>, inputs: &[Range]) -> Range {
        weights.map_or(Range::ZERO, |weights| unscaled::sums(&self.conv, weights, inputs[0]))
    }

    fn interpret(&self, weights: Option<&NodeWeights>, inputs: &[&[i128]]) -> Vec<i128> {
        weights.map_or(vec![], |weights| unscaled::convolve(&self.conv, weights, inputs[0]))
    }
}

impl Weighted for Linear {
    fn weight_shape(&self, _output: &Tensor) -> Option<Vec<usize>> {
        let conv = &self.conv;
        Some(vec![conv.out_channels, conv.group_channels(), conv.kernel[0], conv.kernel[1]])
    }

    fn bias_shape(&self, _output: &Tensor) -> Option<Vec<usize>> {
        Some(vec![self.conv.out_channels])
    }

    fn check(&self, _output: &Tensor, weights: &NodeWeights) -> Check<()> {
        let conv = &self.conv;
        let want = conv.out_channels * conv.taps();
        check_counts((want, conv.out_channels), weights)?;
        if let Some(choice) = &self.choice {
            choice.check_weights(&weights.weight)?;
        }
        let limit = 1i64 << (self.weight_bits - 1);
        let fits = weights.weight.iter().all(|w| i64::from(*w).abs() < limit);
        fits.then_some(()).ok_or(format!("a weight exceeds {} bits", self.weight_bits))?;
        let squares = Self::bits_of_squares(&weights.weight, conv.out_channels);
        let fits = self.square_bits.is_none_or(|bits| squares <= bits);
        fits.then_some(()).ok_or_else(|| "a channel's weights exceed its square_bits".into())
    }
}

/// Checks how many weights and constants there are.
pub(super) fn check_counts((count, biases): (usize, usize), weights: &NodeWeights) -> Check<()> {
    let fits = weights.weight.len() == count && weights.bias.len() == biases;
    fits.then_some(()).ok_or(format!("needs {count} weights and {biases} biases"))
}

/// Adds the bias and `skip`, a factor and the tensor it multiplies, and rescales.
pub(super) fn finish(
    shift: u32,
    weights: &NodeWeights,
    mut sums: Vec<i64>,
    skip: Option<(i64, &[i64])>,
) -> Vec<i64> {
    let plane = sums.len() / weights.bias.len().max(1);
    for (channel, bias) in sums.chunks_exact_mut(plane.max(1)).zip(&weights.bias) {
        channel.iter_mut().for_each(|sum| *sum = sum.wrapping_add(*bias));
    }
    if let Some((factor, skip)) = skip {
        for (sum, skip) in sums.iter_mut().zip(skip) {
            *sum = sum.wrapping_add(skip.wrapping_mul(factor));
        }
    }
    sums.iter_mut().for_each(|sum| *sum = rescale(*sum, shift));
    sums
}
