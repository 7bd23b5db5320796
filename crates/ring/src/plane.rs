//! Bit planes: one bit of every value of a list, packed 64 to a word, and back.
//! Constant time in the values.

use crate::simd::{Level, plane};

/// One in each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;
/// Brings bit 0 of byte `i` to bit `56 + i`.
const COLLECT: u64 = 0x0102_0408_1020_4080;
/// Bit `i` of byte `i`.
const DIAGONAL: u64 = 0x8040_2010_0804_0201;

/// Bit `bit` (0 to 7) of each byte of `bytes`, packed 64 to a word, the first in
/// bit 0; appended to `out`, the last word padded with zeros.
pub fn gather(bytes: &[u8], bit: u32, out: &mut Vec<u64>) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(64), 0);
    let (whole, tail) = bytes.as_chunks();
    let (words, last) = out[start..].split_at_mut(whole.len());
    plane::gather(Level::best(), whole, bit, words);
    if let Some(word) = last.first_mut() {
        let mut padded = [0; 64];
        padded[..tail.len()].copy_from_slice(tail);
        *word = collect(&padded, bit);
    }
}

/// The inverse of [`gather`]: adds `1 << bit` to `bytes[i]` where bit `i` of
/// `plane` is set. That bit of every byte is 0 before; `bytes` has at most 64
/// entries for each word of `plane`, and bytes beyond are left alone.
pub fn scatter(plane: &[u64], bit: u32, bytes: &mut [u8]) {
    debug_assert!(bytes.len() <= 64 * plane.len());
    let (whole, tail) = bytes.as_chunks_mut();
    let (words, last) = plane.split_at(whole.len().min(plane.len()));
    plane::scatter(Level::best(), words, bit, whole);
    if let (Some(word), false) = (last.first(), tail.is_empty()) {
        let mut padded = [0; 64];
        spread(&mut padded, *word, bit);
        tail.iter_mut().zip(padded).for_each(|(byte, one)| *byte |= one);
    }
}

/// Bit `bit` (0 to 63) of each word of `words`, packed as in [`gather`].
pub fn gather_words(words: &[u64], bit: u32, out: &mut Vec<u64>) {
    let start = out.len();
    out.resize(start + words.len().div_ceil(64), 0);
    let (whole, tail) = words.as_chunks();
    let (planes, last) = out[start..].split_at_mut(whole.len());
    plane::gather_words(Level::best(), whole, bit, planes);
    if let Some(plane) = last.first_mut() {
        *plane = collect_words(tail, bit);
    }
}

/// The inverse of [`gather_words`]: `words[i] |= 1 << bit` where bit `i` of `plane`
/// is set. `words` has at most 64 entries for each word of `plane`, and words
/// beyond are left alone.
pub fn scatter_words(plane: &[u64], bit: u32, words: &mut [u64]) {
    debug_assert!(words.len() <= 64 * plane.len());
    let (whole, tail) = words.as_chunks_mut();
    let (planes, last) = plane.split_at(whole.len().min(plane.len()));
    plane::scatter_words(Level::best(), planes, bit, whole);
    if let Some(plane) = last.first() {
        spread_words(tail, *plane, bit);
    }
}

/// Bit `bit` of 64 bytes.
#[inline(always)]
pub(crate) fn collect(chunk: &[u8; 64], bit: u32) -> u64 {
    let eights = chunk.as_chunks::<8>().0.iter();
    let bits = eights.map(|eight| {
        let ones = (u64::from_le_bytes(*eight) >> bit) & ONES;
        ones.wrapping_mul(COLLECT) >> 56
    });
    (0u32..).zip(bits).fold(0, |plane, (i, bits)| plane | (bits << (8 * i)))
}

/// The inverse of [`collect`], added to `chunk`.
#[inline(always)]
pub(crate) fn spread(chunk: &mut [u8; 64], plane: u64, bit: u32) {
    for (eight, bits) in chunk.as_chunks_mut::<8>().0.iter_mut().zip(plane.to_le_bytes()) {
        let ones = spread_byte(bits) << bit;
        *eight = (u64::from_le_bytes(*eight) | ones).to_le_bytes();
    }
}

/// Bit `i` of `bits` as the value 0 or 1 of byte `i`.
const fn spread_byte(bits: u8) -> u64 {
    let kept = (bits as u64 * ONES) & DIAGONAL;
    // A byte that is not 0 is a power of two: 0x7f more reaches its top bit.
    ((kept + 0x7f * ONES) >> 7) & ONES
}

/// Bit `bit` of up to 64 words.
#[inline(always)]
pub(crate) fn collect_words(chunk: &[u64], bit: u32) -> u64 {
    (0u32..).zip(chunk).fold(0, |plane, (i, word)| plane | (((word >> bit) & 1) << i))
}

/// The inverse of [`collect_words`], added to `chunk`.
#[inline(always)]
pub(crate) fn spread_words(chunk: &mut [u64], plane: u64, bit: u32) {
    for (i, word) in (0u32..).zip(chunk) {
        *word |= ((plane >> i) & 1) << bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    /// The plane whose bit `i` is `bit_of(i)`.
    fn naive(count: usize, bit_of: impl Fn(usize) -> u64) -> Vec<u64> {
        let mut plane = vec![0; count.div_ceil(64)];
        (0..count).for_each(|i| plane[i / 64] |= bit_of(i) << (i % 64));
        plane
    }

    #[test]
    fn bytes_of_every_length_go_to_planes_and_back() {
        let mut rng = Random::seeded(1);
        for count in 0..300 {
            let bytes: Vec<u8> = (0..count).map(|_| rng.word() as u8).collect();
            let mut back = vec![0; count];
            for bit in 0..8 {
                let mut plane = vec![7];
                gather(&bytes, bit, &mut plane);
                assert_eq!(plane.remove(0), 7);
                assert_eq!(plane, naive(count, |i| u64::from(bytes[i] >> bit) & 1));
                scatter(&plane, bit, &mut back);
            }
            assert_eq!(back, bytes);
        }
    }

    #[test]
    fn words_of_every_length_go_to_planes_and_back() {
        let mut rng = Random::seeded(2);
        for count in 0..300 {
            let words: Vec<u64> = (0..count).map(|_| rng.word()).collect();
            let mut back = vec![0; count];
            for bit in 0..64 {
                let mut plane = vec![7];
                gather_words(&words, bit, &mut plane);
                assert_eq!(plane.remove(0), 7);
                assert_eq!(plane, naive(count, |i| (words[i] >> bit) & 1));
                scatter_words(&plane, bit, &mut back);
            }
            assert_eq!(back, words);
        }
    }
}
