//! Slices and transpositions.

use super::checks::one;
use crate::error::Check;
use crate::ops::View as Strided;
use crate::ops::arrange::last_viewed;
use crate::ops::geometry::elements;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Some elements in an order of their own, see [`Strided`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// The new shape.
    pub shape: Vec<usize>,
    /// The first element.
    pub start: usize,
    /// Elements of the input between two positions of the output, by axis.
    pub strides: Vec<usize>,
}

impl SourceOperator for View {
    fn kind(&self) -> &'static str {
        "View"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        elements(&self.shape)?;
        let have = input.iter().product();
        let inside = self.strides.len() == self.shape.len()
            && last_viewed(&self.strided(), &self.shape).is_some_and(|last| last < have);
        inside.then(|| self.shape.clone()).ok_or(format!("shows more than {input:?}"))
    }
}

impl View {
    /// The integer operator.
    fn strided(&self) -> Strided {
        Strided { start: self.start, strides: self.strides.clone() }
    }
}
