//! Batch normalisation, which passes turn into a linear layer.

use super::checks::{expect, one};
use crate::error::{Check, Result};
use crate::source::floats::Floats;
use crate::source::lowering::Lowering;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// `scale * (x - mean) / sqrt(variance + epsilon) + bias`, per channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchNormalization {
    /// Name of the factors, of shape `[channels]`.
    pub scale: String,
    /// Name of the constants, of shape `[channels]`.
    pub bias: String,
    /// Name of the means, of shape `[channels]`.
    pub mean: String,
    /// Name of the variances, of shape `[channels]`.
    pub variance: String,
    /// The number that is added to the variance, not negative.
    pub epsilon: f64,
}

impl SourceOperator for BatchNormalization {
    fn kind(&self) -> &'static str {
        "BatchNormalization"
    }

    fn floats(&self) -> Vec<&str> {
        vec![&self.scale, &self.bias, &self.mean, &self.variance]
    }

    fn shape(&self, inputs: &[&[usize]], floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        for name in self.floats() {
            expect(floats, name, &input[..1])?;
        }
        let variance = floats[&self.variance].data.iter().copied();
        let smallest = variance.fold(f32::MAX, f32::min);
        let positive = f64::from(smallest) + self.epsilon > 0.0;
        positive.then(|| input.to_vec()).ok_or("variance + epsilon is not positive".into())
    }

    fn chooses_scale(&self) -> bool {
        false
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        Err(step.defect("a pass should have removed it"))
    }
}
