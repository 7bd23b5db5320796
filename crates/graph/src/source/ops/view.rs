//! Slices and transpositions.

use super::checks::one;
use crate::error::{Check, Result};
use crate::ops::View as Strided;
use crate::ops::arrange::last_viewed;
use crate::ops::geometry::elements;
use crate::source::floats::Floats;
use crate::source::lowering::Lowering;
use crate::source::operator::SourceOperator;
use crate::source::values::{Values, all_saturated};
use crate::tensor::Format;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Some elements in an order of their own, see [`Strided`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// Shape of the output.
    pub shape: Vec<usize>,
    /// Position of the first element that is shown.
    pub start: usize,
    /// Elements of the input between two positions of the output, by axis.
    pub strides: Vec<usize>,
}

impl SourceOperator for View {
    fn kind(&self) -> &'static str {
        "View"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        elements(&self.shape)?;
        let have = input.iter().product();
        let inside = self.strides.len() == self.shape.len()
            && last_viewed(&self.strided(), &self.shape).is_some_and(|last| last < have);
        inside.then(|| self.shape.clone()).ok_or(format!("shows more than {input:?}"))
    }

    fn shown(&self) -> Option<Range<usize>> {
        let last = last_viewed(&self.strided(), &self.shape).unwrap_or(0);
        Some(self.start..last + 1)
    }

    fn shows_input(&self) -> bool {
        true
    }

    fn keeps_integers(&self) -> bool {
        true
    }

    fn ratio(&self) -> Option<f64> {
        Some(1.0)
    }

    fn is_saturated(&self, values: &dyn Values) -> bool {
        all_saturated(values)
    }

    fn derived_range(&self, values: &dyn Values) -> Result<Option<(f64, f64)>> {
        Ok(Some(values.range(0)?))
    }

    fn lends_range(&self) -> bool {
        true
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let Format { scale, signed, .. } = step.input(0)?.format;
        step.write(Box::new(self.strided()), scale, signed)
    }
}

impl View {
    /// The integer operator.
    fn strided(&self) -> Strided {
        Strided { start: self.start, strides: self.strides.clone() }
    }
}
