//! Sums of products in GF(2^128), for universal hashes of columns.
//!
//! Bit i of a block is the coefficient of X^i, modulo X^128 + X^7 + X^2 + X + 1 as in
//! [`crate::block`].

use ring::simd::Level;
#[cfg(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128")))]
use ring::simd::Width;
use zeroize::Zeroizing;

use super::{EIGHT, Eight};
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::{carryless, weighted};
use crate::block::{multiples, of_words, times_x, to_words};

/// Bits of a weight that portable code takes at a time.
const DIGIT: u32 = 4;
/// Such parts of a weight.
const DIGITS: usize = (u128::BITS / DIGIT) as usize;

/// Adds `sum_g weights[g] * columns[j][g]` to `sums[j]`, for every column. The weights are public:
/// portable code looks multiples of the columns up by their digits.
pub(crate) fn weighted_sums(level: Level, weights: &Eight, columns: &[Eight], sums: &mut [u128]) {
    #[cfg(target_arch = "x86_64")]
    match (level.width(), level.vaes()) {
        (Width::Scalar, _) => {}
        // SAFETY: the level proves the presence of AVX2 and VPCLMULQDQ.
        (_, true) => return unsafe { wide::weighted_sums(weights, columns, sums) },
        // SAFETY: the level proves the presence of AVX2 and PCLMULQDQ.
        _ => return unsafe { narrow::weighted_sums(weights, columns, sums) },
    }
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    if level.width() == Width::Simd128 {
        let digits = weighted::Digits::of(weights);
        let mut tables = Zeroizing::new(weighted::Tables::default());
        for (sum, column) in sums.iter_mut().zip(columns) {
            let [low, high] = digits.products(column, &mut tables);
            *sum ^= reduce([low, 0, high]);
        }
        return;
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = level;
    let mut tables = Zeroizing::new([[0; 1 << DIGIT]; EIGHT]);
    let digits: [[usize; EIGHT]; DIGITS] = std::array::from_fn(|digit| {
        weights.map(|weight| (weight >> (DIGIT * digit as u32)) as usize)
    });
    for (sum, column) in sums.iter_mut().zip(columns) {
        tables.iter_mut().zip(column).for_each(|(table, block)| multiples(*block, table));
        // Horner's rule over the digits of all weights together.
        let products = digits.iter().rev().fold(0, |products, digits| {
            let shifted = (0..DIGIT).fold(products, |product, _| times_x(product));
            let chosen = tables.iter().zip(digits).map(|(table, at)| table[at % (1 << DIGIT)]);
            chosen.fold(shifted, |products, block| products ^ block)
        });
        *sum ^= products;
    }
}

/// Adds `sum_i (left[i] + weights[0][i]) * (right[i] + weights[1][i])` to `sums[j]`, for every column
/// `[left, right]`. In the portable code too no address and no branch depends on columns.
pub(crate) fn paired_sums(
    level: Level,
    weights: &[Eight; 2],
    columns: &[[Eight; 2]],
    sums: &mut [u128],
) {
    #[cfg(target_arch = "x86_64")]
    match (level.width(), level.vaes()) {
        (Width::Scalar, _) => {}
        // SAFETY: the level proves the presence of AVX2 and VPCLMULQDQ.
        (_, true) => return unsafe { wide::paired_sums(weights, columns, sums) },
        // SAFETY: the level proves the presence of AVX2 and PCLMULQDQ.
        _ => return unsafe { narrow::paired_sums(weights, columns, sums) },
    }
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    if level.width() == Width::Simd128 {
        let columns = sums.iter_mut().zip(columns);
        columns.for_each(|(sum, column)| *sum ^= reduce(carryless::parts(weights, column)));
        return;
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = level;
    for (sum, [left, right]) in sums.iter_mut().zip(columns) {
        let factors = left.iter().zip(&weights[0]).zip(right.iter().zip(&weights[1]));
        let parts = factors.fold([0; 3], |sums, ((left, a), (right, b))| {
            let parts = parts(left ^ a, right ^ b);
            std::array::from_fn(|part| sums[part] ^ parts[part])
        });
        *sum ^= reduce(parts);
    }
}

/// The parts of a product without reduction, by Karatsuba's rule: those at 1, X^64 and X^128.
fn parts(a: u128, b: u128) -> [u128; 3] {
    let ([a0, a1], [b0, b1]) = (to_words(a), to_words(b));
    let (low, high) = (carryless(a0, b0), carryless(a1, b1));
    [low, carryless(a0 ^ a1, b0 ^ b1) ^ low ^ high, high]
}

/// `low + X^64 * middle + X^128 * high` modulo the polynomial.
fn reduce([low, middle, high]: [u128; 3]) -> u128 {
    let (low, high) = (low ^ (middle << 64), high ^ (middle >> 64));
    // X^128 = X^7 + X^2 + X + 1, and what that shifts out at the top once more.
    let over = (high >> 127) ^ (high >> 126) ^ (high >> 121);
    [high, over].iter().fold(low, |sum, x| sum ^ x ^ (x << 1) ^ (x << 2) ^ (x << 7))
}

/// The product of two polynomials of degree below 64, in constant time: integer products of
/// numbers that have every fourth bit only, whose carries stay in the bits between.
fn carryless(a: u64, b: u64) -> u128 {
    let low = carryless_low(a, b);
    let high = carryless_low(a.reverse_bits(), b.reverse_bits()).reverse_bits() >> 1;
    of_words([low, high])
}

/// The lower half of [`carryless`]. Sixteen products at most meet in a bit; a sum of 16 would reach the
/// next kept bit, and it only can in a bit above the lower half.
fn carryless_low(a: u64, b: u64) -> u64 {
    const EVERY_FOURTH: u64 = 0x1111_1111_1111_1111;
    (0..4).fold(0, |all, place| {
        let products = (0..4).map(|i| {
            let j = (place + 4 - i) % 4;
            (a & (EVERY_FOURTH << i)).wrapping_mul(b & (EVERY_FOURTH << j))
        });
        all | (products.fold(0, |sum, product| sum ^ product) & (EVERY_FOURTH << place))
    })
}

/// The products of one vector width: of two factors in each lane, by Karatsuba's rule, whose
/// three parts are added up before they are put together and reduced.
#[cfg(target_arch = "x86_64")]
macro_rules! products {
    ($name:ident, $features:tt, $vector:ident, $multiply:ident, $shuffle:ident, $fold:expr) => {
        mod $name {
            use std::arch::x86_64::*;

            use crate::simd::Eight;
            use crate::simd::vector::$vector::{self as vector, LANES, Vector};

            /// Vectors of eight blocks.
            const VECTORS: usize = 8 / LANES;

            /// See [`super::weighted_sums`].
            #[target_feature(enable = $features)]
            pub(super) fn weighted_sums(weights: &Eight, columns: &[Eight], sums: &mut [u128]) {
                let mut factors = [[vector::zero(); 2]; VECTORS];
                for (at, factor) in factors.iter_mut().enumerate() {
                    let weight = vector::load(weights, at);
                    *factor = [weight, halves(weight)];
                }
                for (sum, column) in sums.iter_mut().zip(columns) {
                    let [mut low, mut middle, mut high] = [vector::zero(); 3];
                    for (at, [weight, halved]) in factors.iter().enumerate() {
                        let block = vector::load(column, at);
                        low = vector::xor(low, $multiply::<0x00>(block, *weight));
                        high = vector::xor(high, $multiply::<0x11>(block, *weight));
                        let crossed = $multiply::<0x00>(halves(block), *halved);
                        middle = vector::xor(middle, crossed);
                    }
                    middle = vector::xor(middle, vector::xor(low, high));
                    *sum ^= reduced($fold(low), $fold(middle), $fold(high));
                }
            }

            /// See [`super::paired_sums`].
            #[target_feature(enable = $features)]
            pub(super) fn paired_sums(
                weights: &[Eight; 2],
                columns: &[[Eight; 2]],
                sums: &mut [u128],
            ) {
                for (sum, [left, right]) in sums.iter_mut().zip(columns) {
                    let [mut low, mut middle, mut high] = [vector::zero(); 3];
                    for at in 0..VECTORS {
                        let weight = |side: usize| vector::load(&weights[side], at);
                        let left = vector::xor(vector::load(left, at), weight(0));
                        let right = vector::xor(vector::load(right, at), weight(1));
                        low = vector::xor(low, $multiply::<0x00>(left, right));
                        high = vector::xor(high, $multiply::<0x11>(left, right));
                        let crossed = $multiply::<0x00>(halves(left), halves(right));
                        middle = vector::xor(middle, crossed);
                    }
                    middle = vector::xor(middle, vector::xor(low, high));
                    *sum ^= reduced($fold(low), $fold(middle), $fold(high));
                }
            }

            /// The sum of both halves of each block, in both.
            #[inline]
            #[target_feature(enable = $features)]
            fn halves(block: Vector) -> Vector {
                vector::xor(block, $shuffle::<0x4e>(block))
            }

            /// `low + X^64 * middle + X^128 * high` modulo the polynomial.
            #[inline]
            #[target_feature(enable = $features)]
            fn reduced(low: __m128i, middle: __m128i, high: __m128i) -> u128 {
                let tail = _mm_set_epi64x(0, 0x87);
                let low = _mm_xor_si128(low, _mm_bslli_si128::<8>(middle));
                let high = _mm_xor_si128(high, _mm_bsrli_si128::<8>(middle));
                let first = _mm_clmulepi64_si128::<0x00>(high, tail);
                let second = _mm_clmulepi64_si128::<0x01>(high, tail);
                // What the second product has above X^128 comes back once more.
                let third = _mm_clmulepi64_si128::<0x01>(second, tail);
                let sum = _mm_xor_si128(low, _mm_bslli_si128::<8>(second));
                let sum = _mm_xor_si128(sum, _mm_xor_si128(first, third));
                let [lower, upper] = [_mm_cvtsi128_si64(sum), _mm_extract_epi64::<1>(sum)];
                u128::from(lower as u64) | u128::from(upper as u64) << 64
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
products!(narrow, "avx2,aes,pclmulqdq", xmm, _mm_clmulepi64_si128, _mm_shuffle_epi32, |x| x);
#[cfg(target_arch = "x86_64")]
products!(
    wide,
    "avx2,pclmulqdq,vpclmulqdq",
    ymm,
    _mm256_clmulepi64_epi128,
    _mm256_shuffle_epi32,
    |x| _mm_xor_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x))
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::combine;
    use ring::Random;

    /// A product by the schoolbook: `sum_i X^i * (bit i of a) * b`.
    fn product(a: u128, b: u128) -> u128 {
        let rows: Vec<u128> = (0..128).map(|i| b & ((a >> i) & 1).wrapping_neg()).collect();
        combine(&rows)
    }

    #[test]
    fn every_level_adds_the_products_of_pairs_up() {
        let mut rng = Random::seeded(2);
        for round in 0..40 {
            let mut pair = || [(); 2].map(|()| std::array::from_fn(|_| rng.block()));
            let mut weights: [Eight; 2] = pair();
            let mut columns: Vec<[Eight; 2]> = (0..5).map(|_| pair()).collect();
            match round {
                0 => weights = [[0; 8]; 2],
                1 => (weights, columns) = ([[0; 8]; 2], vec![[[u128::MAX; 8]; 2]; 5]),
                2 => (weights, columns) = ([[0; 8], [1; 8]], vec![[[1 << 127; 8]; 2]; 5]),
                _ => {}
            }
            let before: Vec<u128> = (0..5).map(|i| i << 100 | i).collect();
            let wanted = columns.iter().zip(&before).map(|([left, right], before)| {
                (0..8).fold(*before, |sum, i| {
                    sum ^ product(left[i] ^ weights[0][i], right[i] ^ weights[1][i])
                })
            });
            let wanted: Vec<u128> = wanted.collect();
            for level in Level::available() {
                let mut sums = before.clone();
                paired_sums(level, &weights, &columns, &mut sums);
                assert_eq!(sums, wanted, "{level:?}, round {round}");
            }
        }
    }

    #[test]
    fn every_level_adds_the_products_up() {
        let mut rng = Random::seeded(1);
        for round in 0..40 {
            let mut eight = || std::array::from_fn(|_| rng.block());
            let mut weights: Eight = eight();
            let mut columns: Vec<Eight> = (0..9).map(|_| eight()).collect();
            match round {
                0 => weights = [0; 8],
                1 => weights = [1, 0, u128::MAX, 1 << 127, 2, 1 << 64, 1 << 63, 3],
                2 => (weights, columns) = ([u128::MAX; 8], vec![[u128::MAX; 8]; 9]),
                _ => {}
            }
            let before: Vec<u128> = (0..9).map(|i| i << 100 | i).collect();
            let wanted = columns.iter().zip(&before).map(|(column, before)| {
                let products = column.iter().zip(&weights).map(|(a, b)| product(*a, *b));
                products.fold(*before, |sum, product| sum ^ product)
            });
            let wanted: Vec<u128> = wanted.collect();
            for level in Level::available() {
                let mut sums = before.clone();
                weighted_sums(level, &weights, &columns, &mut sums);
                assert_eq!(sums, wanted, "{level:?}, round {round}");
            }
        }
    }
}
