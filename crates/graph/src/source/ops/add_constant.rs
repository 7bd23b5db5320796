//! Sums with constants.

use super::checks::one;
use crate::error::{Check, Result};
use crate::ops::Offset;
use crate::source::floats::Floats;
use crate::source::lowering::{IntegerNode, Lowering, UnscaledLowering};
use crate::source::operator::SourceOperator;
use crate::source::values::{Values, all_saturated};
use crate::tensor::NodeWeights;
use serde::{Deserialize, Serialize};

/// Sum of a tensor and a constant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddConstant {
    /// Name of the constant: one value, one per channel, or one per element.
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

    fn ratio(&self) -> Option<f64> {
        Some(1.0)
    }

    /// Constants that are added to nothing but zeros are what they are.
    fn is_saturated(&self, values: &dyn Values) -> bool {
        all_saturated(values) && values.range(0).is_ok_and(|range| range == (0.0, 0.0))
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let scale = step.input(0)?.format.scale;
        let constant = &step.floats()[&self.constant].data;
        let elements: usize = step.shape().iter().product();
        let each = elements / constant.len();
        let units = constant.iter().map(|c| (f64::from(*c) / scale).round());
        if units.clone().any(|c| c.abs() >= f64::from(1u32 << 31)) {
            let what = "adds a constant that is far too large for the calibrated range";
            return Err(step.refuse(what, "calibrate with real inputs"));
        }
        let bias = units.flat_map(|c| std::iter::repeat_n(c as i64, each)).collect();
        let weights = Some(NodeWeights { weight: vec![], bias });
        step.finish(IntegerNode { weights, ..IntegerNode::new(Offset, &[0], scale, true) })
    }

    fn polynomial(&self, inputs: &[[f64; 3]], floats: &Floats) -> Option<[f64; 3]> {
        let [[a0, a1, a2]] = *inputs else { return None };
        let constants = &floats[&self.constant].data;
        let value = *constants.first().filter(|c| constants.iter().all(|d| d == *c))?;
        Some([a0 + f64::from(value), a1, a2])
    }

    fn lower_unscaled(&self, step: &mut dyn UnscaledLowering) -> Result<()> {
        let instead = "use a*x^2 + b*x + c with numbers a, b and c, or suite auto";
        Err(step.refuse("is no polynomial of degree 2 of one tensor", instead))
    }
}
