//! ReLUs, with a maximum or without.

use super::checks::{check_bits, is_positive, one};
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// `max(x, 0)`, at most `maximum` when there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relu {
    /// Upper clip, e.g. 6.
    pub maximum: Option<f64>,
    /// Bits of the result, over its range; those of activations when absent.
    #[serde(default)]
    pub bits: Option<u32>,
}

impl SourceOperator for Relu {
    fn kind(&self) -> &'static str {
        "Relu"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        self.bits.map_or(Ok(()), check_bits)?;
        match self.maximum {
            Some(maximum) if !is_positive(maximum) => {
                Err(format!("maximum is {maximum}, which is not positive"))
            }
            _ => Ok(input.to_vec()),
        }
    }
}
