//! Convolution of words in the clear.

use graph::Conv;
use zeroize::Zeroizing;

/// Words in which sums wrap around.
trait Word: Copy + Default {
    fn of(value: u64) -> Self;
    fn add_product(self, x: Self, w: i32) -> Self;
    fn wide(self) -> u64;
}

macro_rules! word {
    ($type:ty) => {
        impl Word for $type {
            #[inline(always)]
            fn of(value: u64) -> Self {
                value as Self
            }
            #[inline(always)]
            fn add_product(self, x: Self, w: i32) -> Self {
                self.wrapping_add(x.wrapping_mul(w as Self))
            }
            #[inline(always)]
            fn wide(self) -> u64 {
                u64::from(self)
            }
        }
    };
}

word!(u32);
word!(u64);

/// The products of `weight` `[O, I/g, kh, kw]` with `x`, one or more images in
/// channel-major order, right in the low `bits` bits. Zeros are multiplied like any other
/// weight.
pub(super) fn convolve(conv: &Conv, weight: &[i32], x: &[u64], bits: u32) -> Zeroizing<Vec<u64>> {
    Zeroizing::new(if bits <= 32 {
        run::<u32>(conv, weight, x)
    } else {
        run::<u64>(conv, weight, x)
    })
}

fn run<W: Word + zeroize::Zeroize>(conv: &Conv, weight: &[i32], x: &[u64]) -> Vec<u64> {
    let conv = &one_row(conv);
    let x = Zeroizing::new(x.iter().map(|word| W::of(*word)).collect::<Vec<_>>());
    let image = conv.in_channels * conv.in_height * conv.in_width;
    let plane = conv.out_height() * conv.out_width();
    let images = x.len().checked_div(image).unwrap_or(0);
    let mut all = Vec::with_capacity(images * conv.out_channels * plane);
    x.chunks_exact(image.max(1)).for_each(|x| add_image(conv, weight, x, &mut all));
    all
}

/// Takes a convolution to one with long rows where that changes no result: a pointwise one
/// does not depend on where rows end, and a matrix product has rows of one value.
fn one_row(conv: &Conv) -> Conv {
    let mut conv = conv.clone();
    if (conv.kernel, conv.stride, conv.padding) == ([1, 1], [1, 1], [0; 4]) {
        (conv.in_height, conv.in_width) = (1, conv.in_height * conv.in_width);
    }
    conv
}

/// Appends the products with one image.
fn add_image<W: Word + zeroize::Zeroize>(conv: &Conv, weight: &[i32], x: &[W], all: &mut Vec<u64>) {
    let plane = conv.out_height() * conv.out_width();
    let area = conv.kernel[0] * conv.kernel[1];
    let (inputs, outputs) = (conv.group_channels(), conv.out_channels / conv.groups);
    let in_plane = conv.in_height * conv.in_width;
    let mut sums = Zeroizing::new(vec![W::default(); plane]);
    for (o, weight) in weight.chunks_exact(inputs * area).enumerate() {
        let first = o / outputs * inputs * in_plane;
        let x = x.get(first..first + inputs * in_plane).unwrap_or_default();
        if area == 1 && in_plane == 1 {
            let products = x.iter().zip(weight);
            let sum = products.fold(W::default(), |sum, (x, w)| sum.add_product(*x, *w));
            all.push(sum.wide());
            continue;
        }
        sums.fill(W::default());
        for (x, weight) in x.chunks_exact(in_plane).zip(weight.chunks_exact(area)) {
            for (tap, w) in weight.iter().enumerate() {
                add_tap(conv, &mut sums, x, [tap / conv.kernel[1], tap % conv.kernel[1]], *w);
            }
        }
        all.extend(sums.iter().map(|sum| sum.wide()));
    }
}

/// Adds one weight's products to all outputs of a channel.
#[inline(always)]
fn add_tap<W: Word>(conv: &Conv, sums: &mut [W], x: &[W], tap: [usize; 2], w: i32) {
    let width = conv.out_width();
    let [down, right] = conv.stride;
    let columns = inside(conv, 1, tap[1], width);
    let Some((from, to)) = columns else { return };
    for (row, sums) in sums.chunks_exact_mut(width).enumerate() {
        let source = row * down + tap[0] * conv.dilation[0];
        let Some(source) = source.checked_sub(conv.padding[0]) else { continue };
        if source >= conv.in_height {
            continue;
        }
        let start = source * conv.in_width + from * right + tap[1] * conv.dilation[1];
        let (sums, x) = (&mut sums[from..to], &x[start - conv.padding[1]..]);
        if right == 1 {
            sums.iter_mut().zip(x).for_each(|(sum, x)| *sum = sum.add_product(*x, w));
        } else {
            let x = x.iter().step_by(right);
            sums.iter_mut().zip(x).for_each(|(sum, x)| *sum = sum.add_product(*x, w));
        }
    }
}

/// The outputs along an axis for which the tap is inside the input.
fn inside(conv: &Conv, axis: usize, tap: usize, outputs: usize) -> Option<(usize, usize)> {
    let (stride, pad) = (conv.stride[axis], conv.padding[axis]);
    let side = if axis == 0 { conv.in_height } else { conv.in_width };
    let shift = tap * conv.dilation[axis];
    let first = pad.saturating_sub(shift).div_ceil(stride);
    let last = (side + pad).checked_sub(shift + 1)? / stride + 1;
    let last = last.min(outputs);
    (first < last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear::coefficient::tests::clear;
    use ring::Random;
    use ring::word::{mask, signed};

    #[test]
    fn products_are_those_of_the_definition() {
        let mut rng = Random::seeded(71);
        for (side, kernel, stride, padding, groups) in [
            ([7, 1], [1, 1], [1, 1], [0; 4], 1),
            ([1, 7], [1, 1], [1, 1], [0; 4], 2),
            ([3, 5], [1, 1], [1, 1], [0; 4], 1),
            ([3, 5], [1, 1], [2, 1], [0; 4], 1),
            ([3, 5], [1, 1], [1, 1], [0, 1, 1, 0], 2),
            ([6, 5], [3, 2], [2, 1], [1, 0, 1, 1], 2),
            ([1, 1], [1, 1], [1, 1], [0; 4], 1),
        ] {
            let conv = Conv {
                in_channels: 4,
                in_height: side[0],
                in_width: side[1],
                out_channels: 6,
                kernel,
                stride,
                padding,
                dilation: [1, 1],
                groups,
            };
            let taps = 6 * 4 / groups * kernel[0] * kernel[1];
            let weight: Vec<i32> =
                rng.uniform(taps, 8).into_iter().map(|w| signed(w, 8) as i32).collect();
            for bits in [20, 32, 33, 50] {
                let x = rng.uniform(2 * 4 * side[0] * side[1], bits);
                let values: Vec<i64> = x.iter().map(|x| signed(*x, bits)).collect();
                let each = values.chunks_exact(values.len() / 2);
                let want = each.flat_map(|x| clear(&conv, x, &weight, &[0; 6]));
                let want: Vec<u64> = want.map(|y| y as u64 & mask(bits)).collect();
                let got = convolve(&conv, &weight, &x, bits);
                let got: Vec<u64> = got.iter().map(|y| y & mask(bits)).collect();
                assert_eq!(got, want, "{conv:?} {bits}");
            }
        }
    }
}
