//! A convolution along one axis as a convolution of phases, and the windows that
//! tiles show of it.
//!
//! Position `i` of phase q is position `i*split + q*dilation` of the padded input.
//! With `split` = 1 there is one phase, the input itself, and outputs lie `stride`
//! apart. With `split` = stride (the polyphase form) outputs are neighbours; with
//! `g = gcd(dilation, stride)` tap k of the kernel becomes tap `t` of phase q,
//! `k = t*(stride/g) + q`, and taps lie `dilation/g` apart, since
//! `out*stride + k*dilation = (out + t*dilation/g)*stride + q*dilation`.

use graph::Conv;

/// One axis of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    /// Distance of neighbouring positions of a phase in the input.
    pub(super) split: usize,
    /// Phases that the kernel touches.
    pub(super) phases: usize,
    /// Taps of each phase, some of which a kernel may not have.
    pub(super) taps: usize,
    /// Distance of neighbouring outputs in a phase.
    pub(super) step: usize,
    /// Distance of neighbouring taps in a phase.
    spread: usize,
    /// Taps of the kernel from one tap of a phase to the next.
    every: usize,
    kernel: usize,
    dilation: usize,
    padding: usize,
    side: usize,
    outputs: usize,
}

impl Axis {
    /// Both axes of `conv`: as they are, or in polyphase form. A kernel of one
    /// position always lets both parties drop what the stride skips.
    pub(super) fn both(conv: &Conv, polyphase: bool) -> [Self; 2] {
        let sides = [conv.in_height, conv.in_width];
        let outputs = [conv.out_height(), conv.out_width()];
        [0, 1].map(|axis| {
            let (kernel, stride) = (conv.kernel[axis], conv.stride[axis]);
            let dilation = conv.dilation[axis];
            let split = if polyphase || kernel == 1 { stride } else { 1 };
            let common = gcd(dilation, split);
            let every = split / common;
            Self {
                split,
                phases: kernel.min(every),
                taps: kernel.div_ceil(every),
                step: stride / split,
                spread: dilation / common,
                every,
                kernel,
                dilation,
                padding: conv.padding[axis],
                side: sides[axis],
                outputs: outputs[axis],
            }
        })
    }

    /// Positions of a phase that its taps cover.
    fn reach(&self) -> usize {
        (self.taps - 1) * self.spread + 1
    }

    /// Positions of a phase that `outputs` outputs in a row see.
    fn window(&self, outputs: usize) -> usize {
        (outputs - 1) * self.step + self.reach()
    }

    /// How far before the last tap of its phase tap `t` lies, seen from tap 0.
    pub(super) fn offset(&self, t: usize) -> usize {
        t * self.spread
    }

    /// The tap of the kernel that is tap `t` of `phase`.
    pub(super) fn tap(&self, phase: usize, t: usize) -> Option<usize> {
        Some(t * self.every + phase).filter(|tap| *tap < self.kernel)
    }

    /// The position of the unpadded input that position `at` of a window of `phase`
    /// shows, whose first output is `first`.
    pub(super) fn source(&self, first: usize, phase: usize, at: usize) -> Option<usize> {
        let padded = (first * self.step + at) * self.split + phase * self.dilation;
        padded.checked_sub(self.padding).filter(|source| *source < self.side)
    }

    /// First and last position of a window of `size` that some phase of some tile of
    /// `outputs` outputs may fill, as far as the padding alone tells.
    fn filled(&self, outputs: usize, size: usize) -> (usize, usize) {
        if outputs < self.outputs {
            return (0, size - 1);
        }
        let ahead = self.padding.saturating_sub((self.phases - 1) * self.dilation);
        let last = (self.padding + self.side).saturating_sub(1) / self.split;
        (ahead.div_ceil(self.split).min(size), last.min(size - 1))
    }
}

/// Channels of one group, each in all its phases.
pub(super) fn planes(conv: &Conv, axes: &[Axis; 2]) -> usize {
    conv.group_channels() * axes[0].phases * axes[1].phases
}

/// The window of a phase that one tile shows, row after row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Rows and columns of the output that one tile yields.
    pub(super) outputs: [usize; 2],
    /// Rows and columns of the window.
    pub(super) sides: [usize; 2],
    /// Distance of two rows: the padding at the end of one may be that at the
    /// beginning of the next.
    pub(super) row: usize,
    /// Images whose windows lie next to each other, b.
    pub(super) images: usize,
    /// Distance T' of the windows of two images, which may share padding too.
    pub(super) each: usize,
    /// Distance T = b*T' of two planes in a polynomial.
    pub(super) area: usize,
    /// Positions from the first to the last of all images' windows.
    pub(super) span: usize,
    /// Positions that the taps cover.
    pub(super) reach: usize,
}

impl Window {
    /// The window of tiles of `outputs`, if it spans at most `degree` positions.
    ///
    /// A row may begin before the one above it ends where all that overlaps is
    /// padding of both; so may a window.
    pub(super) fn new(axes: &[Axis; 2], outputs: [usize; 2], degree: usize) -> Option<Self> {
        let sides = [0, 1].map(|i| axes[i].window(outputs[i]));
        if sides.iter().any(|side| *side > degree) {
            return None;
        }
        let [rows, columns] = [0, 1].map(|i| axes[i].filled(outputs[i], sides[i]));
        let [down, right] = [axes[0].reach(), axes[1].reach()];
        // Taps keep powers of their own, outputs coefficients of their own.
        let apart = right.max(sides[1] - right + 1);
        let row = apart.max(columns.1 + 1).max(sides[1] - columns.0);
        let span = (sides[0] - 1) * row + sides[1];
        let (first, last) = (rows.0 * row + columns.0, rows.1 * row + columns.1);
        let reach = (down - 1) * row + right;
        let apart = reach.max(span - reach + 1);
        let area = apart.max(last + 1).max(span.saturating_sub(first));
        let window = Self { outputs, sides, row, images: 1, each: area, area, span, reach };
        (span <= degree).then_some(window)
    }

    /// This window of one image for `images` of them, if they span at most `degree`
    /// positions.
    pub(super) fn beside(self, images: usize, degree: usize) -> Option<Self> {
        let span = self.each.checked_mul(images - 1)?.checked_add(self.span)?;
        let area = self.each * images;
        (span <= degree).then_some(Self { images, area, span, ..self })
    }

    /// How many planes a polynomial of `degree` holds, the last one up to its span.
    pub(super) fn slots(&self, degree: usize) -> usize {
        (degree - self.span) / self.area + 1
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
