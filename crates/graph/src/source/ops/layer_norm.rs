//! Layer normalisation.

use super::checks::{expect, one};
use super::narrow::{LATER, NORM, clip_within, extended};
use crate::error::{Check, Result};
use crate::ops;
use crate::source::floats::Floats;
use crate::source::lowering::{IntegerNode, Lowering};
use crate::source::operator::{Place, SourceOperator};
use crate::source::scaling::{HIDDEN_BITS, levels, side};
use crate::source::values::Values;
use crate::tensor::Format;
use serde::{Deserialize, Serialize};

/// Room above what calibration saw before a norm.
const MARGIN: f64 = 1.1;
/// Most bits of activations that sums of a norm have room for.
const MOST_BITS: u32 = 9;
/// Most bits of activations before a norm that takes no mean off.
const MOST_RMS_BITS: u32 = 11;

/// Brings values to mean 0 and deviation 1 along the first axis, or to mean square 1 alone, then
/// per channel times `scale` plus `bias` where there are such.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerNorm {
    /// The number that is added to the variance, not negative.
    pub epsilon: f64,
    /// Name of the factors, of shape `[channels]`.
    #[serde(default)]
    pub scale: Option<String>,
    /// Name of the constants, of shape `[channels]`.
    #[serde(default)]
    pub bias: Option<String>,
    /// Whether no mean is taken off, as in RMSNorm.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rms: bool,
}

impl SourceOperator for LayerNorm {
    fn kind(&self) -> &'static str {
        "LayerNorm"
    }

    fn floats(&self) -> Vec<&str> {
        [&self.scale, &self.bias].into_iter().flatten().map(String::as_str).collect()
    }

    fn shape(&self, inputs: &[&[usize]], floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        for name in self.floats() {
            expect(floats, name, &input[..1])?;
        }
        let fits = self.epsilon.is_finite() && self.epsilon >= 0.0 && input[0] > 1;
        fits.then(|| input.to_vec()).ok_or("normalises too few values".into())
    }

    fn is_norm(&self) -> bool {
        true
    }

    fn chooses_scale(&self) -> bool {
        false
    }

    fn demands(&self, values: &dyn Values) -> Result<Vec<(Place, f64)>> {
        let all = levels(self.finest(values) + HIDDEN_BITS);
        let input = side(values.range(0)?) * MARGIN / all;
        let columns = values.shape(0)[0] as f64;
        Ok(vec![(Place::Input(0), input), (Place::Output, columns.sqrt() / (all - 1.0))])
    }

    fn is_saturated(&self, _values: &dyn Values) -> bool {
        true
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        if !self.floats().is_empty() {
            let what = "has factors that no layer behind it takes over";
            return Err(
                step.refuse(what, "normalise an image of channels, or multiply and add after it")
            );
        }
        // A table's values are what they are.
        if !step.values().is_looked_up(0) {
            let bits = self.finest(&*step.values()) + HIDDEN_BITS + 1;
            let range = step.values().range(0)?;
            clip_within(step, 0, "clip", range, bits)?;
        }
        let unit = 1.0 / step.scale()?;
        let columns = step.shape()[0] as f64;
        // A sign, and a bit to spare for the extension.
        let bits = (unit * columns.sqrt() + 2.0).log2().ceil() as u32 + 2;
        let newton = step.newton().then_some(NORM);
        let operator =
            ops::LayerNorm { bits: LATER, least: LATER / 3, unit, newton, rms: self.rms };
        let format = Format { bits, scale: 1.0 / unit, signed: true };
        extended(step, IntegerNode { format, ..IntegerNode::new(operator, &[0], 1.0, true) })
    }
}

impl LayerNorm {
    /// The bits of activations that the norm works with: wider values would not fit its sums.
    fn finest(&self, values: &dyn Values) -> u32 {
        values.activation_bits().min(if self.rms { MOST_RMS_BITS } else { MOST_BITS })
    }
}
