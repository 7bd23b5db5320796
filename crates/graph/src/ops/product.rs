//! Products of two tensors, element by element.

use super::checks::{ensure, same_shape};
use super::known::Known;
use super::operator::{Operator, Site, UnscaledOperator};
use super::range::Range;
use crate::error::Check;
use crate::tensor::NodeWeights;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// `y = x0 * x1`, element by element.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Product {
    /// Signed widths that hold the factors' values; shares are reduced to them.
    pub factor_bits: [u32; 2],
}

/// All products of a value of `a` and one of `b`.
pub(super) fn products(a: Range, b: Range) -> Range {
    a.times(b.low).join(a.times(b.high))
}

impl Operator for Product {
    fn kind(&self) -> &'static str {
        "product"
    }

    fn inputs(&self) -> RangeInclusive<usize> {
        2..=2
    }

    /// Factors fit their shares; a square is not negative.
    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        let mut signed = false;
        for (bits, input) in self.factor_bits.into_iter().zip(&site.inputs) {
            same_shape(input, site.output)?;
            let fits = (1..=input.format.bits).contains(&bits);
            ensure(fits, || format!("a factor of {bits} bits of {}", input.format.bits))?;
            signed |= input.format.signed;
        }
        Ok(signed && !site.is_square())
    }

    fn unscaled(&self, site: &Site<'_>) -> Option<&dyn UnscaledOperator> {
        site.is_square().then_some(self)
    }

    fn interpret(&self, _site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        Ok(inputs[0].iter().zip(inputs[1]).map(|(a, b)| a.wrapping_mul(*b)).collect())
    }

    fn output(&self, site: &Site<'_>, inputs: &[Known]) -> Known {
        let ends = products(inputs[0].range, inputs[1].range);
        let low = if site.is_square() { ends.low.max(0) } else { ends.low };
        Range::new(low, ends.high).into()
    }

    fn fits(&self, _: &Site<'_>, inputs: &[Known]) -> Check<()> {
        let mut factors = inputs.iter().zip(&self.factor_bits);
        let fits = factors.all(|(range, bits)| range.width() <= *bits);
        fits.then_some(()).ok_or("a factor exceeds its width".into())
    }

    /// Each factor needs no more than its own width.
    fn reads(&self, _signed: bool, range: Range) -> u32 {
        range.width()
    }

    fn choose_widths(&mut self, inputs: &[Known], _accumulator: Option<u32>) {
        self.factor_bits = [0, 1].map(|i| inputs[i].width());
    }
}

impl UnscaledOperator for Product {
    fn range(&self, _weights: Option<&NodeWeights>, inputs: &[Range]) -> Range {
        let most = inputs[0].low.saturating_abs().max(inputs[0].high.saturating_abs());
        Range::new(0, most.saturating_mul(most))
    }

    fn interpret(&self, _weights: Option<&NodeWeights>, inputs: &[&[i128]]) -> Vec<i128> {
        inputs[0].iter().map(|v| v * v).collect()
    }
}
