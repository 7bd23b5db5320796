//! Convolutions in the Winograd domain.

pub(crate) mod layer;
mod products;
mod range;

pub use layer::{TILES, Winograd, feature_rows, output_rows, transformed_kernel};
pub use range::worst_case_bits;

use super::accumulator::{self, Accumulator, MAX_ACCUMULATOR_BITS, check_addend};
use super::checks::{ensure, image};
use super::geometry::{check_conv, elements};
use super::known::Known;
use super::linear::{check_counts, finish};
use super::operator::{Operator, Site, Weighted};
use super::range::Range;
use crate::error::Check;
use crate::tensor::{NodeWeights, Tensor};
use std::ops::RangeInclusive;

impl Winograd {
    /// Checks widths: the input is reduced to the ring of the products, the output is a shift
    /// of the accumulator.
    fn check_widths(&self, input: &Tensor, output: &Tensor) -> Check<()> {
        let Self { product_bits, accumulator_bits, shift, headroom, .. } = *self;
        let fits = (2..=accumulator_bits).contains(&product_bits)
            && accumulator_bits <= MAX_ACCUMULATOR_BITS
            && shift < accumulator_bits;
        ensure(fits, || {
            format!(
                "products of {product_bits} bits, accumulator of {accumulator_bits}, shift {shift}"
            )
        })?;
        ensure(!headroom || product_bits < accumulator_bits, || "spares a bit for nothing".into())?;
        let between = |stage: u32| product_bits < stage && stage < accumulator_bits;
        ensure(self.stage_bits.is_none_or(between), || "a stage that is not between".into())?;
        ensure(input.format.bits >= product_bits, || {
            format!("`{}` has {} bits, products {product_bits}", input.name, input.format.bits)
        })?;
        ensure(output.format.bits <= accumulator_bits - shift, || {
            format!("output of {} bits from {accumulator_bits} - {shift}", output.format.bits)
        })
    }

    /// Range of the sums of products, over all places and output channels.
    pub(crate) fn product_range(&self, weights: &NodeWeights, input: &Range) -> Range {
        range::products(self, weights, input)
    }
}

impl Operator for Winograd {
    fn kind(&self) -> &'static str {
        "winograd"
    }

    fn title(&self) -> &'static str {
        "winograd convolution"
    }

    fn inputs(&self) -> RangeInclusive<usize> {
        let count = 1 + usize::from(self.addend.is_some());
        count..=count
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        let (conv, input, output) = (&self.conv, site.input(), site.output);
        check_conv(conv)?;
        let small =
            (conv.kernel, conv.stride, conv.dilation, conv.groups) == ([3, 3], [1, 1], [1, 1], 1);
        ensure(small, || "is not a dense 3x3 kernel of stride 1".into())?;
        ensure(TILES.contains(&self.tile), || format!("tiles of {}", self.tile))?;
        image(input, [conv.in_channels, conv.in_height, conv.in_width])?;
        image(output, [conv.out_channels, conv.out_height(), conv.out_width()])?;
        for channels in [conv.in_channels, conv.out_channels] {
            elements(&[self.places(), channels, self.columns()])?;
        }
        elements(&[conv.out_channels, conv.in_channels, self.places()])?;
        self.choice.check()?;
        self.check_widths(input, output)?;
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

    fn interpret(&self, site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let weights = site.needed_weights()?;
        let sums = products::convolve(self, weights, inputs[0]);
        Ok(finish(self.shift, weights, sums, self.addend.zip(inputs.get(1).copied())))
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
        Some(range::accumulator(self, site.weights?, inputs))
    }

    fn fits(&self, site: &Site<'_>, inputs: &[Known]) -> Check<()> {
        let weights = site.needed_weights()?;
        let need = self.product_range(weights, &inputs[0]).width() + u32::from(self.headroom);
        if need > self.product_bits && self.product_bits < self.accumulator_bits {
            return Err(format!("products need {need} bits, have {}", self.product_bits));
        }
        accumulator::fits(range::accumulator(self, weights, inputs), self.accumulator_bits)
    }

    fn reads(&self, _signed: bool, _range: Range) -> u32 {
        self.product_bits
    }

    fn working_bits(&self) -> Option<u32> {
        Some(self.product_bits)
    }

    fn is_product(&self) -> bool {
        true
    }

    fn set_accumulator(&mut self, Accumulator { bits, rounding, .. }: Accumulator) {
        (self.accumulator_bits, self.rounding) = (bits, rounding);
    }
}

impl Weighted for Winograd {
    fn weight_shape(&self, _output: &Tensor) -> Option<Vec<usize>> {
        Some(vec![self.conv.out_channels, self.conv.in_channels, self.side(), self.side()])
    }

    fn bias_shape(&self, _output: &Tensor) -> Option<Vec<usize>> {
        Some(vec![self.conv.out_channels])
    }

    fn check(&self, _output: &Tensor, weights: &NodeWeights) -> Check<()> {
        let want = self.conv.out_channels * self.conv.in_channels * self.places();
        check_counts((want, self.conv.out_channels), weights)?;
        self.choice.check_weights(&weights.weight)
    }
}
