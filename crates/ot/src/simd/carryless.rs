//! Products in GF(2^128) on the vectors of WebAssembly, which has no carryless multiplication.
//!
//! A product of polynomials is made of integer products of numbers that have every fourth bit only: at most 15 ones meet in a
//! bit, so that carries stay in the three bits after it (as in [`super::products`]). One instruction multiplies eight pairs of
//! limbs of 16 bits and adds neighbours up; neighbours here are the same limb of two factors, of which the sum is wanted anyway.
//! Karatsuba's rule, twice, goes down to parts of two limbs. Only logic, shifts by constants and products: no address and no
//! branch depends on a factor.

use std::arch::wasm32::{
    i16x8_shuffle, i32x4_dot_i16x8, i32x4_shl, i32x4_shuffle, i64x2_shuffle, u16x8_shr,
    u16x8_splat, u32x4_extract_lane, u32x4_splat, u64x2_splat, v128, v128_and, v128_xor,
};

use super::sums::wide::load;
use super::{EIGHT, Eight};

/// Every fourth bit of a limb starts a number of its own.
const CLASSES: usize = 4;
/// Sums of two such starts.
const STARTS: usize = 2 * CLASSES - 1;
/// Pairs of factors in a vector.
const TOGETHER: usize = 2;
/// Vectors of limbs of all pairs.
const VECTORS: usize = EIGHT / TOGETHER;
/// What of a vector's factors is multiplied: both halves, their sum, sums in both halves, and in the sum.
const KINDS: usize = 5;

/// A vector of limbs by the starts of its numbers.
type Split = [v128; CLASSES];
/// Vectors of the same limbs of factors on the left and on the right.
type Factors = [[Split; 2]; VECTORS];

/// The parts of `sum_i (left[i] + weights[0][i]) * (right[i] + weights[1][i])` without reduction: those at 1, X^64 and X^128.
pub(super) fn parts(weights: &[Eight; 2], [left, right]: &[Eight; 2]) -> [u128; 3] {
    let mut factors = [[[[u64x2_splat(0); CLASSES]; 2]; VECTORS]; KINDS];
    for at in 0..VECTORS {
        let sides = [(left, &weights[0]), (right, &weights[1])];
        for (side, (blocks, weights)) in sides.into_iter().enumerate() {
            let factor = |i: usize| v128_xor(load(&blocks[i]), load(&weights[i]));
            let kinds = kinds(factor(TOGETHER * at), factor(TOGETHER * at + 1));
            for (factors, vector) in factors.iter_mut().zip(kinds) {
                factors[at][side] = split(vector);
            }
        }
    }
    let [low, high, sum, halves, inner] = factors.each_ref().map(products);
    let low = half([low[0], halves[0], low[1]]);
    let high = half([high[0], halves[1], high[1]]);
    let sum = half([sum[0], inner[0], sum[1]]);
    [low, sum ^ low ^ high, high]
}

/// Limbs of two factors, the same limb of both side by side: [`KINDS`].
#[inline(always)]
fn kinds(a: v128, b: v128) -> [v128; KINDS] {
    let low = i16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(a, b);
    let high = i16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(a, b);
    let sum = v128_xor(low, high);
    let halves = i64x2_shuffle::<0, 2>(fold(low), fold(high));
    let inner = i64x2_shuffle::<0, 2>(fold(sum), u64x2_splat(0));
    [low, high, sum, halves, inner]
}

/// The sum of the first two limbs and the last two, in both places.
#[inline(always)]
fn fold(limbs: v128) -> v128 {
    v128_xor(limbs, i32x4_shuffle::<2, 3, 0, 1>(limbs, limbs))
}

#[inline(always)]
fn split(limbs: v128) -> Split {
    let every_fourth = u16x8_splat(0x1111);
    [limbs, u16x8_shr(limbs, 1), u16x8_shr(limbs, 2), u16x8_shr(limbs, 3)]
        .map(|x| v128_and(x, every_fourth))
}

/// The sums of products of the first parts of two limbs, and of the second ones.
#[inline(always)]
fn products(factors: &Factors) -> [u64; 2] {
    let straight = added(factors, |x| x);
    let crossed = added(factors, |x| i32x4_shuffle::<1, 0, 3, 2>(x, x));
    let crossed = v128_xor(crossed, i32x4_shuffle::<1, 0, 3, 2>(crossed, crossed));
    let part = |outer: [u32; 2], inner: u32| {
        u64::from(outer[0]) ^ u64::from(inner) << 16 ^ u64::from(outer[1]) << 32
    };
    let first = [u32x4_extract_lane::<0>(straight), u32x4_extract_lane::<1>(straight)];
    let second = [u32x4_extract_lane::<2>(straight), u32x4_extract_lane::<3>(straight)];
    [part(first, u32x4_extract_lane::<0>(crossed)), part(second, u32x4_extract_lane::<2>(crossed))]
}

/// The sums of products of limbs, those of the second factors moved.
#[inline(always)]
fn added(factors: &Factors, moved: impl Fn(v128) -> v128) -> v128 {
    let mut sums = [u64x2_splat(0); STARTS];
    for [left, right] in factors {
        let right = right.map(&moved);
        for (i, left) in left.iter().enumerate() {
            for (j, right) in right.iter().enumerate() {
                sums[i + j] = v128_xor(sums[i + j], i32x4_dot_i16x8(*left, *right));
            }
        }
    }
    let every_fourth = u32x4_splat(0x0111_1111);
    (0u32..).zip(sums).fold(u64x2_splat(0), |all, (start, sum)| {
        v128_xor(all, i32x4_shl(v128_and(sum, every_fourth), start))
    })
}

/// The product of two halves out of those of their quarters: the low ones', that of the sums, and the high ones'.
fn half([low, sum, high]: [u64; 3]) -> u128 {
    u128::from(low) ^ u128::from(sum ^ low ^ high) << 32 ^ u128::from(high) << 64
}
