//! Products of two tensors as matrices.

use super::checks::two;
use crate::error::Check;
use crate::ops::MatMul as Product;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Product of two tensors as matrices, `[.., rows, inner]` and `[.., inner, columns]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatMul {}

impl SourceOperator for MatMul {
    fn kind(&self) -> &'static str {
        "MatMul"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let (a, b) = two(inputs)?;
        let [_, rows, _, columns] =
            Product::sides(a, b).ok_or_else(|| format!("multiplies {a:?} by {b:?}"))?;
        let leading = a.iter().take(a.len().saturating_sub(2));
        Ok(leading.copied().chain([rows, columns]).collect())
    }
}
