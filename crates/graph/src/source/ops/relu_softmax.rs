//! Softmax of smooth maxima.

use super::checks::{is_positive, one};
use super::narrow::{NORM, clip_within, extended, least_newton};
use crate::error::{Check, Result};
use crate::functions::smu::Smooth;
use crate::ops;
use crate::source::floats::Floats;
use crate::source::lowering::{IntegerNode, Lowering};
use crate::source::operator::{Place, SourceOperator};
use crate::source::scaling::{levels, peak, side};
use crate::source::values::Values;
use crate::tensor::Format;
use serde::{Deserialize, Serialize};

/// Bits that parts of a softmax have after the point beyond those of scores, at least and
/// at most.
const PART_BITS: [u32; 2] = [2, 6];
/// Last places of a denominator's epsilon, if there can be so many.
const EPSILON: f64 = 8.0;

/// `s / (sum(s) + epsilon)` along the last axis for `s` a [`super::Smu`] of slope 0. A
/// [`super::Mask`] in front of it, which nothing else reads, makes `s` 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReluSoftmax {
    /// The smoothness, positive. It becomes public.
    pub smoothness: f64,
    /// The number that is added to the sum, positive. It becomes public.
    pub epsilon: f64,
}

impl SourceOperator for ReluSoftmax {
    fn kind(&self) -> &'static str {
        "ReluSoftmax"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let (input, Self { smoothness, epsilon }) = (one(inputs)?, self);
        let fits = is_positive(*smoothness) && is_positive(*epsilon);
        fits.then(|| input.to_vec())
            .ok_or(format!("smoothness {smoothness} or epsilon {epsilon} is not positive"))
    }

    fn is_distribution(&self) -> bool {
        true
    }

    fn chooses_scale(&self) -> bool {
        false
    }

    fn demands(&self, values: &dyn Values) -> Result<Vec<(Place, f64)>> {
        let activation = values.activation_bits();
        let scores = side(values.unmasked_range(0)?) / levels(activation);
        Ok(vec![(Place::Input(0), scores), (Place::Output, 1.0 / peak(activation))])
    }

    fn is_saturated(&self, _values: &dyn Values) -> bool {
        true
    }

    fn clips_input(&self) -> bool {
        true
    }

    fn reads_mask_apart(&self) -> bool {
        true
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let bits = step.values().activation_bits();
        let (masked, range) = (step.values().is_masked(0), step.values().unmasked_range(0)?);
        step.unmask();
        let clipped = clip_within(step, 0, "clip", range, bits + 1)?;
        let scale = step.input(0)?.format.scale;
        let Self { smoothness, epsilon } = *self;
        let [least, most] = PART_BITS;
        let enough = |bits: &u32| epsilon / scale * f64::from(1u32 << bits) >= EPSILON;
        let fraction = (least..most).find(enough).unwrap_or(most);
        let smooth = Smooth { bits: clipped, scale, slope: 0.0, smoothness, fraction };
        let (newton, _) = least_newton(step, smooth)?;
        let operator = ops::ReluSoftmax { smooth, epsilon, newton, division: NORM };
        let reads: &[usize] = if masked { &[0, 1] } else { &[0] };
        let format = Format { bits, scale: 1.0 / peak(bits), signed: false };
        extended(step, IntegerNode { format, ..IntegerNode::new(operator, reads, scale, false) })
    }
}
