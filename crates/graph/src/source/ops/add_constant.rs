//! Sums with constants.

use super::checks::one;
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Sum of a tensor and a constant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddConstant {
    /// One value, one per channel, or one per element.
    pub constant: String,
}

impl SourceOperator for AddConstant {
    fn kind(&self) -> &'static str {
        "AddConstant"
    }

    fn floats(&self) -> Vec<&str> {
        vec![&self.constant]
    }

    fn shape(&self, inputs: &[&[usize]], floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        let (have, all) = (floats[&self.constant].data.len(), input.iter().product());
        let fits = [1, input[0], all].contains(&have);
        fits.then(|| input.to_vec())
            .ok_or(format!("constant has {have} values for shape {input:?}"))
    }
}
