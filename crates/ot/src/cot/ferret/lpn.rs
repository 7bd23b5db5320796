//! The code: every sample adds ten pseudo-random positions of the secret.
//!
//! Rows are public and independent. Indices are 21 bits each, scaled to the length of the secret
//! and rounded at another place in each group of rows, so that every position comes equally often,
//! six of an AES block, the key stream of AES-128 in counter mode under a key that hashes session, direction and
//! refill, so that no search in the code serves two refills.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};

use super::params::WEIGHT;

/// Rows whose indices are made at a time.
pub(crate) const ROWS: usize = 256;
/// Blocks of key stream for them, a multiple of what any AES back end does at once.
const BLOCKS: usize = (ROWS * WEIGHT).div_ceil(2 * WORD).next_multiple_of(64);
/// Indices in a 64-bit word.
const WORD: usize = 3;
/// Bits of an index before the reduction to the length of the secret.
const BITS: u32 = 21;
const MASK: u32 = (1 << BITS) - 1;

type Indices = [u32; 2 * BLOCKS * WORD];

/// The code of a refill.
#[derive(Clone)]
pub(crate) struct Code {
    cipher: Aes128Enc,
}

impl Code {
    pub(crate) fn new(key: u128) -> Self {
        Self { cipher: Aes128Enc::new(&key.to_le_bytes().into()) }
    }

    /// Adds rows `first ..` of the code times `table` to `samples`. `first` is a multiple
    /// of [`ROWS`]; `table` has a block for each bit of the secret.
    pub(crate) fn add(&self, first: usize, table: &[u128], samples: &mut [u128]) {
        let mut indices = [0; 2 * BLOCKS * WORD];
        for (group, samples) in (first / ROWS..).zip(samples.chunks_mut(ROWS)) {
            self.indices(group as u64, &mut indices);
            let rounding = rounding(group, table.len());
            for (sample, row) in samples.iter_mut().zip(indices.as_chunks::<WEIGHT>().0) {
                let sum = |sum, index: &u32| sum ^ table[scaled(*index, table.len(), rounding)];
                *sample = row.iter().fold(*sample, sum);
            }
        }
    }

    /// The indices of a group of rows: the low thirds of all words, the middle ones, the
    /// high ones.
    fn indices(&self, group: u64, indices: &mut Indices) {
        let words = self.words(group);
        for (third, indices) in indices.chunks_exact_mut(2 * BLOCKS).enumerate() {
            for (index, word) in indices.iter_mut().zip(&words) {
                *index = (word >> (BITS * third as u32)) as u32 & MASK;
            }
        }
    }

    /// The key stream of a group of rows.
    fn words(&self, group: u64) -> [u64; 2 * BLOCKS] {
        let mut blocks = [[0; 16]; BLOCKS];
        for (counter, block) in (group * BLOCKS as u64..).zip(&mut blocks) {
            *block = u128::from(counter).to_le_bytes();
        }
        self.cipher.encrypt_blocks(Block::cast_slice_from_core_mut(&mut blocks));
        let mut words = [0; 2 * BLOCKS];
        for (word, bytes) in words.iter_mut().zip(blocks.as_flattened().as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        words
    }
}

/// The position in a table of `length` that an index stands for; `rounding` is below `length`.
#[inline]
const fn scaled(index: u32, length: usize, rounding: usize) -> usize {
    ((index & MASK) as usize * length + rounding) >> BITS
}

/// Where a group of rows rounds, in `0 .. length`: multiples of the golden ratio, which are spread
/// evenly, so that no position of the secret comes more often than others in all groups.
const fn rounding(group: usize, length: usize) -> usize {
    let fraction = (group as u32).wrapping_mul(0x9e37_79b9);
    (fraction as usize * length) >> 32
}

#[cfg(test)]
mod tests {
    use super::super::params::SETS;
    use super::*;
    use ring::Random;

    #[test]
    fn rows_do_not_depend_on_where_a_call_starts() {
        let mut rng = Random::seeded(1);
        let code = Code::new(rng.block());
        for set in SETS {
            let table: Vec<u128> = (0..set.secret).map(|_| rng.block()).collect();
            let mut whole = vec![0; 4 * ROWS + 5];
            code.add(ROWS, &table, &mut whole);
            let (mut first, mut second) = (vec![0; ROWS], vec![0; 3 * ROWS + 5]);
            code.add(ROWS, &table, &mut first);
            code.add(2 * ROWS, &table, &mut second);
            assert_eq!(whole, [first, second].concat());
            assert!(whole.iter().all(|sample| *sample != 0));
        }
    }

    #[test]
    fn a_row_adds_ten_positions_from_the_whole_table() {
        let code = Code::new(7);
        let mut seen = std::collections::HashSet::new();
        let mut indices = [0; 2 * BLOCKS * WORD];
        for group in 0..40 {
            code.indices(group, &mut indices);
            seen.extend(indices.map(|index| index >> (BITS - 8)));
            let mut rows = [0; ROWS];
            let table: Vec<u128> = vec![1; SETS[0].secret];
            if group < 4 {
                code.add(group as usize * ROWS, &table, &mut rows);
            }
            assert_eq!(rows, [0; ROWS]);
        }
        assert_eq!(seen.len(), 256);
        assert_ne!(indices[..10], indices[10..20]);
    }

    /// The indices of rows by their definition.
    #[test]
    fn indices_are_the_documented_ones() {
        let mut rng = Random::seeded(2);
        let code = Code::new(rng.block());
        let table: Vec<u128> = (0..SETS[0].secret).map(|_| rng.block()).collect();
        let scale = |index: u32, group: usize| {
            let golden = (group as u64 * 0x9e37_79b9) % (1 << 32);
            let rounding = golden * table.len() as u64 / (1 << 32);
            ((u64::from(index) * table.len() as u64 + rounding) / (1 << 21)) as usize
        };
        let mut rows = [0; 2 * ROWS];
        code.add(0, &table, &mut rows);
        let mut indices = [0; 2 * BLOCKS * WORD];
        for (group, rows) in rows.chunks(ROWS).enumerate() {
            code.indices(group as u64, &mut indices);
            for (row, indices) in rows.iter().zip(indices.chunks(WEIGHT)) {
                let sum = indices.iter().fold(0, |sum, i| sum ^ table[scale(*i, group)]);
                assert_eq!(*row, sum);
            }
        }
    }

    /// Of the 2^21 indices 2 or 3 stand for a position of the longest secret.
    #[test]
    fn every_position_comes_equally_often() {
        for set in SETS {
            let length = set.secret;
            let first =
                |position: usize, rounding: usize| ((position << BITS) - rounding).div_ceil(length);
            for position in [1, 2, 3, length / 2, length - 2] {
                let count = |group| {
                    let rounding = rounding(group, length);
                    let range = first(position, rounding)..first(position + 1, rounding);
                    for index in [range.start, range.end - 1] {
                        assert_eq!(scaled(index as u32, length, rounding), position);
                    }
                    range.len()
                };
                let sum: usize = (0..10_000).map(count).sum();
                let mean = (10_000_usize << BITS) / length;
                assert!(sum.abs_diff(mean) < mean / 1000, "{sum} {mean}");
            }
        }
        assert_eq!(scaled(MASK, 819_200, 819_199), 819_199);
    }
}
