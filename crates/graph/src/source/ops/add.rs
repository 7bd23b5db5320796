//! Sums of two tensors.

use super::checks::two;
use crate::error::{Check, Result};
use crate::source::floats::Floats;
use crate::source::lowering::{Lowering, UnscaledLowering};
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// The sum of two tensors of one shape, element by element.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Add {}

impl SourceOperator for Add {
    fn kind(&self) -> &'static str {
        "Add"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let (a, b) = two(inputs)?;
        (a == b).then(|| a.to_vec()).ok_or(format!("combines {a:?} and {b:?}"))
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let scale = step.scale()?;
        step.sum([0, 1], [1.0, 1.0], scale)
    }

    fn polynomial(&self, inputs: &[[f64; 3]], _floats: &Floats) -> Option<[f64; 3]> {
        let [[a0, a1, a2], [b0, b1, b2]] = *inputs else { return None };
        Some([a0 + b0, a1 + b1, a2 + b2])
    }

    fn lower_unscaled(&self, step: &mut dyn UnscaledLowering) -> Result<()> {
        let instead = "use a*x^2 + b*x + c with numbers a, b and c, or suite auto";
        Err(step.refuse("is no polynomial of degree 2 of one tensor", instead))
    }
}
