//! Sums of products of secret columns with public weights in GF(2^128), on the vectors of WebAssembly.
//!
//! Multiples of a column's blocks are looked up by four bits of a weight, which both parties know; no address and no branch depends on
//! a column. Sums for the lower and the upper four bits of the bytes of weights stay apart, so that all moves but the last are
//! by whole bytes.

use std::arch::wasm32::{
    i8x16_shuffle, i64x2_shl, i64x2_shr, i64x2_shuffle, u64x2, u64x2_splat, v128, v128_and,
    v128_xor,
};

use super::sums::wide::{load, store};
use super::{EIGHT, Eight};

/// Bits of a weight that are taken at a time.
const DIGIT: u32 = 4;
/// Multiples of a block by all that such bits may be.
const MULTIPLES: usize = 1 << DIGIT;
/// Bytes of a weight.
const BYTES: usize = 16;

/// The multiples of the blocks of a column.
pub(super) type Tables = [[u128; MULTIPLES]; EIGHT];
/// Two halves of a product without reduction.
type Wide = [v128; 2];

/// Weights as places in [`Tables`]: of each byte the lower and the upper four bits.
pub(super) struct Digits([[[usize; EIGHT]; 2]; BYTES]);

impl Digits {
    /// The digits of public weights.
    pub(super) fn of(weights: &Eight) -> Self {
        let bytes = weights.map(u128::to_le_bytes);
        let digit = |byte: usize, upper: u32| {
            bytes.map(|weight| usize::from(weight[byte] >> (DIGIT * upper)) % MULTIPLES)
        };
        Self(std::array::from_fn(|byte| [digit(byte, 0), digit(byte, 1)]))
    }

    /// The sum of products of the weights with the blocks of `column`, without reduction: the halves at 1 and X^128. Multiples
    /// are left in `tables`.
    pub(super) fn products(&self, column: &Eight, tables: &mut Tables) -> [u128; 2] {
        tables.iter_mut().zip(column).for_each(|(table, block)| multiples(block, table));
        let mut sums: [Wide; 2] = [[u64x2_splat(0); 2]; 2];
        for digits in self.0.iter().rev() {
            for (sum, digits) in sums.iter_mut().zip(digits) {
                let chosen = tables.iter().zip(digits).map(|(table, at)| load(&table[*at]));
                let [low, high] = byte_up(*sum);
                *sum = [chosen.fold(low, |sum, block| v128_xor(sum, block)), high];
            }
        }
        let [[low, high], upper] = sums.map(|sum| sum.map(block));
        [low ^ upper[0] << DIGIT, high ^ upper[1] << DIGIT ^ upper[0] >> (u128::BITS - DIGIT)]
    }
}

/// See [`crate::block::multiples`].
#[inline(always)]
fn multiples(first: &u128, out: &mut [u128; MULTIPLES]) {
    let (mut power, mut all) = (load(first), [u64x2_splat(0); MULTIPLES]);
    for digit in 0..DIGIT {
        let done = 1 << digit;
        for at in 0..done {
            all[done + at] = v128_xor(all[at], power);
        }
        power = times_x(power);
    }
    out.iter_mut().zip(all).for_each(|(out, multiple)| store(out, multiple));
}

/// See [`crate::block::times_x`].
#[inline(always)]
fn times_x(block: v128) -> v128 {
    let signs = i64x2_shr(block, 63);
    let carries = v128_and(i64x2_shuffle::<1, 0>(signs, signs), u64x2(0x87, 1));
    v128_xor(i64x2_shl(block, 1), carries)
}

/// A wide sum times X^8.
#[inline(always)]
fn byte_up([low, high]: Wide) -> Wide {
    let up = |below, block| {
        i8x16_shuffle::<15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30>(
            below, block,
        )
    };
    [up(u64x2_splat(0), low), up(low, high)]
}

#[inline(always)]
fn block(vector: v128) -> u128 {
    let mut block = 0;
    store(&mut block, vector);
    block
}
