//! Padding with zeros.

use super::checks::one;
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Zeros around the input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pad {
    /// How many before it, by axis.
    pub before: Vec<usize>,
    /// How many after it, by axis.
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
}
