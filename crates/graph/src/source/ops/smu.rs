//! Smooth maxima.

use super::checks::{is_positive, one};
use super::narrow::{clip_within, extended, least_newton};
use crate::error::{Check, Result};
use crate::functions::smu::Smooth;
use crate::ops;
use crate::source::floats::Floats;
use crate::source::lowering::{IntegerNode, Lowering};
use crate::source::operator::{Place, SourceOperator};
use crate::source::scaling::{levels, side};
use crate::source::values::Values;
use crate::tensor::Format;
use serde::{Deserialize, Serialize};

/// Bits that a smooth maximum's argument has beyond activations, with its sign.
const SMOOTH_BITS: u32 = 1;

/// `((1 + slope)*x + sqrt(((1 - slope)*x)^2 + smoothness^2)) / 2`: a smooth maximum of `x`
/// and `slope*x` (Biswas et al., SMU, CVPR 2022).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smu {
    /// The slope below zero, at least 0 and below 1. It becomes public.
    pub slope: f64,
    /// The smoothness, positive. It becomes public.
    pub smoothness: f64,
}

impl SourceOperator for Smu {
    fn kind(&self) -> &'static str {
        "Smu"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let (input, Self { slope, smoothness }) = (one(inputs)?, self);
        let fits = (0.0..1.0).contains(slope) && is_positive(*smoothness);
        fits.then(|| input.to_vec())
            .ok_or(format!("a smooth maximum of slope {slope}, smoothness {smoothness}"))
    }

    fn ratio(&self) -> Option<f64> {
        Some(1.0)
    }

    fn demands(&self, values: &dyn Values) -> Result<Vec<(Place, f64)>> {
        let levels = levels(values.activation_bits() + SMOOTH_BITS - 1);
        Ok(vec![(Place::Input(0), side(values.range(0)?) / levels)])
    }

    fn is_saturated(&self, _values: &dyn Values) -> bool {
        true
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let range = step.values().range(0)?;
        let bits = step.values().activation_bits() + SMOOTH_BITS;
        let bits = clip_within(step, 0, "clip", range, bits)?;
        let scale = step.input(0)?.format.scale;
        let Self { slope, smoothness } = *self;
        let smooth = Smooth { bits, scale, slope, smoothness, fraction: 0 };
        let (newton, bits) = least_newton(step, smooth)?;
        let node = IntegerNode::new(ops::Smu { smooth, newton }, &[0], scale, true);
        // A bit to spare for the extension.
        let format = Format { bits: bits + 1, ..node.format };
        extended(step, IntegerNode { format, ..node })
    }
}
