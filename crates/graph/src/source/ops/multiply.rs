//! Elementwise products.

use super::checks::two;
use crate::error::{Check, Result};
use crate::ops::Product;
use crate::source::floats::Floats;
use crate::source::lowering::{IntegerNode, Lowering, UnscaledLowering};
use crate::source::operator::{Place, SourceOperator};
use crate::source::scaling::{around_zero, levels, positive, side};
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
        clip_factors(step)?;
        product(step, [0, 1])
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

/// Clips both factors to what calibration saw of them, in the bits of activations.
pub(super) fn clip_factors(step: &mut dyn Lowering) -> Result<()> {
    let bits = step.values().activation_bits();
    [0, 1].into_iter().try_for_each(|place| step.clip(place, bits))
}

/// Returns about how many bits the products of both inputs have, which are clipped.
pub(super) fn width(step: &dyn Lowering) -> Result<f64> {
    let bits =
        |place| Ok((side(step.values().range(place)?) / step.input(place)?.format.scale).log2());
    Ok(bits(0)? + bits(1)? + 1.0)
}

/// Writes the product of the tensors at two places, rescaled unless only sums read it.
pub(super) fn product(step: &mut dyn Lowering, places: [usize; 2]) -> Result<()> {
    let [a, b] = [step.input(places[0])?, step.input(places[1])?];
    let signed = a.name != b.name && (a.format.signed || b.format.signed);
    let scale = a.format.scale * b.format.scale;
    let product = IntegerNode::new(Product { factor_bits: [1, 1] }, &places, scale, signed);
    if step.values().is_rescaled_by_sums() {
        return step.finish(product);
    }
    let product = step.before("product", product)?;
    let scale = step.scale()?;
    step.sum([product; 2], [1.0, 0.0], scale)
}
