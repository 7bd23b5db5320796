//! Concatenations.

use super::checks::concatenated;
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Inputs one after another along the outermost axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Concat {}

impl SourceOperator for Concat {
    fn kind(&self) -> &'static str {
        "Concat"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        concatenated(inputs)
    }
}
