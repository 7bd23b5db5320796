//! Smooth maxima.

use super::checks::{is_positive, one};
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// `((1 + slope)*x + sqrt(((1 - slope)*x)^2 + smoothness^2)) / 2`: a smooth maximum of `x`
/// and `slope*x` (Biswas et al., SMU, CVPR 2022).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smu {
    /// At least 0, below 1. Becomes public.
    pub slope: f64,
    /// Positive. Becomes public.
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
}
