//! Products of two tensors as matrices.

use super::checks::two;
use super::narrow::{clip_within, extended};
use crate::error::{Check, Result};
use crate::ops::{MatMul as Product, Rounding};
use crate::source::floats::Floats;
use crate::source::lowering::{IntegerNode, Lowering};
use crate::source::operator::{Place, SourceOperator};
use crate::source::scaling::{levels, side};
use crate::source::values::Values;
use serde::{Deserialize, Serialize};

/// What a shift may be off by for rounding of scales.
const ROUNDED: f64 = 1e-6;

/// Product of two tensors as matrices, `[.., rows, inner]` and `[.., inner, columns]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatMul {
    /// Whether the first is a mask of zeros and ones, which the client knows: its 1 is the integer 1.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mask: bool,
}

impl SourceOperator for MatMul {
    fn kind(&self) -> &'static str {
        "MatMul"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let (a, b) = two(inputs)?;
        let [_, rows, _, columns] =
            Product::sides(a, b).ok_or_else(|| format!("multiplies {a:?} by {b:?}"))?;
        let leading = a.iter().take(a.len().saturating_sub(2));
        Ok(leading.copied().chain([rows, columns]).collect())
    }

    fn mask_place(&self, values: &dyn Values) -> Option<usize> {
        (self.mask && values.is_known(0)).then_some(0)
    }

    fn demands(&self, values: &dyn Values) -> Result<Vec<(Place, f64)>> {
        let activation = values.activation_bits();
        let inputs = (0..values.inputs()).filter(|place| values.is_shared(*place));
        let scaled =
            |place| Ok((Place::Input(place), side(values.range(place)?) / levels(activation - 1)));
        let mut demands = inputs.map(scaled).collect::<Result<Vec<_>>>()?;
        if !self.by_mask(values) {
            demands.push((Place::Output, side(values.output_range()?) / levels(activation + 1)));
        }
        Ok(demands)
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        self.clip_factors(step)?;
        let by_client = self.by_mask(&*step.values());
        let mut product = step.input(1)?.format.scale;
        if !by_client {
            product *= step.input(0)?.format.scale;
        }
        // About the scale that readers want: shifts are whole.
        let shift = match by_client {
            true => 0.0,
            false => ((step.scale()? / product).log2() - ROUNDED).ceil().clamp(0.0, 30.0),
        };
        let rounding = if by_client { Rounding::Exact } else { step.rounding() };
        let operator = Product { accumulator_bits: 1, shift: shift as u32, rounding };
        let node = IntegerNode::new(operator, &[0, 1], product * shift.exp2(), true);
        let narrow = by_client || step.values().is_clipped_by_readers();
        if narrow { step.finish(node) } else { extended(step, node) }
    }
}

impl MatMul {
    /// Whether it sums what a mask chooses.
    fn by_mask(&self, values: &dyn Values) -> bool {
        self.mask && values.is_known(0)
    }

    /// Clips factors that may choose their scales, but for those that are bounded or were clipped before:
    /// what a state has was clipped when it was made.
    fn clip_factors(&self, step: &mut dyn Lowering) -> Result<()> {
        if ![0, 1].into_iter().all(|place| step.values().is_shared(place)) {
            return Ok(());
        }
        let bits = step.values().activation_bits() + 1;
        for place in [0, 1] {
            if !step.values().is_bounded(place) && !step.is_within(place, bits) {
                let range = step.values().range(place)?;
                clip_within(step, place, &format!("clip{place}"), range, bits)?;
            }
        }
        Ok(())
    }
}
