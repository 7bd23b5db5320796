//! Clips to an interval.

use super::checks::one;
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Values below `minimum` and above `maximum` become these; at least what
/// calibration saw remains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clip {
    /// Lower bound.
    pub minimum: Option<f64>,
    /// Upper bound.
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
}
