//! Convolutions with float weights.

use super::checks::{expect, one};
use crate::error::{Check, Result};
use crate::ops::geometry::{Conv as Geometry, check_conv};
use crate::source::floats::Floats;
use crate::source::linear::LinearOperator;
use crate::source::lowering::Lowering;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Grouped 2-D convolution on `[channels, height, width]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conv {
    /// Size of the kernel in rows and columns.
    pub kernel: [usize; 2],
    /// Distance of neighbouring windows in rows and columns.
    pub stride: [usize; 2],
    /// Padding at the top, left, bottom and right, in rows and columns.
    pub padding: [usize; 4],
    /// Distance of neighbouring taps of the kernel in rows and columns.
    pub dilation: [usize; 2],
    /// Number of groups.
    pub groups: usize,
    /// Name of the weights, of shape `[out, in / groups, rows, columns]`.
    pub weight: String,
    /// Name of the constants, of shape `[out]`.
    pub bias: Option<String>,
}

impl SourceOperator for Conv {
    fn kind(&self) -> &'static str {
        "Conv"
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
        let expected = [&[conv.out_channels, conv.group_channels()][..], &conv.kernel].concat();
        expect(floats, &self.weight, &expected)?;
        if let Some(bias) = &self.bias {
            expect(floats, bias, &[conv.out_channels])?;
        }
        Ok(vec![conv.out_channels, conv.out_height(), conv.out_width()])
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        step.linear(0)
    }
}

impl LinearOperator for Conv {
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
        let [in_channels, in_height, in_width] = *input else {
            return Err(format!("Conv needs [channels, height, width], got {input:?}"));
        };
        let conv = Geometry {
            in_channels,
            in_height,
            in_width,
            out_channels: *floats[&self.weight].shape.first().unwrap_or(&0),
            kernel: self.kernel,
            stride: self.stride,
            padding: self.padding,
            dilation: self.dilation,
            groups: self.groups,
        };
        check_conv(&conv)?;
        Ok(conv)
    }
}
