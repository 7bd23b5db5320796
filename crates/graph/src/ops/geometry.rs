//! Geometry of convolutions, pools and views.

use crate::error::Check;
use serde::{Deserialize, Serialize};

/// Largest number of elements of one tensor.
pub(crate) const MAX_ELEMENTS: usize = 1 << 26;

/// Largest number of weights of one node.
const MAX_WEIGHTS: usize = 1 << 28;

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

    /// Returns the number of rows of the output; 0 when the kernel does not fit.
    pub fn out_height(&self) -> usize {
        let [top, _, bottom, _] = self.padding;
        positions(self.in_height, [top, bottom], self.kernel[0], self.dilation[0], self.stride[0])
    }

    /// Columns of the output; 0 when the kernel does not fit.
    pub fn out_width(&self) -> usize {
        let [_, left, _, right] = self.padding;
        positions(self.in_width, [left, right], self.kernel[1], self.dilation[1], self.stride[1])
    }

    /// Returns whether this is a matrix product: 1x1 kernel on a 1x1 image, no padding, one group.
    pub fn is_fully_connected(&self) -> bool {
        *self == Self::fully_connected(self.in_channels, self.out_channels)
    }

    /// Input channels that one output channel sees; 0 when `groups` is 0.
    pub fn group_channels(&self) -> usize {
        self.in_channels.checked_div(self.groups).unwrap_or(0)
    }

    /// Weights that one output channel reads; at least 1.
    pub(crate) fn taps(&self) -> usize {
        (self.group_channels() * self.kernel[0] * self.kernel[1]).max(1)
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
    /// Returns the number of rows of the output; 0 when the window does not fit.
    pub fn out_height(&self) -> usize {
        let [top, _, bottom, _] = self.padding;
        positions(self.height, [top, bottom], self.kernel[0], 1, self.stride[0])
    }

    /// Columns of the output; 0 when the window does not fit.
    pub fn out_width(&self) -> usize {
        let [_, left, _, right] = self.padding;
        positions(self.width, [left, right], self.kernel[1], 1, self.stride[1])
    }

    /// Returns the number of positions under one window, padding included.
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

/// Number of elements of `shape`: one to three positive axes, at most
/// [`MAX_ELEMENTS`] elements.
pub(crate) fn elements(shape: &[usize]) -> Check<usize> {
    let count = shape.iter().try_fold(1usize, |a, b| a.checked_mul(*b));
    match count {
        Some(count) if (1..=MAX_ELEMENTS).contains(&count) && (1..=3).contains(&shape.len()) => {
            Ok(count)
        }
        _ => Err(format!("shape {shape:?} is empty, too large or has more than three axes")),
    }
}

/// Positive, padding smaller than the kernel's reach, at least one position.
pub(crate) fn check_conv(conv: &Conv) -> Check<()> {
    let Conv { in_channels, in_height, in_width, out_channels, groups, .. } = *conv;
    let positive = [in_channels, in_height, in_width, out_channels, groups];
    check_taps(&positive, conv.kernel, conv.stride, conv.dilation, conv.padding)?;
    if in_channels % groups != 0 || out_channels % groups != 0 {
        return Err(format!("{groups} groups do not divide {in_channels} and {out_channels}"));
    }
    elements(&[in_channels, in_height, in_width])?;
    elements(&[out_channels, conv.out_height(), conv.out_width()])?;
    let taps = conv.kernel[0] * conv.kernel[1];
    let weights = taps.checked_mul(conv.group_channels()).and_then(|n| n.checked_mul(out_channels));
    let bounded = weights.is_some_and(|count| count <= MAX_WEIGHTS);
    bounded.then_some(()).ok_or("too many weights".into())
}

/// Checks a window as [`check_conv`] does; every window then holds at least one real element.
pub(crate) fn check_window(window: &Window) -> Check<()> {
    let Window { channels, height, width, .. } = *window;
    check_taps(&[channels, height, width], window.kernel, window.stride, [1, 1], window.padding)?;
    elements(&[channels, height, width])?;
    elements(&[channels, window.out_height(), window.out_width()])?;
    Ok(())
}

fn check_taps(
    sides: &[usize],
    kernel: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    [top, left, bottom, right]: [usize; 4],
) -> Check<()> {
    let taps = [kernel, stride, dilation].concat();
    if sides.iter().chain(&taps).any(|v| !(1..=MAX_ELEMENTS).contains(v)) {
        return Err("a size is zero or too large".into());
    }
    for (axis, pads) in [[top, bottom], [left, right]].into_iter().enumerate() {
        let reach = (kernel[axis] - 1).saturating_mul(dilation[axis]);
        if reach > MAX_ELEMENTS {
            return Err(format!("a kernel that reaches over {reach} positions"));
        }
        if pads.iter().any(|pad| *pad > reach) {
            return Err(format!("padding {pads:?} is not smaller than the kernel"));
        }
    }
    Ok(())
}
