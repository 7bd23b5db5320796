//! Bit-matrix transposition of eight matrices at a time.
//!
//! Column `j` of all eight lies together, so that a vector holds the same column
//! of several matrices and the butterflies of Hacker's Delight, section 7-3, need
//! no shuffles between its lanes.

use ring::simd::Level;
#[cfg(target_arch = "x86_64")]
use ring::simd::Width;

use super::Eight;
use crate::block;

/// The columns of eight 128 x 128 matrices.
pub(crate) type Columns = [Eight; 128];
/// Their rows.
pub(crate) type Squares = [[u128; 128]; 8];

/// Transposes: bit `j` of `out[g][i]` becomes bit `i` of `columns[j][g]`, whose
/// content is lost.
pub(crate) fn transpose(level: Level, columns: &mut Columns, out: &mut Squares) {
    #[cfg(target_arch = "x86_64")]
    match level.width() {
        Width::Scalar => {}
        // SAFETY: the level proves the presence of AVX2.
        Width::Avx2 => return unsafe { avx2::transpose(columns, out) },
        // SAFETY: the level proves the presence of AVX-512.
        Width::Avx512 => return unsafe { avx512::transpose(columns, out) },
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = level;
    for (grain, square) in out.iter_mut().enumerate() {
        square.iter_mut().zip(&*columns).for_each(|(row, column)| *row = column[grain]);
        block::transpose(square);
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! transposition {
    ($name:ident, $features:tt, $vector:ident) => {
        mod $name {
            use super::{Columns, Squares};
            use crate::simd::vector::$vector::{self as vector, LANES, Vector};

            #[target_feature(enable = $features)]
            pub(super) fn transpose(columns: &mut Columns, out: &mut Squares) {
                for (at, squares) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                    (0..16).for_each(|offset| coarse(columns, at, offset));
                    (0..128).step_by(16).for_each(|row| fine(columns, at, row, squares));
                }
            }

            /// Squares of 64, 32 and 16, in the rows that are `offset` mod 16.
            #[target_feature(enable = $features)]
            fn coarse(columns: &mut Columns, at: usize, offset: usize) {
                let mut rows = [vector::zero(); 8];
                for i in 0..8 {
                    rows[i] = vector::load(&columns[16 * i + offset], at);
                }
                for i in 0..4 {
                    (rows[i], rows[i + 4]) = vector::swap_words(rows[i], rows[i + 4]);
                }
                swap_all::<32, 2, 8>(&mut rows);
                swap_all::<16, 1, 8>(&mut rows);
                for i in 0..8 {
                    vector::store(&mut columns[16 * i + offset], at, rows[i]);
                }
            }

            /// Squares of 8, 4, 2 and 1, in the 16 rows from `row` on.
            #[target_feature(enable = $features)]
            fn fine(columns: &Columns, at: usize, row: usize, out: &mut [[u128; 128]; LANES]) {
                let mut rows = [vector::zero(); 16];
                for i in 0..16 {
                    rows[i] = vector::load(&columns[row + i], at);
                }
                swap_all::<8, 8, 16>(&mut rows);
                swap_all::<4, 4, 16>(&mut rows);
                swap_all::<2, 2, 16>(&mut rows);
                swap_all::<1, 1, 16>(&mut rows);
                for i in 0..16 {
                    vector::scatter(rows[i], out, row + i);
                }
            }

            /// Swaps the quarters of every pair of rows that are `STRIDE` apart. All
            /// numbers are constants, so that the rows stay in registers.
            #[inline]
            #[target_feature(enable = $features)]
            fn swap_all<const HALF: u32, const STRIDE: usize, const ROWS: usize>(
                rows: &mut [Vector; ROWS],
            ) {
                for pair in 0..ROWS / 2 {
                    let i = pair / STRIDE * 2 * STRIDE + pair % STRIDE;
                    (rows[i], rows[i + STRIDE]) = vector::swap::<HALF>(rows[i], rows[i + STRIDE]);
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
transposition!(avx2, "avx2", ymm);
#[cfg(target_arch = "x86_64")]
transposition!(avx512, "avx512f,avx512vl", ymm);

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;

    #[test]
    fn every_level_moves_every_bit() {
        let mut rng = Random::seeded(1);
        for level in Level::available() {
            let mut columns = [[0; 8]; 128];
            columns.iter_mut().flatten().for_each(|block| *block = rng.block());
            let (before, mut out) = (columns, [[0; 128]; 8]);
            transpose(level, &mut columns, &mut out);
            for (g, square) in out.iter().enumerate() {
                for (i, row) in square.iter().enumerate() {
                    let right = (0..128).all(|j| (row >> j) & 1 == (before[j][g] >> i) & 1);
                    assert!(right, "{level:?}, row {i} of {g}");
                }
            }
        }
    }
}
