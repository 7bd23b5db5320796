//! Activations rounded to fewer bits.

use super::checks::{check_bits, one};
use crate::error::{Check, Result};
use crate::ops;
use crate::source::floats::Floats;
use crate::source::lowering::Lowering;
use crate::source::operator::SourceOperator;
use crate::source::values::{Values, all_saturated};
use crate::tensor::Format;
use serde::{Deserialize, Serialize};

/// Values that are not negative, of more bits, rounded to the steps of `bits` bits,
/// halves up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requantize {
    /// Number of bits that are kept, 1 to 12.
    pub bits: u32,
}

impl SourceOperator for Requantize {
    fn kind(&self) -> &'static str {
        "Requantize"
    }

    fn has_few_bits(&self) -> bool {
        true
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        check_bits(self.bits)?;
        Ok(input.to_vec())
    }

    fn chooses_scale(&self) -> bool {
        false
    }

    fn kept_bits(&self) -> Option<u32> {
        Some(self.bits)
    }

    fn is_saturated(&self, values: &dyn Values) -> bool {
        all_saturated(values)
    }

    fn derived_range(&self, values: &dyn Values) -> Result<Option<(f64, f64)>> {
        Ok(Some(values.range(0)?))
    }

    fn unsigned_bits(&self, _activation_bits: u32) -> Option<u32> {
        Some(self.bits)
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let have = step.values().unsigned_bits(0);
        let Some(drop) = have.and_then(|have| have.checked_sub(self.bits)) else {
            let what = "reads a tensor that may be negative, or has fewer bits";
            return Err(step.refuse(what, "put a ReLU in front of it"));
        };
        let Format { scale, signed, .. } = step.input(0)?.format;
        step.write(Box::new(ops::Requantize { drop }), scale * f64::from(drop).exp2(), signed)
    }
}
