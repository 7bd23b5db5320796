//! What both parties know of a layer, and how long its transforms are.

use graph::Conv;
use wire::{Error, Result};

/// Slots of the largest ring, so the most values of a transform.
pub(in crate::linear) const MOST_SLOTS: usize = 32768;

/// A prime that is 1 mod this and mod a power of two has transforms of all [`lengths`](length).
pub(in crate::linear) const DIVISOR: u64 = 45;

/// Shapes of a layer: all that the client's side is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Channels, rows and columns of the input.
    pub input: [usize; 3],
    /// Channels, rows and columns of the output.
    pub output: [usize; 3],
    /// Rows and columns from one output to the next.
    pub stride: [usize; 2],
    /// Rows and columns of the transform.
    pub lengths: [usize; 2],
}

impl Shape {
    /// Makes the shape of `conv`. Output `(y, x)` lies at `(y*stride, x*stride)` of the cyclic
    /// convolution, whose sides have room for the input, for the outputs, and for the padding of
    /// one end: what is read beyond the other end comes around to the same zeros.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a convolution without outputs, groups that do not divide its
    /// channels, or images that no ring holds.
    pub fn new(conv: &Conv) -> Result<Self> {
        let divides = |channels: usize| {
            channels > 0 && conv.groups > 0 && channels.is_multiple_of(conv.groups)
        };
        if !divides(conv.in_channels) || !divides(conv.out_channels) {
            return Err(Error::misuse("a convolution whose groups do not divide its channels"));
        }
        let input = [conv.in_channels, conv.in_height, conv.in_width];
        let output = [conv.out_channels, conv.out_height(), conv.out_width()];
        let [top, left, bottom, right] = conv.padding;
        let side = |axis: usize, pad: usize| {
            let last = output[axis + 1].checked_sub(1)?.checked_mul(conv.stride[axis])?;
            let needed = input[axis + 1].checked_add(pad)?.max(last.checked_add(1)?);
            (input[axis + 1] > 0).then_some(needed).and_then(length)
        };
        let lengths = side(0, top.max(bottom)).zip(side(1, left.max(right)));
        let fits = lengths.filter(|(rows, columns)| rows * columns <= MOST_SLOTS);
        let (rows, columns) = fits.ok_or_else(|| refusal(conv))?;
        Ok(Self { input, output, stride: conv.stride, lengths: [rows, columns] })
    }

    /// Returns the number of slots that the transform of a channel takes.
    pub fn block(&self) -> usize {
        self.lengths[0] * self.lengths[1]
    }

    /// Returns the number of values of the input.
    pub fn inputs(&self) -> usize {
        self.input.iter().product()
    }

    /// Returns the number of values of the output.
    pub fn outputs(&self) -> usize {
        self.output.iter().product()
    }
}

/// The smallest `2^a * 3^b * 5^c` from `side` on with b at most 2 and c at most 1, if it is not
/// above [`MOST_SLOTS`].
fn length(side: usize) -> Option<usize> {
    let odd = [1usize, 3, 5, 9, 15, 45];
    let lengths = odd.iter().flat_map(|odd| (0..=MOST_SLOTS.ilog2()).map(move |a| odd << a));
    lengths.filter(|length| (side..=MOST_SLOTS).contains(length)).min()
}

fn refusal(conv: &Conv) -> Error {
    Error::misuse(format!(
        "a convolution of {}x{} pixels with padding {:?} to {}x{} has no transform of at most \
         {MOST_SLOTS} values; use a smaller image, or suite `auto`, which cuts images into tiles",
        conv.in_height,
        conv.in_width,
        conv.padding,
        conv.out_height(),
        conv.out_width()
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::linear::coefficient::tests::conv;

    #[test]
    fn lengths_are_the_next_smooth_ones() {
        for (side, want) in
            [(1, 1), (7, 8), (11, 12), (17, 18), (25, 30), (28, 30), (33, 36), (81, 90), (227, 240)]
        {
            assert_eq!(length(side), Some(want));
        }
        assert_eq!(length(MOST_SLOTS), Some(MOST_SLOTS));
        assert_eq!(length(MOST_SLOTS + 1), None);
    }

    #[test]
    fn padding_of_one_end_has_room() {
        for (side, kernel, stride, pad, want) in [
            (28, 5, 1, 0, 30),
            (16, 3, 1, 1, 18),
            (32, 3, 1, 1, 36),
            (5, 5, 1, 0, 5),
            (4, 1, 1, 2, 8),
            (4, 1, 3, 3, 10),
        ] {
            let shape = Shape::new(&conv([1, 1], [side; 2], kernel, stride, pad)).unwrap();
            assert_eq!(shape.lengths, [want; 2], "{side} {kernel} {stride} {pad}");
        }
        assert_eq!(Shape::new(&Conv::fully_connected(7, 3)).unwrap().block(), 1);
    }
}
