//! Operators that do nothing, which a pass removes.

use super::checks::one;
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Nothing (also dropout).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {}

impl SourceOperator for Identity {
    fn kind(&self) -> &'static str {
        "Identity"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        one(inputs).map(<[usize]>::to_vec)
    }
}
