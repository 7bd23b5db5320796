//! Padding with zeros.

use super::checks::one;
use crate::error::{Check, Result};
use crate::ops;
use crate::source::floats::Floats;
use crate::source::lowering::Lowering;
use crate::source::operator::SourceOperator;
use crate::source::scaling::around_zero;
use crate::source::values::{Values, all_saturated};
use crate::tensor::Format;
use serde::{Deserialize, Serialize};

/// The input with zeros around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pad {
    /// Number of zeros before the input, by axis.
    pub before: Vec<usize>,
    /// Number of zeros after the input, by axis.
    pub after: Vec<usize>,
}

impl SourceOperator for Pad {
    fn kind(&self) -> &'static str {
        "Pad"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let (input, Self { before, after }) = (one(inputs)?, self);
        if before.len() != input.len() || after.len() != input.len() {
            return Err(format!("pads {} axes of {input:?}", before.len()));
        }
        let axes = input.iter().zip(before).zip(after);
        Ok(axes.map(|((side, a), b)| side.saturating_add(*a).saturating_add(*b)).collect())
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
        Ok(Some(around_zero(values.range(0)?)))
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let Format { scale, signed, .. } = step.input(0)?.format;
        step.write(Box::new(ops::Pad { before: self.before.clone() }), scale, signed)
    }
}
