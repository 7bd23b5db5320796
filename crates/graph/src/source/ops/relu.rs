//! ReLUs, with a maximum or without.

use super::checks::{check_bits, is_positive, one};
use super::clipping::{Clipping, Limit};
use crate::error::{Check, Result};
use crate::source::floats::Floats;
use crate::source::lowering::{Lowering, UnscaledLowering};
use crate::source::operator::{Place, SourceOperator};
use crate::source::scaling::{TOLERANCE, positive};
use crate::source::values::Values;
use serde::{Deserialize, Serialize};

/// `max(x, 0)`, at most `maximum` when there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relu {
    /// The value above which results are clipped, such as 6; none when absent.
    pub maximum: Option<f64>,
    /// Bits of the result, over its range; those of activations when absent.
    #[serde(default)]
    pub bits: Option<u32>,
}

impl SourceOperator for Relu {
    fn kind(&self) -> &'static str {
        "Relu"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        self.bits.map_or(Ok(()), check_bits)?;
        match self.maximum {
            Some(maximum) if !is_positive(maximum) => {
                Err(format!("maximum is {maximum}, which is not positive"))
            }
            _ => Ok(input.to_vec()),
        }
    }

    fn ratio(&self) -> Option<f64> {
        Some(1.0)
    }

    fn demands(&self, values: &dyn Values) -> Result<Vec<(Place, f64)>> {
        Ok(self.clipping(values)?.demands())
    }

    fn derived_range(&self, values: &dyn Values) -> Result<Option<(f64, f64)>> {
        let high = values.range(0)?.1.max(0.0);
        Ok(Some((0.0, self.maximum.map_or(high, |maximum| high.min(maximum)))))
    }

    fn lends_range(&self) -> bool {
        true
    }

    fn is_saturated(&self, _values: &dyn Values) -> bool {
        true
    }

    fn unsigned_bits(&self, activation_bits: u32) -> Option<u32> {
        Some(self.bits.unwrap_or(activation_bits))
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let clipping = self.clipping(&*step.values())?;
        clipping.lower(step)
    }

    fn lower_unscaled(&self, step: &mut dyn UnscaledLowering) -> Result<()> {
        let instead = "put a polynomial of degree 2 in its place (`tacit train square`), or use \
                       suite auto";
        Err(step.refuse("is a comparison, which ciphertexts cannot be put to", instead))
    }
}

impl Relu {
    /// Where the ReLU stops.
    fn clipping(&self, values: &dyn Values) -> Result<Clipping> {
        let high = match (values.output_range(), self.maximum) {
            (Ok((_, high)), Some(limit)) if high > 0.0 => positive(high.min(limit)),
            (_, Some(limit)) => limit,
            (range, None) => positive(range?.1),
        };
        let limit = |value| Limit { value, relative: TOLERANCE, units: 0.0 };
        let bits = self.bits.unwrap_or(values.activation_bits());
        Ok(Clipping { range: (0.0, high), bits, limit: self.maximum.map(limit), even: false })
    }
}
