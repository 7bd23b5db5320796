//! Masks of attention scores.

use super::checks::two;
use super::narrow::clip_within;
use crate::error::{Check, Result};
use crate::ops::Sum;
use crate::source::floats::Floats;
use crate::source::lowering::Lowering;
use crate::source::operator::SourceOperator;
use crate::source::values::Values;
use serde::{Deserialize, Serialize};

/// `e^-x` is nothing from here on, for every precision that results have.
pub(super) const NOTHING: f64 = 12.0;
/// Most bits of scores that are masked: those that count, those that do not, and the distance in
/// between fit into the widest softmax.
pub(super) const MASKED_BITS: u32 = 9;

/// The first input where the second, of the same shape, is 1; so low where it is 0 that
/// a softmax makes it 0. The second is the graph's input, or shows it in another order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mask {}

impl SourceOperator for Mask {
    fn kind(&self) -> &'static str {
        "Mask"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let (a, b) = two(inputs)?;
        (a == b).then(|| a.to_vec()).ok_or(format!("masks {a:?} by {b:?}"))
    }

    fn mask_place(&self, _values: &dyn Values) -> Option<usize> {
        Some(1)
    }

    fn ratio(&self) -> Option<f64> {
        Some(1.0)
    }

    fn tied_inputs(&self) -> usize {
        // A mask chooses, whatever its own scale.
        1
    }

    fn clips_input(&self) -> bool {
        true
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        if step.values().is_read_apart() {
            step.skip();
            return Ok(());
        }
        // Scores are higher by more than their range where they count.
        let bits = (step.values().activation_bits() + 1).min(MASKED_BITS);
        let range = step.values().range(0)?;
        let bits = clip_within(step, 0, "clip", range, bits)?;
        let scale = step.input(0)?.format.scale;
        let lift = (1i64 << bits) + (NOTHING / scale).ceil() as i64;
        let sum = Sum { multipliers: [1, lift], accumulator_bits: 1, shift: 0 };
        step.write(Box::new(sum), scale, true)
    }
}
