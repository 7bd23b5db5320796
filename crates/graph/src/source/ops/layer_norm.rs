//! Layer normalisation.

use super::checks::{expect, one};
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Brings values to mean 0 and deviation 1 along the first axis, then per channel times
/// `scale` plus `bias` where there are such.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerNorm {
    /// Added to the variance.
    pub epsilon: f64,
    /// `[channels]`.
    #[serde(default)]
    pub scale: Option<String>,
    /// `[channels]`.
    #[serde(default)]
    pub bias: Option<String>,
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
}
