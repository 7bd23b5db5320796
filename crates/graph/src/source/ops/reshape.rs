//! Reshapes.

use super::checks::one;
use crate::error::Check;
use crate::ops::geometry::elements;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Same elements, same order, another shape (also flatten).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reshape {
    /// The new shape, without the batch axis.
    pub shape: Vec<usize>,
}

impl SourceOperator for Reshape {
    fn kind(&self) -> &'static str {
        "Reshape"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let (input, Self { shape }) = (one(inputs)?, self);
        let same = input.iter().product::<usize>() == elements(shape)?;
        same.then(|| shape.clone()).ok_or(format!("reshapes {input:?} to {shape:?}"))
    }
}
