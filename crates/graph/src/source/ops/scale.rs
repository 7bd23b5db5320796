//! Products with a public number.

use super::checks::one;
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// `factor * x`. The factor becomes public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Not zero.
    pub factor: f64,
}

impl SourceOperator for Scale {
    fn kind(&self) -> &'static str {
        "Scale"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let (input, factor) = (one(inputs)?, self.factor);
        let fits = factor.is_finite() && factor != 0.0;
        fits.then(|| input.to_vec()).ok_or(format!("multiplies by {factor}"))
    }
}
