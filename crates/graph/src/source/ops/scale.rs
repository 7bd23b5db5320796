//! Products with a public number.

use super::checks::one;
use crate::error::{Check, Result};
use crate::ops::Reshape;
use crate::source::floats::Floats;
use crate::source::lowering::Lowering;
use crate::source::operator::SourceOperator;
use crate::source::values::{Values, all_saturated};
use crate::tensor::Format;
use serde::{Deserialize, Serialize};

/// `factor * x`. The factor becomes public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// The factor, not zero.
    pub factor: f64,
}

impl SourceOperator for Scale {
    fn kind(&self) -> &'static str {
        "Scale"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let (input, factor) = (one(inputs)?, self.factor);
        let fits = factor.is_finite() && factor != 0.0;
        fits.then(|| input.to_vec()).ok_or(format!("multiplies by {factor}"))
    }

    fn shows_input(&self) -> bool {
        self.factor > 0.0
    }

    fn ratio(&self) -> Option<f64> {
        Some(self.factor.abs())
    }

    fn is_saturated(&self, values: &dyn Values) -> bool {
        all_saturated(values)
    }

    fn derived_range(&self, values: &dyn Values) -> Result<Option<(f64, f64)>> {
        let (low, high) = values.range(0)?;
        let ends = [low * self.factor, high * self.factor];
        Ok(Some((ends[0].min(ends[1]), ends[0].max(ends[1]))))
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let Format { scale, signed, .. } = step.input(0)?.format;
        if self.factor < 0.0 {
            let output = scale * self.factor.abs();
            return step.sum([0, 0], [-output / scale, 0.0], output);
        }
        // Another unit for the same integers.
        step.write(Box::new(Reshape), scale * self.factor, signed)
    }

    fn polynomial(&self, inputs: &[[f64; 3]], _floats: &Floats) -> Option<[f64; 3]> {
        let [input] = *inputs else { return None };
        Some(input.map(|coefficient| coefficient * self.factor))
    }
}
