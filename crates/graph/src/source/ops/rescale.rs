//! Tensors at a second scale.

use super::checks::one;
use crate::error::{Check, Result};
use crate::source::floats::Floats;
use crate::source::lowering::Lowering;
use crate::source::operator::SourceOperator;
use crate::source::values::Values;
use serde::{Deserialize, Serialize};

/// The input as it is, at a scale of its own: what reads the output has no say in the input's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rescale {}

impl SourceOperator for Rescale {
    fn kind(&self) -> &'static str {
        "Rescale"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        one(inputs).map(<[usize]>::to_vec)
    }

    fn shows_input(&self) -> bool {
        true
    }

    fn derived_range(&self, values: &dyn Values) -> Result<Option<(f64, f64)>> {
        values.range(0).map(Some)
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let scale = step.scale()?;
        step.sum([0, 0], [1.0, 0.0], scale)
    }

    fn polynomial(&self, inputs: &[[f64; 3]], _floats: &Floats) -> Option<[f64; 3]> {
        let [input] = *inputs else { return None };
        Some(input)
    }
}
