//! Softmax of smooth maxima.

use super::checks::{is_positive, one};
use crate::error::Check;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// `s / (sum(s) + epsilon)` along the last axis for `s` a [`super::Smu`] of slope 0. A
/// [`super::Mask`] in front of it, which nothing else reads, makes `s` 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReluSoftmax {
    /// Positive. Becomes public.
    pub smoothness: f64,
    /// Positive. Becomes public.
    pub epsilon: f64,
}

impl SourceOperator for ReluSoftmax {
    fn kind(&self) -> &'static str {
        "ReluSoftmax"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let (input, Self { smoothness, epsilon }) = (one(inputs)?, self);
        let fits = is_positive(*smoothness) && is_positive(*epsilon);
        fits.then(|| input.to_vec())
            .ok_or(format!("smoothness {smoothness} or epsilon {epsilon} is not positive"))
    }
}
