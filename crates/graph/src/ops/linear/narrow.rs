//! Convolutions of 16 bit integers whose sums fit 32 bits: the same sums as in
//! [`super::wide`], several times faster.
//!
//! Channels come last here, so that what a kernel covers is a few long pieces of the
//! image. They are copied to one patch per position, and a sum is the product of
//! a patch with the weights of an output channel.

use crate::ops::geometry::Conv;
use crate::tensor::NodeWeights;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Products summed at a time, with one instruction for every eight of them; patches
/// are padded with zeros to a multiple.
pub(in crate::ops) const LANES: usize = 32;
/// Positions whose patches meet the weights while these are in the cache.
const TILE: usize = 16;

/// Weights `[out_channels, patch]`, a patch being `[kernel rows, reach, group channels]`
/// with zeros up to its length.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Narrow {
    weights: Vec<i16>,
    patch: usize,
    /// The largest sum of magnitudes over the weights of one output channel.
    largest: i64,
}

impl Narrow {
    /// Nothing when a weight has more than 16 bits.
    pub(super) fn new(conv: &Conv, weights: &NodeWeights) -> Option<Self> {
        let (channels, [rows, columns]) = (conv.group_channels(), conv.kernel);
        let patch = (rows * run(conv)).next_multiple_of(LANES);
        // Erased when a weight does not fit, too.
        let mut narrow = Zeroizing::new(vec![0; conv.out_channels * patch]);
        let mut largest = 0;
        let kernels = weights.weight.chunks_exact(conv.taps());
        for (kernel, narrow) in kernels.zip(narrow.chunks_exact_mut(patch)) {
            largest = kernel.iter().map(|w| i64::from(*w).abs()).sum::<i64>().max(largest);
            for (tap, weight) in kernel.iter().enumerate() {
                let (row, x) = (tap / columns, tap % columns);
                let (channel, y) = (row / rows, row % rows);
                let at = y * run(conv) + x * conv.dilation[1] * channels + channel;
                narrow[at] = i16::try_from(*weight).ok()?;
            }
        }
        Some(Self { weights: std::mem::take(&mut *narrow), patch, largest })
    }

    /// `W*x`, `[out_channels, out_height, out_width]`; nothing when an input has more
    /// than 16 bits or a sum might have more than 32.
    pub(super) fn convolve(&self, conv: &Conv, x: &[i64]) -> Option<Vec<i64>> {
        let peak = x.iter().map(|v| v.unsigned_abs()).fold(0, u64::max);
        let peak = i16::try_from(peak).ok()?;
        if self.largest * i64::from(peak) > i64::from(i32::MAX) {
            return None;
        }
        let plane = conv.out_height() * conv.out_width();
        let group = conv.out_channels / conv.groups;
        let images = x.chunks_exact(conv.group_channels() * conv.in_height * conv.in_width);
        let kernels = self.weights.chunks_exact(group * self.patch);
        let mut sums = vec![0; conv.out_channels * plane];
        let outputs = sums.chunks_exact_mut(group * plane);
        for ((image, kernels), sums) in images.zip(kernels).zip(outputs) {
            self.correlate(&Image::new(conv, image), kernels, sums);
        }
        Some(sums)
    }

    /// One group's output channels `[channels, out_height * out_width]`.
    fn correlate(&self, image: &Image<'_>, kernels: &[i16], sums: &mut [i64]) {
        let plane = image.conv.out_height() * image.conv.out_width();
        let mut patches = vec![0; TILE.min(plane) * self.patch];
        for first in (0..plane).step_by(TILE) {
            let tile = first..plane.min(first + TILE);
            for (position, patch) in tile.clone().zip(patches.chunks_exact_mut(self.patch)) {
                image.copy(position, patch);
            }
            let channels = kernels.chunks_exact(self.patch).zip(sums.chunks_exact_mut(plane));
            for (kernel, sums) in channels {
                let patches = patches.chunks_exact(self.patch);
                for (sum, patch) in sums[tile.clone()].iter_mut().zip(patches) {
                    *sum = i64::from(dot(kernel, patch));
                }
            }
        }
    }
}

/// Length of what one row of a kernel covers in an image with the channels last.
fn run(conv: &Conv) -> usize {
    ((conv.kernel[1] - 1) * conv.dilation[1] + 1) * conv.group_channels()
}

/// Both of a length that is a multiple of [`LANES`].
pub(in crate::ops) fn dot(kernel: &[i16], patch: &[i16]) -> i32 {
    let (kernel, patch) = (kernel.as_chunks::<LANES>().0, patch.as_chunks::<LANES>().0);
    let product = |(w, x): (&i16, &i16)| i32::from(*w) * i32::from(*x);
    let sum = |w: &[i16; LANES], x: &[i16; LANES]| w.iter().zip(x).map(product).sum::<i32>();
    kernel.iter().zip(patch).map(|(w, x)| sum(w, x)).sum()
}

/// The channels of one group, last, within their padding.
struct Image<'a> {
    conv: &'a Conv,
    pixels: Vec<i16>,
    /// Length of a row.
    row: usize,
}

impl<'a> Image<'a> {
    /// From `[group channels, height, width]` of 16 bits.
    fn new(conv: &'a Conv, image: &[i64]) -> Self {
        let ([top, left, bottom, right], channels) = (conv.padding, conv.group_channels());
        let row = (left + conv.in_width + right) * channels;
        let mut pixels = vec![0; (top + conv.in_height + bottom) * row];
        for (channel, plane) in image.chunks_exact(conv.in_height * conv.in_width).enumerate() {
            for (y, values) in plane.chunks_exact(conv.in_width).enumerate() {
                let first = (top + y) * row + left * channels + channel;
                let places = pixels[first..].iter_mut().step_by(channels);
                places.zip(values).for_each(|(pixel, value)| *pixel = *value as i16);
            }
        }
        Self { conv, pixels, row }
    }

    /// What the kernel covers at an output position.
    fn copy(&self, position: usize, patch: &mut [i16]) {
        let (conv, width) = (self.conv, self.conv.out_width());
        let (y, x) = (position / width * conv.stride[0], position % width * conv.stride[1]);
        for (row, piece) in patch.chunks_exact_mut(run(conv)).take(conv.kernel[0]).enumerate() {
            let first = (y + row * conv.dilation[0]) * self.row + x * conv.group_channels();
            piece.copy_from_slice(&self.pixels[first..][..piece.len()]);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ops::linear::wide;
    use proptest::prelude::*;

    /// Convolutions of every kind, the groups dividing both channel counts.
    fn convs() -> impl Strategy<Value = Conv> {
        let shape = (1usize..4, 1usize..6, 1usize..6, 1usize..8, 1usize..8);
        let pairs = [(); 3].map(|()| [1usize..4, 1usize..4]);
        (shape, pairs, [0usize..3, 0usize..3, 0usize..3, 0usize..3]).prop_filter_map(
            "a kernel larger than the image, or padding than the kernel",
            |((groups, inputs, outputs, in_height, in_width), pairs, padding)| {
                let [kernel, stride, dilation] = pairs;
                let reach = |axis: usize| (kernel[axis] - 1) * dilation[axis] + 1;
                let fits = |axis: usize, side: usize| {
                    let pads = [padding[axis], padding[axis + 2]];
                    pads.iter().all(|pad| *pad < reach(axis))
                        && reach(axis) <= side + pads[0] + pads[1]
                };
                let fits = fits(0, in_height) && fits(1, in_width);
                fits.then_some(Conv {
                    in_channels: groups * inputs,
                    in_height,
                    in_width,
                    out_channels: groups * outputs,
                    kernel,
                    stride,
                    padding,
                    dilation,
                    groups,
                })
            },
        )
    }

    /// Integers in `-limit..=limit`, its ends among them.
    fn values(seed: u64, count: usize, limit: i64) -> Vec<i64> {
        let step = |i: usize| (seed | 1).wrapping_mul(i as u64 + 1).rotate_left(29) ^ seed;
        let value = |v: u64| (v % (2 * limit as u64 + 1)) as i64 - limit;
        let ends = |i: usize| [limit, -limit].get(i).copied();
        (0..count).map(|i| ends(i).unwrap_or_else(|| value(step(i)))).collect()
    }

    fn node(conv: &Conv, seed: u64, limit: i64) -> NodeWeights {
        let count = conv.out_channels * conv.taps();
        let weight = values(seed, count, limit).into_iter().map(|w| w as i32).collect();
        NodeWeights { weight, bias: vec![0; conv.out_channels] }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn equals_the_wide_path(
            conv in convs(),
            seed: u64,
            weight_bits in 1u32..15,
            input_bits in 1u32..15,
        ) {
            let weights = node(&conv, seed, 1 << weight_bits);
            let count = conv.in_channels * conv.in_height * conv.in_width;
            let x = values(!seed, count, 1 << input_bits);
            let narrow = Narrow::new(&conv, &weights).unwrap().convolve(&conv, &x);
            if weight_bits + input_bits < 22 {
                prop_assert!(narrow.is_some());
            }
            if let Some(sums) = narrow {
                prop_assert_eq!(sums, wide::convolve(&conv, &weights, &x));
            }
        }
    }

    #[test]
    fn sums_up_to_the_bound_and_none_beyond() {
        let conv = Conv {
            in_channels: 3,
            in_height: 1,
            in_width: 1,
            out_channels: 1,
            kernel: [1, 1],
            stride: [1, 1],
            padding: [0; 4],
            dilation: [1, 1],
            groups: 1,
        };
        let narrow = |weight: Vec<i32>| Narrow::new(&conv, &NodeWeights { weight, bias: vec![0] });
        let largest = i32::from(i16::MAX);
        // 32767 * (32767 + 32767 + 4) < 2^31 <= 32767 * (32767 + 32767 + 5)
        let below = narrow(vec![largest, -largest, 4]).unwrap();
        let top = i64::from(i16::MAX);
        assert_eq!(below.convolve(&conv, &[top, -top, top]), Some(vec![top * (2 * top + 4)]));
        assert_eq!(below.convolve(&conv, &[top + 1, 0, 0]), None);
        assert_eq!(below.convolve(&conv, &[i64::MIN, 0, 0]), None);
        let above = narrow(vec![largest, -largest, 5]).unwrap();
        assert_eq!(above.convolve(&conv, &[top, -top, top]), None);
        assert!(narrow(vec![largest + 1, 0, 0]).is_none());
    }
}
