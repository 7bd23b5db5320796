//! Activations rounded to fewer bits.

use super::checks::{check_bits, one};
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Values that are not negative, of more bits, rounded to the steps of `bits` bits,
/// halves up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requantize {
    /// The bits that are kept.
    pub bits: u32,
}

impl SourceOperator for Requantize {
    fn kind(&self) -> &'static str {
        "Requantize"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        check_bits(self.bits)?;
        Ok(input.to_vec())
    }
}
