//! Elementwise products.

use super::checks::two;
use crate::error::{Check, Result};
use crate::ops::Product;
use crate::source::floats::Floats;
use crate::source::lowering::{IntegerNode, Lowering, UnscaledLowering};
use crate::source::operator::{Place, SourceOperator};
use crate::source::scaling::{around_zero, levels, positive};
use crate::source::values::Values;
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

    fn demands(&self, values: &dyn Values) -> Result<Vec<(Place, f64)>> {
        let scale = |place| {
            let (low, high) = around_zero(values.range(place)?);
            let scale = positive(high - low) / levels(values.activation_bits());
            Ok((Place::Input(place), scale))
        };
        let unsaturated = (0..values.inputs()).filter(|place| !values.is_saturated(*place));
        unsaturated.map(scale).collect()
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        // Factors are clipped; the product is rescaled unless only sums read it.
        let bits = step.values().activation_bits();
        for place in [0, 1] {
            step.clip(place, bits)?;
        }
        let [a, b] = [step.input(0)?, step.input(1)?];
        let signed = a.name != b.name && (a.format.signed || b.format.signed);
        let scale = a.format.scale * b.format.scale;
        let product = IntegerNode::new(Product { factor_bits: [1, 1] }, &[0, 1], scale, signed);
        if step.values().is_rescaled_by_sums() {
            return step.finish(product);
        }
        let product = step.before("product", product)?;
        let scale = step.scale()?;
        step.sum([product; 2], [1.0, 0.0], scale)
    }

    fn polynomial(&self, inputs: &[[f64; 3]], _floats: &Floats) -> Option<[f64; 3]> {
        let [[a0, a1, a2], [b0, b1, b2]] = *inputs else { return None };
        let beyond = a1 * b2 != 0.0 || a2 * b1 != 0.0 || a2 * b2 != 0.0;
        (!beyond).then_some([a0 * b0, a0 * b1 + a1 * b0, a0 * b2 + a1 * b1 + a2 * b0])
    }

    fn lower_unscaled(&self, step: &mut dyn UnscaledLowering) -> Result<()> {
        let instead = "use a*x^2 + b*x + c with numbers a, b and c, or suite auto";
        Err(step.refuse("is no polynomial of degree 2 of one tensor", instead))
    }
}
