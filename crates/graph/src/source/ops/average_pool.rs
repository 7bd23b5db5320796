//! Average pooling.

use super::checks::{one, window};
use crate::error::{Check, Result};
use crate::ops::SumPool;
use crate::ops::Window;
use crate::source::floats::Floats;
use crate::source::lowering::{Lowering, UnscaledLowering};
use crate::source::operator::SourceOperator;
use crate::source::scaling::around_zero;
use crate::source::values::{Values, all_saturated};
use crate::tensor::{Format, Tensor};
use serde::{Deserialize, Serialize};

/// What integers cannot compute, and what to do instead.
const VARIES: &str = "averages over fewer elements at the border";
const INSTEAD: &str = "set count_include_pad=1 or remove the padding";

/// The mean of each window of `[channels, height, width]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AveragePool {
    /// Size of the kernel in rows and columns.
    pub kernel: [usize; 2],
    /// Distance of neighbouring windows in rows and columns.
    pub stride: [usize; 2],
    /// Padding at the top, left, bottom and right, in rows and columns.
    pub padding: [usize; 4],
    /// Whether padded positions count in the divisor.
    pub count_include_pad: bool,
}

impl SourceOperator for AveragePool {
    fn kind(&self) -> &'static str {
        "AveragePool"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let window = self.window(one(inputs)?)?;
        Ok(vec![window.channels, window.out_height(), window.out_width()])
    }

    fn ratio(&self) -> Option<f64> {
        Some(1.0 / (self.kernel[0] * self.kernel[1]) as f64)
    }

    fn is_saturated(&self, values: &dyn Values) -> bool {
        all_saturated(values)
    }

    fn derived_range(&self, values: &dyn Values) -> Result<Option<(f64, f64)>> {
        Ok(Some(around_zero(values.range(0)?)))
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let (window, format) = match self.sum_of(step.input(0)?) {
            Ok(found) => found,
            Err(why) => return Err(step.defect(&why)),
        };
        if self.varies() {
            return Err(step.refuse(VARIES, INSTEAD));
        }
        step.write(Box::new(SumPool(window)), format.scale, format.signed)
    }

    fn lower_unscaled(&self, step: &mut dyn UnscaledLowering) -> Result<()> {
        let (window, format) = match self.sum_of(step.input()) {
            Ok(found) => found,
            Err(why) => return Err(step.defect(&why)),
        };
        if self.varies() {
            return Err(step.refuse(VARIES, INSTEAD));
        }
        step.write(Box::new(SumPool(window)), format.scale, format.signed)
    }
}

impl AveragePool {
    /// The windows on an input of that shape.
    pub(crate) fn window(&self, input: &[usize]) -> Check<Window> {
        window(input, self.kernel, self.stride, self.padding)
    }

    /// Whether windows at the border average over fewer elements.
    fn varies(&self) -> bool {
        !self.count_include_pad && self.padding.iter().any(|pad| *pad != 0)
    }

    /// The windows on a tensor, and the format in which their sums are averages.
    fn sum_of(&self, input: &Tensor) -> Check<(Window, Format)> {
        let window = self.window(&input.shape)?;
        let scale = input.format.scale / window.size() as f64;
        Ok((window, Format { scale, ..input.format }))
    }
}
