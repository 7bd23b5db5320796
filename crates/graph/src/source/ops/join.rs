//! Concatenations in which each input keeps its scale.

use super::checks::concatenated;
use crate::error::{Check, Result};
use crate::source::floats::Floats;
use crate::source::lowering::Lowering;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Inputs one after another along the outermost axis, for the one linear node that reads
/// them; unlike after [`super::Concat`] each keeps its own scale.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// Whether inputs are multiplied by powers of two, so that the weights of all of them are of
    /// like sizes and are rounded alike.
    pub balanced: bool,
}

impl SourceOperator for Join {
    fn kind(&self) -> &'static str {
        "Join"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        concatenated(inputs)
    }

    fn chooses_scale(&self) -> bool {
        false
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        step.join(self.balanced)
    }
}
