//! Max pooling.

use super::checks::{one, window};
use crate::error::{Check, Result};
use crate::ops;
use crate::ops::Window;
use crate::source::floats::Floats;
use crate::source::lowering::{Lowering, UnscaledLowering};
use crate::source::operator::SourceOperator;
use crate::source::values::{Values, all_saturated};
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// The largest value of each window of `[channels, height, width]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaxPool {
    /// Size of the kernel in rows and columns.
    pub kernel: [usize; 2],
    /// Distance of neighbouring windows in rows and columns.
    pub stride: [usize; 2],
    /// Padding at the top, left, bottom and right, in rows and columns.
    pub padding: [usize; 4],
}

impl SourceOperator for MaxPool {
    fn kind(&self) -> &'static str {
        "MaxPool"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let window = self.window(one(inputs)?)?;
        Ok(vec![window.channels, window.out_height(), window.out_width()])
    }

    fn keeps_integers(&self) -> bool {
        true
    }

    fn ratio(&self) -> Option<f64> {
        Some(1.0)
    }

    fn is_saturated(&self, values: &dyn Values) -> bool {
        all_saturated(values)
    }

    fn derived_range(&self, values: &dyn Values) -> Result<Option<(f64, f64)>> {
        Ok(Some(values.range(0)?))
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let Tensor { format, shape, .. } = step.input(0)?;
        let (format, window) = (*format, self.window(shape));
        let window = window.map_err(|why| step.defect(&why))?;
        step.write(Box::new(ops::MaxPool(window)), format.scale, format.signed)
    }

    fn lower_unscaled(&self, step: &mut dyn UnscaledLowering) -> Result<()> {
        let instead = "use average pooling (`tacit train square` puts it there), or suite auto";
        Err(step.refuse("is a comparison, which ciphertexts cannot be put to", instead))
    }
}

impl MaxPool {
    /// The windows on an input of that shape.
    pub(crate) fn window(&self, input: &[usize]) -> Check<Window> {
        window(input, self.kernel, self.stride, self.padding)
    }
}
