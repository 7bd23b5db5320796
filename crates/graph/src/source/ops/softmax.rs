//! Softmax of exponentials.

use super::checks::one;
use super::mask::{MASKED_BITS, NOTHING};
use super::narrow::{LATER, clip_within, extended};
use crate::error::{Check, Result};
use crate::ops;
use crate::source::floats::Floats;
use crate::source::lowering::{IntegerNode, Lowering};
use crate::source::operator::{Place, SourceOperator};
use crate::source::scaling::{levels, peak, positive, side};
use crate::source::values::Values;
use crate::tensor::Format;
use serde::{Deserialize, Serialize};

/// The finest scale of scores: what counts below a maximum has seven bits, and a mask fits
/// beside it.
const FINEST: f64 = NOTHING / 127.0;
/// The coarsest scale of scores: one step is a factor of e.
const COARSEST: f64 = 1.0;
/// Most bits of activations whose scores and results a softmax has room for.
const MOST_BITS: u32 = 11;
/// Most bits that results which are all small have beyond activations.
const SMALL_BITS: u32 = 3;

/// Softmax along the last axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Softmax {}

impl SourceOperator for Softmax {
    fn kind(&self) -> &'static str {
        "Softmax"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        let single = input.last() == Some(&1);
        (!single).then(|| input.to_vec()).ok_or("a softmax of single values".into())
    }

    fn is_distribution(&self) -> bool {
        true
    }

    fn chooses_scale(&self) -> bool {
        false
    }

    fn demands(&self, values: &dyn Values) -> Result<Vec<(Place, f64)>> {
        let bits = if values.is_masked(0) { MASKED_BITS - 1 } else { MOST_BITS };
        let scores = side(values.unmasked_range(0)?) / levels(finest(values).min(bits));
        let result = 1.0 / peak(result_bits(values)?);
        Ok(vec![(Place::Input(0), scores.max(FINEST)), (Place::Output, result)])
    }

    fn is_saturated(&self, _values: &dyn Values) -> bool {
        true
    }

    fn clips_input(&self) -> bool {
        true
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let bits = finest(&*step.values());
        if !step.values().is_masked(0) {
            let range = step.values().range(0)?;
            clip_within(step, 0, "clip", range, bits + 1)?;
        }
        let scale = step.input(0)?.format.scale;
        if scale > COARSEST {
            let what = "reads scores in steps that are larger than what it tells apart";
            return Err(
                step.refuse(what, "scale them down, or choose the result before it (--result)")
            );
        }
        let bits = result_bits(&*step.values())?;
        let operator = ops::Softmax { bits: LATER, scale, top: Some(0) };
        let format = Format { bits, scale: 1.0 / peak(bits), signed: false };
        extended(step, IntegerNode { format, ..IntegerNode::new(operator, &[0], scale, false) })
    }
}

/// The bits of activations that a softmax works with: scores have one more, and twelve at most.
fn finest(values: &dyn Values) -> u32 {
    values.activation_bits().min(MOST_BITS)
}

/// The bits of results: as many as activations have, and one more for each halving by which the
/// largest calibrated result stays below 1, up to [`SMALL_BITS`]. Rows of many equal scores have
/// results of about one place of activations, which rounding would take all meaning from.
fn result_bits(values: &dyn Values) -> Result<u32> {
    let activation = finest(values);
    let largest = positive(values.output_range()?.1).min(1.0);
    let unused = (-largest.log2()).floor().min(f64::from(SMALL_BITS)) as u32;
    Ok((activation + unused).min(MOST_BITS))
}
