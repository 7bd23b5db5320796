//! GELU.

use super::checks::one;
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// `x * Phi(x)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gelu {}

impl SourceOperator for Gelu {
    fn kind(&self) -> &'static str {
        "Gelu"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        one(inputs).map(<[usize]>::to_vec)
    }
}
