//! Geometry of convolutions, pools and views.

use serde::{Deserialize, Serialize};

/// Geometry of a grouped 2-D convolution; a fully connected layer is a 1x1
/// kernel on a 1x1 image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conv {
    /// Channels of the input.
    pub in_channels: usize,
    /// Rows of the input, without padding.
    pub in_height: usize,
    /// Columns of the input, without padding.
    pub in_width: usize,
    /// Channels of the output.
    pub out_channels: usize,
    /// Rows and columns of the kernel.
    pub kernel: [usize; 2],
    /// Rows and columns between two positions of the kernel.
    pub stride: [usize; 2],
    /// Zeros added at top, left, bottom, right.
    pub padding: [usize; 4],
    /// Rows and columns between two taps of the kernel; 1 is dense.
    pub dilation: [usize; 2],
    /// Number of independent groups of channels.
    pub groups: usize,
}

impl Conv {
    /// A matrix product of `inputs` values into `outputs` values.
    pub fn fully_connected(inputs: usize, outputs: usize) -> Self {
        Self {
            in_channels: inputs,
            in_height: 1,
            in_width: 1,
            out_channels: outputs,
            kernel: [1, 1],
            stride: [1, 1],
            padding: [0; 4],
            dilation: [1, 1],
            groups: 1,
        }
    }

    /// Rows of the output; 0 when the kernel does not fit.
    pub fn out_height(&self) -> usize {
        let [top, _, bottom, _] = self.padding;
        positions(self.in_height, [top, bottom], self.kernel[0], self.dilation[0], self.stride[0])
    }

    /// Columns of the output; 0 when the kernel does not fit.
    pub fn out_width(&self) -> usize {
        let [_, left, _, right] = self.padding;
        positions(self.in_width, [left, right], self.kernel[1], self.dilation[1], self.stride[1])
    }

    /// Whether this is a matrix product: 1x1 kernel on a 1x1 image, no padding, one group.
    pub fn is_fully_connected(&self) -> bool {
        *self == Self::fully_connected(self.in_channels, self.out_channels)
    }

    /// Input channels that one output channel sees; 0 when `groups` is 0.
    pub fn group_channels(&self) -> usize {
        self.in_channels.checked_div(self.groups).unwrap_or(0)
    }
}

/// Geometry of a pooling window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Channels of input and output.
    pub channels: usize,
    /// Rows of the input, without padding.
    pub height: usize,
    /// Columns of the input, without padding.
    pub width: usize,
    /// Rows and columns of the window.
    pub kernel: [usize; 2],
    /// Rows and columns between two windows.
    pub stride: [usize; 2],
    /// Positions added at top, left, bottom, right.
    pub padding: [usize; 4],
}

impl Window {
    /// Rows of the output; 0 when the window does not fit.
    pub fn out_height(&self) -> usize {
        let [top, _, bottom, _] = self.padding;
        positions(self.height, [top, bottom], self.kernel[0], 1, self.stride[0])
    }

    /// Columns of the output; 0 when the window does not fit.
    pub fn out_width(&self) -> usize {
        let [_, left, _, right] = self.padding;
        positions(self.width, [left, right], self.kernel[1], 1, self.stride[1])
    }

    /// Number of positions under one window, padding included.
    pub fn size(&self) -> usize {
        self.kernel[0].saturating_mul(self.kernel[1])
    }
}

/// Slices, transpositions and what is made of them: position `[i, j, ..]` of the output
/// shows element `start + i*strides[0] + j*strides[1] + ..` of the input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct View {
    /// The first element.
    pub start: usize,
    /// Elements of the input from one position of the output to the next, by axis.
    pub strides: Vec<usize>,
}

/// Positions of a kernel along one axis, 0 when it does not fit. Never panics.
fn positions(side: usize, pad: [usize; 2], kernel: usize, dilation: usize, stride: usize) -> usize {
    let count = || {
        let padded = side.checked_add(pad[0])?.checked_add(pad[1])?;
        let reach = kernel.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
        padded.checked_sub(reach)?.checked_div(stride)?.checked_add(1)
    };
    count().unwrap_or(0)
}
