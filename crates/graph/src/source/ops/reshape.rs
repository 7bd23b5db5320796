//! Reshapes.

use super::checks::one;
use crate::error::{Check, Result};
use crate::ops;
use crate::ops::geometry::elements;
use crate::source::floats::Floats;
use crate::source::lowering::{Lowering, UnscaledLowering};
use crate::source::operator::SourceOperator;
use crate::source::values::{Values, all_saturated};
use crate::tensor::Format;
use serde::{Deserialize, Serialize};

/// Same elements, same order, another shape (also flatten).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reshape {
    /// The new shape, without the batch axis.
    pub shape: Vec<usize>,
}

impl SourceOperator for Reshape {
    fn kind(&self) -> &'static str {
        "Reshape"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let (input, Self { shape }) = (one(inputs)?, self);
        let same = input.iter().product::<usize>() == elements(shape)?;
        same.then(|| shape.clone()).ok_or(format!("reshapes {input:?} to {shape:?}"))
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
        step.write(Box::new(ops::Reshape), scale, signed)
    }

    fn lower_unscaled(&self, step: &mut dyn UnscaledLowering) -> Result<()> {
        let Format { scale, signed, .. } = step.input().format;
        step.write(Box::new(ops::Reshape), scale, signed)
    }
}
