//! Weighted sums of two tensors.

use super::accumulator::{self, Accumulator, Rounding, check_accumulator, check_multiplier};
use super::checks::same_shape;
use super::known::Known;
use super::operator::{Operator, Site, UnscaledOperator};
use super::range::{Range, half, rescale};
use crate::error::Check;
use crate::tensor::NodeWeights;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// `y = (multipliers[0]*x0 + multipliers[1]*x1 + 2^(shift-1)) >> shift`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// Factors that bring both operands to one scale.
    pub multipliers: [i64; 2],
    /// Signed width that holds every accumulator, as of a [`super::Linear`].
    pub accumulator_bits: u32,
    /// Number of low bits that are dropped.
    pub shift: u32,
}

impl Sum {
    fn accumulated(&self, inputs: &[Known]) -> Range {
        let rounding = i128::from(half(self.shift));
        let [a, b] = [0, 1].map(|i| inputs[i].times(i128::from(self.multipliers[i])));
        a.plus(b).plus(Range::new(rounding, rounding))
    }
}

impl Operator for Sum {
    fn kind(&self) -> &'static str {
        "sum"
    }

    fn inputs(&self) -> RangeInclusive<usize> {
        2..=2
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        for (multiplier, operand) in self.multipliers.iter().zip(&site.inputs) {
            same_shape(operand, site.output)?;
            check_multiplier(*multiplier)?;
            check_accumulator(self.accumulator_bits, self.shift, operand, site.output)?;
        }
        Ok(true)
    }

    fn unscaled(&self, _site: &Site<'_>) -> Option<&dyn UnscaledOperator> {
        (self.shift == 0).then_some(self)
    }

    fn interpret(&self, _site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let [m0, m1] = self.multipliers;
        let sum = |(a, b): (&i64, &i64)| a.wrapping_mul(m0).wrapping_add(b.wrapping_mul(m1));
        let pairs = inputs[0].iter().zip(inputs[1]);
        Ok(pairs.map(|pair| rescale(sum(pair), self.shift)).collect())
    }

    fn output(&self, _: &Site<'_>, inputs: &[Known]) -> Known {
        self.accumulated(inputs).rescaled(self.shift).into()
    }

    fn accumulator(&self) -> Option<Accumulator> {
        let Self { accumulator_bits: bits, shift, .. } = *self;
        Some(Accumulator { bits, shift, rounding: Rounding::Exact })
    }

    fn sums(&self, _: &Site<'_>, inputs: &[Known]) -> Option<Range> {
        Some(self.accumulated(inputs))
    }

    fn fits(&self, _: &Site<'_>, inputs: &[Known]) -> Check<()> {
        accumulator::fits(self.accumulated(inputs), self.accumulator_bits)
    }

    fn reads(&self, _signed: bool, _range: Range) -> u32 {
        self.accumulator_bits
    }

    fn working_bits(&self) -> Option<u32> {
        Some(self.accumulator_bits)
    }

    fn set_accumulator(&mut self, accumulator: Accumulator) {
        self.accumulator_bits = accumulator.bits;
    }
}

impl UnscaledOperator for Sum {
    fn range(&self, _weights: Option<&NodeWeights>, inputs: &[Range]) -> Range {
        let [m0, m1] = self.multipliers.map(i128::from);
        inputs[0].times(m0).plus(inputs[1].times(m1))
    }

    fn interpret(&self, _weights: Option<&NodeWeights>, inputs: &[&[i128]]) -> Vec<i128> {
        let [m0, m1] = self.multipliers.map(i128::from);
        inputs[0].iter().zip(inputs[1]).map(|(a, b)| a * m0 + b * m1).collect()
    }
}
