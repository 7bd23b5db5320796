//! Elementwise products.

use super::checks::two;
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Elementwise product of two tensors of one shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Multiply {}

impl SourceOperator for Multiply {
    fn kind(&self) -> &'static str {
        "Multiply"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let (a, b) = two(inputs)?;
        (a == b).then(|| a.to_vec()).ok_or(format!("combines {a:?} and {b:?}"))
    }
}
