//! Rows of a table.

use super::checks::one;
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Rows of a table at positions that the input, `[length]`, names; the input is the
/// graph's, or shows it in another order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// `[rows, columns]`.
    pub weight: String,
}

impl SourceOperator for Embedding {
    fn kind(&self) -> &'static str {
        "Embedding"
    }

    fn floats(&self) -> Vec<&str> {
        vec![&self.weight]
    }

    fn shape(&self, inputs: &[&[usize]], floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        let [length] = *input else {
            return Err(format!("looks rows up for a tensor of shape {input:?}"));
        };
        match floats[&self.weight].shape[..] {
            [_, columns] => Ok(vec![length, columns]),
            _ => Err("its table is no matrix".into()),
        }
    }
}
