//! Rows of Ferret's code times its table: sums of blocks at public places of a table that no near cache holds.

use super::places::EACH;
use crate::cot::ferret::params::TAPS;
use ring::simd::Level;
#[cfg(target_arch = "x86_64")]
use ring::simd::Width;

/// Rows that are summed at a time.
pub(crate) const ROWS: usize = 256;
/// Rows before a row that the convolution reaches back to.
pub(crate) const PAST: usize = TAPS[TAPS.len() - 1];
/// Words of key stream for a row, an AES block.
pub(crate) const WORDS: usize = 2;
/// Places in the table of the rows of a group: the first, second and third of each word of key stream.
pub(crate) type Places = [[u32; WORDS * ROWS]; EACH];
/// The last rows of the group before, and those of a group.
pub(crate) type Rows = [u128; PAST + ROWS];
/// A block of the table, low byte first.
pub(crate) type Block = [u8; 16];

/// Rows whose blocks are asked for before they are added up. Twelve to forty do as well.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 16;

/// Makes the rows of a group behind the [`PAST`] ones before them: each is the sum of the rows that are [`TAPS`] before it and
/// of the blocks of `table` at its places. `next` are the places of the group that comes after.
///
/// # Panics
/// Where a place is not in the table.
pub(crate) fn rows(level: Level, places: &Places, next: &Places, table: &[Block], rows: &mut Rows) {
    #[cfg(target_arch = "x86_64")]
    if level.width() != Width::Scalar {
        // SAFETY: the level proves the presence of AVX2.
        return unsafe { wide::rows(places, next, table, rows) };
    }
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    if level != Level::SCALAR {
        return wide::rows(places, table, rows);
    }
    let _ = (level, next);
    portable(places, table, rows);
}

fn portable(places: &Places, table: &[Block], rows: &mut Rows) {
    for i in 0..ROWS {
        let mut sum = TAPS.iter().fold(0, |sum, tap| sum ^ rows[PAST + i - tap]);
        for place in of_row(places, i) {
            sum ^= u128::from_le_bytes(table[place]);
        }
        rows[PAST + i] = sum;
    }
}

/// The places of row `i`.
#[inline(always)]
fn of_row(places: &Places, i: usize) -> [usize; WORDS * EACH] {
    std::array::from_fn(|at| places[at / WORDS][WORDS * i + at % WORDS] as usize)
}

/// One block in a vector instead of two halves, and blocks on their way while others are added up.
#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{AHEAD, Block, PAST, Places, ROWS, Rows, TAPS, of_row};
    use std::arch::x86_64::{
        __m128i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_storeu_si128, _mm_xor_si128,
    };
    use std::ptr::{from_mut, from_ref};

    #[target_feature(enable = "avx2")]
    pub(super) fn rows(places: &Places, next: &Places, table: &[Block], rows: &mut Rows) {
        for i in 0..ROWS - AHEAD {
            ask(places, i + AHEAD, table);
            row(places, i, table, rows);
        }
        for i in ROWS - AHEAD..ROWS {
            ask(next, i + AHEAD - ROWS, table);
            row(places, i, table, rows);
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn row(places: &Places, i: usize, table: &[Block], rows: &mut Rows) {
        let [a, b, c, d] = TAPS.map(|tap| load(&rows[PAST + i - tap]));
        let mut sum = _mm_xor_si128(_mm_xor_si128(a, b), _mm_xor_si128(c, d));
        for place in of_row(places, i) {
            sum = _mm_xor_si128(sum, load(&table[place]));
        }
        // SAFETY: a row is as long as a vector; the store needs no alignment.
        unsafe { _mm_storeu_si128(from_mut(&mut rows[PAST + i]).cast(), sum) };
    }

    /// Asks for the blocks of row `i`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn ask(places: &Places, i: usize, table: &[Block]) {
        for place in of_row(places, i) {
            _mm_prefetch::<_MM_HINT_T0>(table.as_ptr().wrapping_add(place).cast());
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load<T>(block: &T) -> __m128i {
        const { assert!(size_of::<T>() == 16) };
        // SAFETY: a block is as long as a vector; the load needs no alignment.
        unsafe { _mm_loadu_si128(from_ref(block).cast()) }
    }
}

/// One block in a vector instead of two halves.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(super) mod wide {
    use super::{Block, PAST, Places, ROWS, Rows, TAPS, of_row};
    use std::arch::wasm32::{v128, v128_load, v128_store, v128_xor};

    pub(super) fn rows(places: &Places, table: &[Block], rows: &mut Rows) {
        for i in 0..ROWS {
            let [a, b, c, d] = TAPS.map(|tap| load(&rows[PAST + i - tap]));
            let mut sum = v128_xor(v128_xor(a, b), v128_xor(c, d));
            for place in of_row(places, i) {
                sum = v128_xor(sum, load(&table[place]));
            }
            store(&mut rows[PAST + i], sum);
        }
    }
    #[inline]
    pub(in crate::simd) fn load<T>(block: &T) -> v128 {
        const { assert!(size_of::<T>() == 16) };
        // SAFETY: a block is as long as a vector; the load needs no alignment.
        unsafe { v128_load(std::ptr::from_ref(block).cast()) }
    }

    #[inline]
    pub(in crate::simd) fn store(block: &mut u128, value: v128) {
        // SAFETY: a block is as long as a vector; the store needs no alignment.
        unsafe { v128_store(std::ptr::from_mut(block).cast(), value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;

    #[test]
    fn all_levels_agree() {
        let mut rng = Random::seeded(1);
        let table: Vec<Block> = (0..1000).map(|_| rng.block().to_ne_bytes()).collect();
        let mut lists = || -> Places {
            std::array::from_fn(|_| std::array::from_fn(|_| rng.block() as u32 % 1000))
        };
        let (places, next) = (lists(), lists());
        let before: Rows = std::array::from_fn(|_| rng.block());
        let mut expected = before;
        portable(&places, &table, &mut expected);
        assert_eq!(expected[..PAST], before[..PAST]);
        for level in Level::available() {
            let mut found = before;
            rows(level, &places, &next, &table, &mut found);
            assert!(found == expected, "{level:?}");
        }
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn places_outside_of_the_table_are_refused() {
        let mut places = [[0; WORDS * ROWS]; EACH];
        places[EACH - 1][WORDS * ROWS - 1] = 7;
        rows(Level::best(), &places, &places, &[[0; 16]; 7], &mut [0; PAST + ROWS]);
    }
}
