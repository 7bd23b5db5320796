//! Softmax of exponentials.

use super::checks::one;
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Softmax along the last axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Softmax {}

impl SourceOperator for Softmax {
    fn kind(&self) -> &'static str {
        "Softmax"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        let single = input.last() == Some(&1);
        (!single).then(|| input.to_vec()).ok_or("a softmax of single values".into())
    }
}
