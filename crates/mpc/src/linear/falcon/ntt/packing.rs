//! Which channels lie in which slots.
//!
//! A ciphertext has as many *blocks* as transforms of a channel fit its slots. `width` channels
//! of the input lie in it, one after another, and all of them `copies` times: each copy is
//! multiplied with the filters of another output. The last blocks may stay empty.
//!
//! ```text
//! 8 blocks, 5 channels, 2 copies        a b c a b c - -     d e - d e - - -
//! response to outputs 0 and 1           0a 0b 0c 1a 1b 1c - -
//!   plus                                0d 0e -  1d 1e -  - -
//! ```
//!
//! The client adds the blocks of each copy. More copies take more ciphertexts from the client
//! and fewer responses.

use ring::Modulus;
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::shape::Shape;
use super::transform::Transform;

/// Most ciphertexts each way in one layer: a plan from outside is priced before it is
/// accepted.
const MOST_CIPHERTEXTS: usize = 1 << 20;
/// Most products of a ciphertext and weights in one layer, for the same reason.
const MOST_PRODUCTS: usize = 1 << 22;

/// Bytes of a ciphertext from the client and of a response are about as these.
const SIZES: [usize; 2] = [3, 2];

/// Where channels lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::linear) struct Packing {
    pub(in crate::linear) shape: Shape,
    /// Returns N, the number of slots of a ciphertext.
    pub(in crate::linear) slots: usize,
    /// Channels of an input ciphertext.
    pub(in crate::linear) width: usize,
    /// How often they are in it, so outputs of a response.
    pub(in crate::linear) copies: usize,
}

impl Packing {
    /// The packing of the fewest bytes in ciphertexts of `slots` slots.
    ///
    /// # Errors
    /// [`Error::Misuse`] when no block fits, and for absurd sizes.
    pub(in crate::linear) fn new(shape: &Shape, slots: usize) -> Result<Self> {
        let (inputs, outputs) = (shape.input[0], shape.output[0]);
        let blocks = slots / shape.block();
        let with = |copies: usize| {
            let pieces = inputs.div_ceil((blocks / copies).min(inputs));
            let width = inputs.div_ceil(pieces);
            Self { shape: shape.clone(), slots, width, copies }
        };
        let all = (1..=blocks.min(outputs)).map(with);
        let best = all.min_by_key(|packing| (packing.size(), packing.products()));
        let fits = |packing: &Self| {
            packing.pieces().max(packing.responses()) <= MOST_CIPHERTEXTS
                && packing.products() <= MOST_PRODUCTS
        };
        best.filter(fits).ok_or_else(|| {
            Error::misuse(format!(
                "{inputs} channels of {} slots to {outputs} do not fit {MOST_CIPHERTEXTS} ciphertexts \
                 of {slots} slots and {MOST_PRODUCTS} products; use a smaller layer",
                shape.block()
            ))
        })
    }

    fn size(&self) -> usize {
        let [input, response] = SIZES;
        let inputs = self.pieces().saturating_mul(input);
        inputs.saturating_add(self.responses().saturating_mul(response))
    }

    /// Ciphertexts from the client.
    pub(in crate::linear) fn pieces(&self) -> usize {
        self.shape.input[0].div_ceil(self.width)
    }

    /// Ciphertexts to the client.
    pub(in crate::linear) fn responses(&self) -> usize {
        self.shape.output[0].div_ceil(self.copies)
    }

    /// Products of a ciphertext and weights.
    pub(in crate::linear) fn products(&self) -> usize {
        self.pieces().saturating_mul(self.responses())
    }

    /// Slots of one copy.
    pub(in crate::linear) fn unit(&self) -> usize {
        self.width * self.shape.block()
    }

    /// The channels of a piece: planes as large as a block, filled up with zeros.
    pub(in crate::linear) fn planes<T: Copy + Default>(&self, piece: usize, x: &[T]) -> Vec<T> {
        let [_, height, width] = self.shape.input;
        let columns = self.shape.lengths[1];
        let mut planes = vec![T::default(); self.unit()];
        let channels = x.chunks_exact(height * width).skip(piece * self.width).take(self.width);
        for (block, channel) in planes.chunks_exact_mut(self.shape.block()).zip(channels) {
            let rows = block.chunks_exact_mut(columns).zip(channel.chunks_exact(width));
            rows.for_each(|(to, from)| to[..width].copy_from_slice(from));
        }
        planes
    }

    /// The slots of a piece of channel-major values.
    pub(super) fn input_slots(
        &self,
        piece: usize,
        x: &[u64],
        transform: &Transform,
    ) -> Zeroizing<Vec<u64>> {
        let mut slots = Zeroizing::new(vec![0; self.slots]);
        let mut unit = Zeroizing::new(self.planes(piece, x));
        unit.chunks_exact_mut(self.shape.block()).for_each(|block| transform.forward(block));
        let copies = slots.chunks_exact_mut(self.unit()).take(self.copies);
        copies.for_each(|copy| copy.copy_from_slice(&unit));
        slots
    }

    /// Writes what the slots of a response say to channel-major results.
    pub(super) fn collect(
        &self,
        response: usize,
        slots: &[u64],
        transform: &Transform,
        results: &mut [u64],
    ) {
        let [_, height, width] = self.shape.output;
        let outputs = results.chunks_exact_mut(height * width).skip(response * self.copies);
        for (unit, output) in slots.chunks_exact(self.unit()).take(self.copies).zip(outputs) {
            let mut sum = sum(unit, self.shape.block(), transform.modulus());
            transform.backward(&mut sum);
            self.read(&sum, output);
        }
    }

    /// The outputs of a plane.
    pub(in crate::linear) fn read<T: Copy>(&self, plane: &[T], output: &mut [T]) {
        let [down, across] = self.shape.stride;
        let rows = plane.chunks_exact(self.shape.lengths[1]).step_by(down);
        for (row, output) in rows.zip(output.chunks_exact_mut(self.shape.output[2])) {
            let kept = row.iter().step_by(across);
            output.iter_mut().zip(kept).for_each(|(to, from)| *to = *from);
        }
    }
}

/// The sum of all blocks.
fn sum(unit: &[u64], block: usize, modulus: Modulus) -> Zeroizing<Vec<u64>> {
    let mut sum = Zeroizing::new(vec![0; block]);
    for part in unit.chunks_exact(block) {
        sum.iter_mut().zip(part).for_each(|(sum, x)| *sum = modulus.add(*sum, *x));
    }
    sum
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use graph::Conv;

    use super::*;
    use crate::linear::coefficient::tests::conv;

    fn packing(conv: &Conv, slots: usize) -> [usize; 4] {
        let packing = Packing::new(&Shape::new(conv).unwrap(), slots).unwrap();
        [packing.width, packing.copies, packing.pieces(), packing.responses()]
    }

    #[test]
    fn inputs_are_repeated_where_that_saves_bytes() {
        for (conv, want) in [
            (conv([1, 5], [28; 2], 5, 1, 0), [1, 3, 1, 2]),
            (conv([128, 128], [16; 2], 3, 1, 1), [4, 3, 32, 43]),
            (conv([12, 1], [16; 2], 3, 1, 1), [12, 1, 1, 1]),
            (conv([13, 1], [16; 2], 3, 1, 1), [7, 1, 2, 1]),
            (Conv::fully_connected(2048, 1), [2048, 1, 1, 1]),
            (Conv::fully_connected(1024, 16), [512, 8, 2, 2]),
            (Conv::fully_connected(5000, 1), [2500, 1, 2, 1]),
            (Conv::fully_connected(1, 5000), [1, 2500, 1, 2]),
        ] {
            assert_eq!(packing(&conv, 4096), want, "{conv:?}");
        }
    }
}
