//! Clips to an interval.

use super::checks::one;
use super::clipping::{Clipping, Limit};
use crate::error::{Check, Result};
use crate::source::floats::Floats;
use crate::source::lowering::{Lowering, UnscaledLowering};
use crate::source::operator::{Place, SourceOperator};
use crate::source::scaling::around_zero;
use crate::source::values::Values;
use serde::{Deserialize, Serialize};

/// Bounds that are so many times as far as all values are none.
const FAR: f64 = 2.0;

/// Values below `minimum` and above `maximum` become these; at least what
/// calibration saw remains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clip {
    /// The smallest result; none when absent.
    pub minimum: Option<f64>,
    /// The largest result; none when absent.
    pub maximum: Option<f64>,
}

impl SourceOperator for Clip {
    fn kind(&self) -> &'static str {
        "Clip"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        let low = self.minimum.unwrap_or(f64::MIN);
        let high = self.maximum.unwrap_or(f64::MAX);
        let fits = low.is_finite() && high.is_finite() && low < high;
        fits.then(|| input.to_vec()).ok_or(format!("clips to {low}..{high}"))
    }

    fn ratio(&self) -> Option<f64> {
        Some(1.0)
    }

    fn demands(&self, values: &dyn Values) -> Result<Vec<(Place, f64)>> {
        Ok(self.clipping(values)?.demands())
    }

    fn derived_range(&self, values: &dyn Values) -> Result<Option<(f64, f64)>> {
        let (low, high) = values.range(0)?;
        let minimum = self.minimum.unwrap_or(f64::NEG_INFINITY);
        let maximum = self.maximum.unwrap_or(f64::INFINITY);
        Ok(Some((low.clamp(minimum, maximum), high.clamp(minimum, maximum))))
    }

    fn is_saturated(&self, _values: &dyn Values) -> bool {
        true
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

impl Clip {
    /// Where the operator stops. Zero is inside where the bounds allow it.
    fn clipping(&self, values: &dyn Values) -> Result<Clipping> {
        let (low, high) = around_zero(values.output_range()?);
        let (minimum, maximum) =
            (self.minimum.unwrap_or(f64::MIN), self.maximum.unwrap_or(f64::MAX));
        // Bounds that nothing comes near only say where to round.
        let even = minimum < FAR * low && maximum > FAR * high;
        let (low, high) = (low.max(minimum), high.min(maximum));
        let range = (low, if high > low { high } else { low + 1.0 });
        let limit = |value| Limit { value, relative: 0.0, units: 0.51 };
        let (bits, limit) = (values.activation_bits(), self.maximum.map(limit));
        Ok(Clipping { range, bits, limit, even })
    }
}
