//! Vectors of bits, 64 to a word: the lanes of every boolean protocol.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::plane;
use crate::wipe::wipe_all;
use crate::word::{mask, spread};

/// `len()` bits. Bits beyond the length are zero. Prints only its length.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)], len }
    }

    /// The first `len` bits of `words`, lowest bit first; missing words are zero.
    pub fn new(mut words: Vec<u64>, len: usize) -> Self {
        words.resize(len.div_ceil(64), 0);
        let mut bits = Self { words, len };
        bits.trim();
        bits
    }

    /// Bit `index` of each word.
    pub fn of_words(words: &[u64], index: u32) -> Self {
        let mut out = Vec::with_capacity(words.len().div_ceil(64));
        plane::gather_words(words, index, &mut out);
        Self { words: out, len: words.len() }
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bits, 64 to a word.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Bit `index` as 0 or 1; 0 beyond the end.
    pub fn get(&self, index: usize) -> u64 {
        self.words.get(index / 64).map_or(0, |word| (word >> (index % 64)) & 1)
    }

    /// The bits, as 0 or 1.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.len).map(|index| self.get(index))
    }

    /// All ones where a bit is 1, zero where it is 0.
    pub fn masks(&self) -> impl Iterator<Item = u64> + '_ {
        self.iter().map(spread)
    }

    /// Each bit as a word.
    pub fn to_words(&self) -> Vec<u64> {
        let mut words = vec![0; self.len];
        plane::scatter_words(&self.words, 0, &mut words);
        words
    }

    /// Adds `other`, bit by bit. Lengths are equal.
    pub fn xor(&mut self, other: &Self) {
        debug_assert_eq!(self.len, other.len);
        self.words.iter_mut().zip(&other.words).for_each(|(to, from)| *to ^= from);
    }

    /// The product with `other`, bit by bit. Lengths are equal.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        debug_assert_eq!(self.len, other.len);
        let words = self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect();
        Self { words, len: self.len }
    }

    /// Adds `a & b`. Lengths are equal.
    pub fn xor_and(&mut self, a: &Self, b: &Self) {
        debug_assert!(self.len == a.len && self.len == b.len);
        let factors = a.words.iter().zip(&b.words);
        self.words.iter_mut().zip(factors).for_each(|(to, (a, b))| *to ^= a & b);
    }

    /// Swaps the bits of `self` and `other` where `at` is 1.
    pub fn swap_where(&mut self, other: &mut Self, at: &Self) {
        let pairs = self.words.iter_mut().zip(&mut other.words).zip(&at.words);
        for ((a, b), at) in pairs {
            let difference = (*a ^ *b) & at;
            *a ^= difference;
            *b ^= difference;
        }
    }

    /// Every bit flipped.
    #[must_use]
    pub fn not(&self) -> Self {
        let mut flipped =
            Self { words: self.words.iter().map(|word| !word).collect(), len: self.len };
        flipped.trim();
        flipped
    }

    /// Every bit times `bit` (0 or 1).
    #[must_use]
    pub fn scaled(&self, bit: u64) -> Self {
        let words = self.words.iter().map(|word| word & spread(bit)).collect();
        Self { words, len: self.len }
    }

    /// Appends `other`.
    pub fn extend(&mut self, other: &Self) {
        let held = self.len % 64;
        if held == 0 {
            self.words.extend_from_slice(&other.words);
        } else {
            for word in &other.words {
                if let Some(last) = self.words.last_mut() {
                    *last |= word << held;
                }
                self.words.push(word >> (64 - held));
            }
        }
        self.len += other.len;
        self.words.truncate(self.len.div_ceil(64));
    }

    fn trim(&mut self) {
        if !self.len.is_multiple_of(64)
            && let Some(last) = self.words.last_mut()
        {
            *last &= mask((self.len % 64) as u32);
        }
    }
}

impl FromIterator<u64> for Bits {
    /// From the lowest bit of each item.
    fn from_iter<I: IntoIterator<Item = u64>>(items: I) -> Self {
        let words: Vec<u64> = items.into_iter().collect();
        Self::of_words(&words, 0)
    }
}

impl Zeroize for Bits {
    fn zeroize(&mut self) {
        wipe_all(&mut self.words);
        self.len = 0;
    }
}

impl Drop for Bits {
    fn drop(&mut self) {
        wipe_all(&mut self.words);
    }
}

impl ZeroizeOnDrop for Bits {}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bits(<{} hidden>)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_operation_works_bit_by_bit(
            pairs in prop::collection::vec((0u64..2, 0u64..2, 0u64..2), 0..200), more: Vec<bool>
        ) {
            let a: Bits = pairs.iter().map(|p| p.0).collect();
            let b: Bits = pairs.iter().map(|p| p.1).collect();
            let c: Bits = pairs.iter().map(|p| p.2).collect();
            let each = |f: &dyn Fn(u64, u64, u64) -> u64| -> Vec<u64> {
                pairs.iter().map(|p| f(p.0, p.1, p.2)).collect()
            };
            prop_assert_eq!(a.to_words(), each(&|a, _, _| a));
            prop_assert_eq!(a.not().to_words(), each(&|a, _, _| a ^ 1));
            prop_assert_eq!(a.and(&b).to_words(), each(&|a, b, _| a & b));
            let mut sum = a.clone();
            sum.xor_and(&b, &c);
            prop_assert_eq!(sum.to_words(), each(&|a, b, c| a ^ (b & c)));
            let (mut x, mut y) = (a.clone(), b.clone());
            x.swap_where(&mut y, &c);
            prop_assert_eq!(x.to_words(), each(&|a, b, c| if c == 1 { b } else { a }));
            prop_assert_eq!(y.to_words(), each(&|a, b, c| if c == 1 { a } else { b }));
            let more: Bits = more.iter().map(|b| u64::from(*b)).collect();
            let mut both = a.not();
            both.extend(&more);
            let wanted: Vec<u64> = a.not().iter().chain(more.iter()).collect();
            prop_assert_eq!(both.to_words(), wanted);
            prop_assert_eq!(Bits::new(both.words().to_vec(), both.len()), both);
        }
    }
}
