//! Digits of the factors by which rows are multiplied, and the streams of their seeds.
//!
//! What they are for says [`super::rows`].

use ring::{Prg, Seed};
use zeroize::Zeroizing;

/// Separates these streams from all others; below the number of the tree.
const DOMAIN: u64 = 0x726f_7773;
/// Words of the sums of a level, two of 128 bits.
pub(super) const SUMS: usize = 4;

/// Some bits of a factor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digit {
    pub(super) shift: u32,
    pub(super) width: u32,
}

/// Seeds that one party holds, by bit of the factor and row.
pub(super) type Seeds = Zeroizing<Vec<Vec<u128>>>;

impl Digit {
    /// The digits of factors, of `width` but for the last ones: the top bit is one of its own.
    pub(super) fn all(factor_bits: u32, width: u32) -> Vec<Self> {
        let top = factor_bits.saturating_sub(1);
        let shifts = (0..top).step_by(width as usize);
        let low = shifts.map(|shift| Self { shift, width: width.min(top - shift) });
        low.chain([Self { shift: top, width: 1 }]).collect()
    }

    /// Levels whose sums are sent.
    pub(super) fn sums(self) -> usize {
        self.width as usize - 1
    }

    /// Bits that a party sends of it for a row of `cols` values.
    pub(super) fn weight(self, cols: usize, bits: u32) -> u128 {
        cols as u128 * u128::from(bits - self.shift) + 64 * (SUMS * self.sums()) as u128
    }

    /// The bits of the factor, the highest first, as levels of a tree have them.
    pub(super) fn levels(self) -> impl Iterator<Item = usize> {
        (self.shift as usize..(self.shift + self.width) as usize).rev()
    }

    /// The number of its tree for `row`: no two of a product have the same.
    pub(super) fn tree(self, row: usize) -> u32 {
        (row as u32).wrapping_mul(64).wrapping_add(self.shift)
    }

    /// Fills `stream` with that of a leaf of the tree for `row`.
    pub(super) fn fill(self, leaf: u128, row: usize, stream: &mut [u8]) {
        let domain = (u64::from(self.tree(row)) << 32) | DOMAIN;
        Prg::new(&Seed(leaf.to_le_bytes()), domain).fill(stream);
    }

    /// What `seeds` of this digit are for `row`.
    pub(super) fn of<'a>(self, seeds: &'a Seeds, row: usize) -> impl Iterator<Item = u128> + 'a {
        self.levels().filter_map(move |bit| seeds.get(bit)?.get(row).copied())
    }
}

/// Adds the values of a stream times `weight` to `sums`: words, or halves of words.
pub(super) fn add(sums: &mut [u64], stream: &[u8], weight: u64) {
    let plus = |sum: &mut u64, value: u64| *sum = sum.wrapping_add(value.wrapping_mul(weight));
    if stream.len() == 4 * sums.len() {
        let (values, _) = stream.as_chunks();
        let pairs = sums.iter_mut().zip(values);
        pairs.for_each(|(sum, value)| plus(sum, u32::from_le_bytes(*value).into()));
    } else {
        let (values, _) = stream.as_chunks();
        let pairs = sums.iter_mut().zip(values);
        pairs.for_each(|(sum, value)| plus(sum, u64::from_le_bytes(*value)));
    }
}
