//! Matrix products with float weights.

use super::checks::{expect, one};
use crate::error::{Check, Result};
use crate::ops::geometry::{Conv as Geometry, check_conv};
use crate::source::floats::Floats;
use crate::source::linear::LinearOperator;
use crate::source::lowering::Lowering;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// The product of a matrix and the input, a vector, with constants added where there are some.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gemm {
    /// Name of the weights, of shape `[out, in]`.
    pub weight: String,
    /// Name of the constants, of shape `[out]`.
    pub bias: Option<String>,
}

impl SourceOperator for Gemm {
    fn kind(&self) -> &'static str {
        "Gemm"
    }

    fn floats(&self) -> Vec<&str> {
        [Some(&self.weight), self.bias.as_ref()].into_iter().flatten().map(String::as_str).collect()
    }

    fn linear(&self) -> Option<&dyn LinearOperator> {
        Some(self)
    }

    fn linear_mut(&mut self) -> Option<&mut dyn LinearOperator> {
        Some(self)
    }

    fn shape(&self, inputs: &[&[usize]], floats: &Floats) -> Check<Vec<usize>> {
        let conv = self.geometry(one(inputs)?, floats)?;
        expect(floats, &self.weight, &[conv.out_channels, conv.in_channels])?;
        if let Some(bias) = &self.bias {
            expect(floats, bias, &[conv.out_channels])?;
        }
        Ok(vec![conv.out_channels])
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        step.linear(0)
    }
}

impl LinearOperator for Gemm {
    fn weight(&self) -> &str {
        &self.weight
    }

    fn bias(&self) -> Option<&str> {
        self.bias.as_deref()
    }

    fn set_weights(&mut self, weight: String, bias: String) {
        self.weight = weight;
        self.bias = Some(bias);
    }

    fn geometry(&self, input: &[usize], floats: &Floats) -> Check<Geometry> {
        let [length] = *input else {
            return Err(format!("Gemm needs a flat input, got {input:?}"));
        };
        let outputs = *floats[&self.weight].shape.first().unwrap_or(&0);
        let conv = Geometry::fully_connected(length, outputs);
        check_conv(&conv)?;
        Ok(conv)
    }
}
