//! Operators that do nothing, which a pass removes.

use super::checks::one;
use crate::error::{Check, Result};
use crate::source::floats::Floats;
use crate::source::lowering::Lowering;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// The input as it is; dropout is this at inference.
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

    fn chooses_scale(&self) -> bool {
        false
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        Err(step.defect("a pass should have removed it"))
    }
}
