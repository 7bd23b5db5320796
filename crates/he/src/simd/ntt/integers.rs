//! Sums of products by multipliers of 52-bit integers (AVX-512 IFMA): the two halves of a product are added to sums of
//! halves, and only these are reduced. A product takes three instructions, one by fused multiply-add takes seven.

use std::arch::x86_64::*;

use super::super::modulus::Modulus;
use super::many::{BLOCK, Factors, LEAST_SIZE, each};
use super::{Factor, Transform};

/// Numbers in a vector, and vectors in a block.
const LANES: usize = 8;

/// Most products whose halves are added before they are reduced. Factors are lifted to below 1.5 p, so that the upper
/// half of a product is below 2^49.2: sixteen stay below 2^53.2, and of the lower halves below 2^56.
const MOST: usize = 16;

/// Bits of the lower half of a product.
const HALF: u32 = 52;

/// Bits that are kept of a sum of upper halves; it has two or three more.
const KEPT: u32 = 51;

/// 2^52, from which on a number's mantissa is the integer.
const UNIT: f64 = (1u64 << HALF) as f64;

/// Whether this machine has the instructions.
pub(super) fn are_there() -> bool {
    is_x86_feature_detected!("avx512ifma")
}

/// Adds products to sums as [`Transform::add_products`] does.
///
/// # Safety
/// The features; lengths as there.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub(super) unsafe fn add(
    transform: &Transform,
    sums: &mut [f64],
    Factors { count, values, repeated, size }: Factors<'_>,
) {
    const { assert!(BLOCK == LANES * LANES && LEAST_SIZE == LANES) };
    let prime = transform.prime as u64;
    let [upper, beyond] = [HALF, HALF + KEPT].map(|bits| {
        let power = (1u128 << bits) % u128::from(prime);
        Factor::new(power as u64, prime)
    });
    let each = each(size);
    let lanes: [i64; LANES] = std::array::from_fn(|lane| (lane * LANES / size) as i64);
    // SAFETY: the caller's promise: the instructions are there, and every address is within its slice, since of the
    // second factors only as many values are read as a block has.
    unsafe {
        let modulus = Modulus::<__m512d>::new(transform.prime);
        let [lift, quotient, upper, beyond] =
            [UNIT + transform.prime, upper.quotient, upper.value, beyond.value]
                .map(|x| _mm512_set1_pd(x));
        let [half, kept] = [HALF, KEPT].map(|bits| _mm512_set1_epi64((1i64 << bits) - 1));
        let (there, lanes) =
            (((1u16 << each) - 1) as u8, _mm512_loadu_si512(lanes.as_ptr().cast()));
        let (blocks, sums) = (sums.len() / BLOCK, sums.as_mut_ptr());
        for block in 0..blocks {
            let mut first = 0;
            while first < count {
                let end = count.min(first + MOST);
                let mut low = [_mm512_setzero_si512(); LANES];
                let mut high = [_mm512_setzero_si512(); LANES];
                for at in block * count + first..block * count + end {
                    let b = _mm512_maskz_loadu_pd(there, repeated.as_ptr().add(at * each));
                    let b = _mm512_permutexvar_pd(lanes, b);
                    // The mantissa of the sum is the factor plus p. The instructions read no other bits.
                    let b = _mm512_castpd_si512(_mm512_add_pd(b, lift));
                    let a = values.as_ptr().add(at * BLOCK);
                    for row in 0..LANES {
                        let x = _mm512_add_pd(_mm512_loadu_pd(a.add(row * LANES)), lift);
                        let x = _mm512_castpd_si512(x);
                        low[row] = _mm512_madd52lo_epu64(low[row], x, b);
                        high[row] = _mm512_madd52hi_epu64(high[row], x, b);
                    }
                }
                for (row, (low, high)) in low.into_iter().zip(high).enumerate() {
                    let high = _mm512_add_epi64(high, _mm512_srli_epi64::<HALF>(low));
                    let low = _mm512_cvtepi64_pd(_mm512_and_si512(low, half));
                    let rest = _mm512_cvtepi64_pd(_mm512_srli_epi64::<KEPT>(high));
                    let high = _mm512_cvtepi64_pd(_mm512_and_si512(high, kept));
                    // Less than 2^52, 2^51, p and p/2, which is less than 2^53 together: exact.
                    let sum = sums.add(block * BLOCK + row * LANES);
                    let all = _mm512_fmadd_pd(rest, beyond, _mm512_loadu_pd(sum));
                    let all = _mm512_add_pd(all, modulus.times(high, upper, quotient));
                    _mm512_storeu_pd(sum, modulus.centred(_mm512_add_pd(all, low)));
                }
                first = end;
            }
        }
    }
}
