//! A linear layer as a matrix whose entries are weights or zero.

use graph::Conv;

/// Rows are results, columns are elements of the input, both channel-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matrix {
    conv: Conv,
}

impl Matrix {
    pub(crate) const fn new(conv: Conv) -> Self {
        Self { conv }
    }

    pub(crate) const fn conv(&self) -> &Conv {
        &self.conv
    }

    pub(crate) const fn inputs(&self) -> usize {
        self.conv.in_channels * self.conv.in_height * self.conv.in_width
    }

    pub(crate) fn outputs(&self) -> usize {
        self.conv.out_channels * self.windows()
    }

    /// Results of one channel.
    pub(crate) fn windows(&self) -> usize {
        self.conv.out_height() * self.conv.out_width()
    }

    /// The channel of a result: where its bias is.
    pub(crate) fn channel(&self, output: usize) -> usize {
        output / self.windows().max(1)
    }

    /// The position among the weights, `[out, in / groups, rows, columns]`, of an entry;
    /// `None` where no tap of the kernel falls on the element.
    pub(crate) fn weight(&self, output: usize, input: usize) -> Option<usize> {
        let conv = &self.conv;
        let (channel, window) = (self.channel(output), output % self.windows());
        let plane = conv.in_height * conv.in_width;
        let (from, position) = (input / plane, input % plane);
        let each = conv.group_channels();
        let group = channel / (conv.out_channels / conv.groups).max(1);
        let from = from.checked_sub(group * each).filter(|from| *from < each)?;
        let width = conv.out_width();
        let y = self.tap(0, position / conv.in_width, window / width)?;
        let x = self.tap(1, position % conv.in_width, window % width)?;
        let [rows, columns] = conv.kernel;
        Some(((channel * each + from) * rows + y) * columns + x)
    }

    /// Weights of a result at most.
    pub(crate) fn taps(&self) -> usize {
        self.conv.group_channels() * self.conv.kernel[0] * self.conv.kernel[1]
    }

    /// The tap along an axis with which the window at `at` reads `position`.
    fn tap(&self, axis: usize, position: usize, at: usize) -> Option<usize> {
        let [pads, strides] = [&self.conv.padding[..2], &self.conv.stride[..]];
        let (pad, stride) = (pads.get(axis)?, strides.get(axis)?);
        let dilation = self.conv.dilation.get(axis)?;
        let reach = (position + pad).checked_sub(at * stride)?;
        let tap = reach / dilation.max(&1);
        let inside = reach % dilation.max(&1) == 0 && tap < *self.conv.kernel.get(axis)?;
        inside.then_some(tap)
    }
}
