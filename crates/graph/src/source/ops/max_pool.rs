//! Max pooling.

use super::checks::{one, window};
use crate::error::Check;
use crate::ops::Window;
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Largest value of each window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaxPool {
    /// Rows and columns.
    pub kernel: [usize; 2],
    /// Rows and columns.
    pub stride: [usize; 2],
    /// Top, left, bottom, right.
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
}

impl MaxPool {
    /// The windows on an input of that shape.
    pub(crate) fn window(&self, input: &[usize]) -> Check<Window> {
        window(input, self.kernel, self.stride, self.padding)
    }
}
