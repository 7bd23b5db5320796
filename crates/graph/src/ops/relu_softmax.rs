//! Softmax of smooth maxima along the last axis.

use super::checks::{ensure, same_shape, wide_enough};
use super::known::Known;
use super::operator::{Operator, Site};
use super::range::Range;
use super::smu::inside;
use crate::error::Check;
use crate::functions;
use crate::functions::newton::Newton;
use crate::functions::smu::Smooth;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Smooth maxima of a row as parts of their sum, [`crate::functions::ReluSoftmax`]; where
/// there is a second input, the client's, of zeros and ones, only those where it is 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReluSoftmax {
    /// The function whose results are summed up; its slope is 0.
    pub smooth: Smooth,
    /// The number that is added to the sum, in real units; positive.
    pub epsilon: f64,
    /// The Newton iteration that computes the smooth maximum.
    pub newton: Newton,
    /// The Newton iteration that computes the reciprocal of the sum.
    pub division: Newton,
}

impl ReluSoftmax {
    /// Returns the function, of rows as long as the input's last axis.
    ///
    /// # Errors
    /// The error says which of the operator's numbers cannot be, in words.
    pub fn function(&self, site: &Site<'_>) -> Check<functions::ReluSoftmax> {
        let columns = site.input().shape.last().copied().unwrap_or(0);
        let Self { smooth, epsilon, newton, division } = *self;
        let bits = site.output.format.bits;
        functions::ReluSoftmax::new(columns, smooth, epsilon, [newton, division], bits)
    }
}

impl Operator for ReluSoftmax {
    fn kind(&self) -> &'static str {
        "relu-softmax"
    }

    fn title(&self) -> &'static str {
        "softmax of smooth maxima"
    }

    fn inputs(&self) -> RangeInclusive<usize> {
        1..=2
    }

    /// A second input is the client's and of the first's shape; its lowest bits count.
    fn verify(&self, site: &Site<'_>, known: &[bool]) -> Check<bool> {
        same_shape(site.input(), site.output)?;
        if let Some(mask) = site.inputs.get(1) {
            let known = known.get(1) == Some(&true);
            ensure(known, || "is masked by what the client does not know".into())?;
            same_shape(site.input(), mask)?;
        }
        self.function(site)?;
        wide_enough(site.input(), self.smooth.bits + 1)?;
        Ok(false)
    }

    fn is_tried(&self) -> bool {
        true
    }

    fn interpret(&self, site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let softmax = self.function(site)?;
        let columns = softmax.cols;
        let row = |(index, row): (usize, &[i64])| {
            let mask = inputs.get(1).map(|mask| &mask[index * columns..][..columns]);
            softmax.clear(row, mask)
        };
        Ok(inputs[0].chunks_exact(columns).enumerate().flat_map(row).collect())
    }

    fn output(&self, site: &Site<'_>, _inputs: &[Known]) -> Known {
        let Ok(softmax) = self.function(site) else { return Range::ZERO.into() };
        let [low, high] = softmax.range().map(i128::from);
        Known::with_row_sum(Range::new(low, high), softmax.row_sum().into())
    }

    fn fits(&self, _: &Site<'_>, inputs: &[Known]) -> Check<()> {
        inside(&self.smooth, &inputs[0])
    }

    /// One bit of a mask, which is not negative, is enough.
    fn reads(&self, signed: bool, _range: Range) -> u32 {
        if signed { self.smooth.bits + 1 } else { 1 }
    }

    fn fixes_width(&self) -> bool {
        true
    }
}
