//! The sum of each window.

use super::geometry::Window;
use super::known::Known;
use super::operator::{Operator, Site, UnscaledOperator};
use super::pool;
use super::range::Range;
use crate::error::Check;
use crate::tensor::NodeWeights;
use serde::{Deserialize, Serialize};

/// Sum of the window; padded positions add 0. The output's scale is the input's divided by
/// the window's size, which makes the sum an average.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SumPool(pub Window);

impl Operator for SumPool {
    fn kind(&self) -> &'static str {
        "sum-pool"
    }

    fn title(&self) -> &'static str {
        "average pool"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        pool::verify(&self.0, site)
    }

    fn listed(&self, _site: &Site<'_>) -> usize {
        pool::listed(&self.0)
    }

    fn unscaled(&self, _site: &Site<'_>) -> Option<&dyn UnscaledOperator> {
        Some(self)
    }

    fn interpret(&self, _site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        Ok(pool::pool(&self.0, inputs[0], 0, i64::wrapping_add))
    }

    fn output(&self, _: &Site<'_>, inputs: &[Known]) -> Known {
        inputs[0].join(Range::ZERO).times(self.0.size() as i128).into()
    }

    fn reads(&self, _signed: bool, range: Range) -> u32 {
        range.width()
    }

    fn keeps_width(&self) -> bool {
        true
    }
}

impl UnscaledOperator for SumPool {
    fn range(&self, _weights: Option<&NodeWeights>, inputs: &[Range]) -> Range {
        inputs[0].join(Range::ZERO).times(self.0.size() as i128)
    }

    fn interpret(&self, _weights: Option<&NodeWeights>, inputs: &[&[i128]]) -> Vec<i128> {
        pool::pool(&self.0, inputs[0], 0, |a, b| a + b)
    }
}
