//! The code: a row is six pseudo-random positions of the secret and four rows before it.
//!
//! Rows are public. A row of a sparse matrix has [`WEIGHT`] indices, all of one AES block, under a key
//! that hashes session, direction and refill, so that no search in the code serves two refills. They are 21 bits each,
//! scaled to the length of the secret and rounded at another place in each group of rows, so that every
//! position comes equally often. Row i of the code is row i of the sparse matrix plus the rows of the code that are
//! [`TAPS`] before it in the same block: a recursive convolution, which makes rows dense for the price of
//! reads in the first-level cache. It is applied to the code alone and not to the leaves, whose noise stays what it was.

use ring::simd::Level;
use zeroize::Zeroizing;

use super::params::{TAPS, WEIGHT};
use crate::block::to_words;
use crate::simd::aes::Hasher;
use crate::simd::places::{EACH, places};
use crate::simd::sums::{self, Block, Places, ROWS, Taps, WORDS};

/// Rows before a row that the convolution reaches back to.
const PAST: usize = TAPS[TAPS.len() - 1];

const _: () = assert!(WORDS * EACH == WEIGHT, "a row takes an AES block");

/// The convolution.
enum Recursion {}

impl Taps for Recursion {
    const TAPS: [usize; 4] = TAPS;
}

/// The code of a refill.
pub(crate) struct Code {
    level: Level,
    cipher: Hasher,
}

impl Code {
    pub(crate) fn new(key: u128) -> Self {
        Self::at(Level::best(), key)
    }

    fn at(level: Level, key: u128) -> Self {
        let mut cipher = Hasher::new(level);
        cipher.set([key; 8]);
        Self { level, cipher }
    }

    /// Adds rows `first ..` of the code times `table` to `samples`, in blocks of `leaves`. `first` and `leaves` are
    /// multiples of [`ROWS`], `first` one of `leaves`; `table` has a block for each bit of the secret.
    pub(crate) fn add(&self, first: usize, leaves: usize, table: &[Block], samples: &mut [u128]) {
        let (mut group, last) = (first / ROWS, (first + samples.len()).div_ceil(ROWS));
        let mut places = [[[0; WORDS * ROWS]; EACH]; 2];
        let [mut now, mut next] = places.each_mut();
        // The last rows of the group before, and those of this one.
        let mut rows = Zeroizing::new([0; PAST + ROWS]);
        self.places(group, table.len(), next);
        for block in samples.chunks_mut(leaves) {
            rows[ROWS..].fill(0);
            for samples in block.chunks_mut(ROWS) {
                std::mem::swap(&mut now, &mut next);
                group += 1;
                if group < last {
                    self.places(group, table.len(), next);
                }
                rows.copy_within(ROWS.., 0);
                sums::rows::<Recursion, _>(self.level, [now, next], table, &mut rows);
                for (sample, row) in samples.iter_mut().zip(&rows[PAST..]) {
                    *sample ^= row;
                }
            }
        }
    }

    /// The places that the rows of a group add up in a table of `length`.
    fn places(&self, group: usize, length: usize, out: &mut Places) {
        let mut blocks = [0; ROWS];
        for (counter, block) in (ROWS * group..).zip(&mut blocks) {
            *block = counter as u128;
        }
        self.cipher.hash(0, ROWS.ilog2(), &mut blocks);
        let mut words = [0; WORDS * ROWS];
        for (words, block) in words.as_chunks_mut().0.iter_mut().zip(&blocks) {
            *words = to_words(*block);
        }
        places(self.level, &words, length as u32, rounding(group, length) as u32, out);
    }
}

/// Where a group of rows rounds, in `0 .. length`: multiples of the golden ratio, which are spread
/// evenly, so that no position of the secret comes more often than others in all groups.
const fn rounding(group: usize, length: usize) -> usize {
    let fraction = (group as u32).wrapping_mul(0x9e37_79b9);
    ((fraction as u64 * length as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::super::params::SETS;
    use super::*;
    use ring::Random;

    fn blocks(rng: &mut Random, count: usize) -> Vec<Block> {
        (0..count).map(|_| rng.block().to_le_bytes()).collect()
    }

    /// Rows of the code times the table by their definition.
    fn rows(code: &Code, first: usize, leaves: usize, table: &[Block], count: usize) -> Vec<u128> {
        let mut places = [[0; WORDS * ROWS]; EACH];
        let mut rows = vec![0; count];
        for i in 0..count {
            let (group, row) = ((first + i) / ROWS, (first + i) % ROWS);
            code.places(group, table.len(), &mut places);
            for place in places.iter().flat_map(|places| &places[2 * row..2 * row + 2]) {
                rows[i] ^= u128::from_le_bytes(table[*place as usize]);
            }
            for tap in TAPS.into_iter().filter(|tap| *tap <= i % leaves) {
                rows[i] ^= rows[i - tap];
            }
        }
        rows
    }

    #[test]
    fn rows_are_the_documented_ones() {
        let mut rng = Random::seeded(2);
        let key = rng.block();
        for leaves in [512, 1024] {
            let table = blocks(&mut rng, SETS[0].secret);
            let samples: Vec<u128> = (0..2 * leaves).map(|_| rng.block()).collect();
            let expected = rows(&Code::new(key), 3 * leaves, leaves, &table, samples.len());
            for level in Level::available() {
                let mut added = samples.clone();
                Code::at(level, key).add(3 * leaves, leaves, &table, &mut added);
                // Samples are added to rows and never to one another: their noise stays where it is.
                let mut all = added.iter().zip(&samples).zip(&expected);
                assert!(all.all(|((added, sample), row)| *added == sample ^ row));
            }
        }
    }

    #[test]
    fn rows_do_not_depend_on_where_a_call_starts() {
        let mut rng = Random::seeded(1);
        let code = Code::new(rng.block());
        for set in SETS {
            let leaves = set.leaves();
            let table = blocks(&mut rng, set.secret);
            let mut whole = vec![0; 3 * leaves];
            code.add(leaves, leaves, &table, &mut whole);
            let (mut first, mut second) = (vec![0; leaves], vec![0; 2 * leaves]);
            code.add(leaves, leaves, &table, &mut first);
            code.add(2 * leaves, leaves, &table, &mut second);
            assert_eq!(whole, [first, second].concat());
            assert!(whole.iter().all(|sample| *sample != 0));
        }
    }

    /// The places are those of AES in counter mode, each index of 21 bits scaled and rounded for its group.
    #[test]
    fn places_are_the_documented_ones() {
        use aes::cipher::{BlockCipherEncrypt, KeyInit};
        let key = 7_u128;
        let cipher = aes::Aes128Enc::new(&key.to_le_bytes().into());
        for set in SETS {
            let mut places = [[0; WORDS * ROWS]; EACH];
            for group in [0, 5] {
                Code::new(key).places(group, set.secret, &mut places);
                let golden = (group as u64 * 0x9e37_79b9) % (1 << 32);
                let rounding = golden * set.secret as u64 / (1 << 32);
                for row in 0..ROWS {
                    let counter = (ROWS * group + row) as u128;
                    let mut block = counter.to_le_bytes().into();
                    cipher.encrypt_block(&mut block);
                    let stream = u128::from_le_bytes(block.into()) ^ counter;
                    for (bit, third) in [(0, 0), (21, 1), (42, 2), (64, 0), (85, 1), (106, 2)] {
                        let index = (stream >> bit) as u64 % (1 << 21);
                        let place = (index * set.secret as u64 + rounding) >> 21;
                        assert_eq!(u64::from(places[third][2 * row + bit / 64]), place);
                    }
                }
            }
        }
    }

    /// In each group of rows, 3 or 4 of the 2^21 indices stand for a position of the longest secret.
    #[test]
    fn every_position_comes_equally_often() {
        const INDICES: usize = 1 << 21;
        for length in SETS.map(|set| set.secret) {
            for position in [1, 2, 3, length / 2, length - 2] {
                let first = |position: usize, rounding: usize| {
                    (position * INDICES - rounding).div_ceil(length)
                };
                let count = |group| {
                    let rounding = rounding(group, length);
                    assert!(rounding < length);
                    first(position + 1, rounding) - first(position, rounding)
                };
                let sum: usize = (0..10_000).map(count).sum();
                let mean = (10_000 * INDICES as u64 / length as u64) as usize;
                assert!(sum.abs_diff(mean) < mean / 1000, "{sum} {mean}");
            }
        }
    }
}
