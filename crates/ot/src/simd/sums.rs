//! Rows of Ferret's code times its table: sums of blocks at public places of a table that no near cache holds.

use super::places::EACH;
use ring::simd::Level;
#[cfg(target_arch = "x86_64")]
use ring::simd::Width;

/// Rows that are summed at a time.
pub(crate) const ROWS: usize = 256;
/// Words of key stream for a row, an AES block.
pub(crate) const WORDS: usize = 2;
/// Places in the table of the rows of a group: the first, second and third of each word of key stream.
pub(crate) type Places = [[u32; WORDS * ROWS]; EACH];
/// How far a row reaches back to rows before it.
pub(crate) trait Taps {
    /// Distances, ascending.
    const TAPS: [usize; 4];
}
/// A block of the table, low byte first.
pub(crate) type Block = [u8; 16];

/// Rows whose blocks are asked for before they are added up. Twelve to forty do as well.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 16;

/// Makes the last [`ROWS`] of `rows`, those before being there: each is the sum of the rows that are [`Taps`] before it and of
/// the blocks of `table` at its places. `next` are the places of the group that comes after.
///
/// # Panics
/// Where a place is not in the table, or a tap is longer than the rows before.
pub(crate) fn rows<T: Taps, const LENGTH: usize>(
    level: Level,
    [places, next]: [&Places; 2],
    table: &[Block],
    rows: &mut [u128; LENGTH],
) {
    #[cfg(target_arch = "x86_64")]
    if level.width() != Width::Scalar {
        // SAFETY: the level proves the presence of AVX2.
        return unsafe { wide::rows::<T, LENGTH>([places, next], table, rows) };
    }
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    if level != Level::SCALAR {
        return wide::rows::<T, LENGTH>(places, table, rows);
    }
    let _ = (level, next);
    portable::<T, LENGTH>(places, table, rows);
}

fn portable<T: Taps, const LENGTH: usize>(
    places: &Places,
    table: &[Block],
    rows: &mut [u128; LENGTH],
) {
    let past = LENGTH - ROWS;
    for i in 0..ROWS {
        let mut sum = T::TAPS.iter().fold(0, |sum, tap| sum ^ rows[past + i - tap]);
        for place in of_row(places, i) {
            sum ^= u128::from_le_bytes(table[place]);
        }
        rows[past + i] = sum;
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
    use super::{AHEAD, Block, Places, ROWS, Taps, of_row};
    use std::arch::x86_64::{
        __m128i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_storeu_si128, _mm_xor_si128,
    };
    use std::ptr::{from_mut, from_ref};

    #[target_feature(enable = "avx2")]
    pub(super) fn rows<T: Taps, const LENGTH: usize>(
        [places, next]: [&Places; 2],
        table: &[Block],
        rows: &mut [u128; LENGTH],
    ) {
        for i in 0..ROWS - AHEAD {
            ask(places, i + AHEAD, table);
            row::<T, LENGTH>(places, i, table, rows);
        }
        for i in ROWS - AHEAD..ROWS {
            ask(next, i + AHEAD - ROWS, table);
            row::<T, LENGTH>(places, i, table, rows);
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn row<T: Taps, const LENGTH: usize>(
        places: &Places,
        i: usize,
        table: &[Block],
        rows: &mut [u128; LENGTH],
    ) {
        let at = LENGTH - ROWS + i;
        let [a, b, c, d] = T::TAPS.map(|tap| load(&rows[at - tap]));
        let mut sum = _mm_xor_si128(_mm_xor_si128(a, b), _mm_xor_si128(c, d));
        for place in of_row(places, i) {
            sum = _mm_xor_si128(sum, load(&table[place]));
        }
        // SAFETY: a row is as long as a vector; the store needs no alignment.
        unsafe { _mm_storeu_si128(from_mut(&mut rows[at]).cast(), sum) };
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
    use super::{Block, Places, ROWS, Taps, of_row};
    use std::arch::wasm32::{v128, v128_load, v128_store, v128_xor};

    pub(super) fn rows<T: Taps, const LENGTH: usize>(
        places: &Places,
        table: &[Block],
        rows: &mut [u128; LENGTH],
    ) {
        let past = LENGTH - ROWS;
        for i in 0..ROWS {
            let [a, b, c, d] = T::TAPS.map(|tap| load(&rows[past + i - tap]));
            let mut sum = v128_xor(v128_xor(a, b), v128_xor(c, d));
            for place in of_row(places, i) {
                sum = v128_xor(sum, load(&table[place]));
            }
            store(&mut rows[past + i], sum);
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

    const PAST: usize = 11;

    enum Some {}

    impl Taps for Some {
        const TAPS: [usize; 4] = [3, 4, 9, PAST];
    }

    #[test]
    fn all_levels_agree() {
        let mut rng = Random::seeded(1);
        let table: Vec<Block> = (0..1000).map(|_| rng.block().to_ne_bytes()).collect();
        let mut lists = || -> Places {
            std::array::from_fn(|_| std::array::from_fn(|_| rng.block() as u32 % 1000))
        };
        let (places, next) = (lists(), lists());
        let before: [u128; PAST + ROWS] = std::array::from_fn(|_| rng.block());
        let mut expected = before;
        portable::<Some, _>(&places, &table, &mut expected);
        assert_eq!(expected[..PAST], before[..PAST]);
        for level in Level::available() {
            let mut found = before;
            rows::<Some, _>(level, [&places, &next], &table, &mut found);
            assert!(found == expected, "{level:?}");
        }
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn places_outside_of_the_table_are_refused() {
        let mut places = [[0; WORDS * ROWS]; EACH];
        places[EACH - 1][WORDS * ROWS - 1] = 7;
        rows::<Some, _>(Level::best(), [&places; 2], &[[0; 16]; 7], &mut [0; PAST + ROWS]);
    }
}
