//! Sums of shifted polynomials times integers of eight bits, on bytes (AVX-512 VNNI).
//!
//! Numbers are cut into bytes, and an instruction adds the products of four numbers of one place to a sum of 32 bits, for
//! sixteen places at once. By fused multiply-add it is one number for eight places: for five bytes a number that is 1.6
//! times as many instructions.

use std::ops::Range;

use super::super::{Level, Width};
use super::{STEP, TOGETHER};

/// Ciphertexts whose bytes lie beside each other.
pub(crate) const LANES: usize = 4;

/// Terms of one sum, at most: as many products of a byte and a weight stay below 2^31.
pub(crate) const MOST_TERMS: usize = 1 << 14;

/// Bytes of a number that are added up in registers.
#[cfg(target_arch = "x86_64")]
const MOST_LIMBS: usize = 6;

/// Places of a vector.
#[cfg(target_arch = "x86_64")]
const BLOCK: usize = 16;

/// Where shifted polynomials of four ciphertexts start, and what each result multiplies them by.
#[derive(Clone, Copy)]
pub(crate) struct Term {
    /// The place of the first number's lowest byte.
    pub(crate) start: usize,
    /// For each result a weight for each ciphertext, signed bytes from the lowest up.
    pub(crate) weights: [u32; TOGETHER],
}

impl zeroize::Zeroize for Term {
    fn zeroize(&mut self) {
        self.start.zeroize();
        self.weights.zeroize();
    }
}

/// How the bytes of extended polynomials lie: by group of ciphertexts, byte, place and ciphertext.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Coefficients of a polynomial; an extended one has twice as many.
    pub(crate) degree: usize,
    /// Bytes of a number.
    pub(crate) limbs: usize,
}

impl Layout {
    /// Bytes of one byte of each number of a group.
    pub(crate) const fn plane(self) -> usize {
        2 * self.degree * LANES
    }

    /// Bytes of a group.
    pub(crate) const fn group(self) -> usize {
        self.plane() * self.limbs
    }
}

/// Whether this machine has the instructions.
#[cfg(target_arch = "x86_64")]
pub(crate) fn are_there(level: Level) -> bool {
    level.0 == Width::Fma512
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
}

/// Whether this machine has the instructions.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const fn are_there(_: Level) -> bool {
    false
}

/// Adds for all n in `range` and all results b `2^shift` times the sum over all terms and ciphertexts of the number at
/// n of the shifted polynomial times its weight to `sums[b*degree + n]`, mod 2^64.
///
/// # Panics
/// For lengths that do not fit, starts behind the last polynomial, more than [`MOST_TERMS`] terms, or a range that is
/// not of whole steps.
pub(crate) fn multiply_add(
    level: Level,
    sums: &mut [u64],
    (x, layout): (&[u8], Layout),
    (terms, shift): (&[Term], u32),
    range: Range<usize>,
) {
    let Layout { degree, limbs } = layout;
    let whole = range.start.is_multiple_of(STEP) && range.end.is_multiple_of(STEP);
    assert!(sums.len() == TOGETHER * degree && whole);
    assert!(range.start <= range.end && range.end <= degree && limbs > 0 && limbs <= 8);
    let end = |term: &Term| term.start + (limbs - 1) * layout.plane() + LANES * range.end;
    assert!(terms.len() <= MOST_TERMS && terms.iter().all(|term| end(term) <= x.len()));
    match level.0 {
        Width::Scalar => portable(sums, (x, layout), (terms, shift), range),
        // SAFETY: the instructions are there, and all lengths were checked.
        #[cfg(target_arch = "x86_64")]
        Width::Fma512 if are_there(level) => unsafe {
            in_registers(sums, (x, layout), (terms, shift), range);
        },
        _ => portable(sums, (x, layout), (terms, shift), range),
    }
}

fn portable(
    sums: &mut [u64],
    (x, layout): (&[u8], Layout),
    (terms, shift): (&[Term], u32),
    range: Range<usize>,
) {
    for (term, limb) in terms.iter().flat_map(|term| (0..layout.limbs).map(move |l| (term, l))) {
        let (shifted, _) = x[term.start + limb * layout.plane()..].as_chunks::<LANES>();
        let shifted = &shifted[range.clone()];
        for (sums, weights) in sums.chunks_exact_mut(layout.degree).zip(term.weights) {
            let weights = weights.to_le_bytes().map(|weight| i32::from(weight.cast_signed()));
            for (sum, x) in sums[range.clone()].iter_mut().zip(shifted) {
                let products = x.iter().zip(weights).map(|(x, weight)| i32::from(*x) * weight);
                let product = i64::from(products.sum::<i32>()) << (shift + 8 * limb as u32);
                *sum = sum.wrapping_add(product.cast_unsigned());
            }
        }
    }
}

/// Adds the sums of a few bytes of each number after those of the others.
///
/// # Safety
/// AVX-512 F, VL and VNNI; lengths as [`multiply_add`] checks them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512vnni")]
unsafe fn in_registers(
    sums: &mut [u64],
    (x, layout): (&[u8], Layout),
    (terms, shift): (&[Term], u32),
    range: Range<usize>,
) {
    for first in (0..layout.limbs).step_by(MOST_LIMBS) {
        let shift = shift + 8 * first as u32;
        let (part, range) =
            (Part { x: &x[first * layout.plane()..], layout, shift }, range.clone());
        // SAFETY: the caller's promise: what is left of `x` has the bytes from the first of this part on.
        unsafe {
            match MOST_LIMBS.min(layout.limbs - first) {
                1 => dot::<1>(sums, part, terms, range),
                2 => dot::<2>(sums, part, terms, range),
                3 => dot::<3>(sums, part, terms, range),
                4 => dot::<4>(sums, part, terms, range),
                5 => dot::<5>(sums, part, terms, range),
                _ => dot::<MOST_LIMBS>(sums, part, terms, range),
            }
        }
    }
}

/// The bytes from one of each number on.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Part<'a> {
    x: &'a [u8],
    layout: Layout,
    shift: u32,
}

/// Sums of `LIMBS` bytes stay in registers over all terms.
///
/// # Safety
/// AVX-512 F, VL and VNNI; `range` is of whole steps, `sums` has `TOGETHER * degree` numbers, and of each term the bytes up to
/// the last of `LIMBS` planes at `range.end` are in `x`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512vnni")]
unsafe fn dot<const LIMBS: usize>(
    sums: &mut [u64],
    Part { x, layout, shift }: Part<'_>,
    terms: &[Term],
    range: Range<usize>,
) {
    use std::arch::x86_64::*;

    let (x, sums, plane) = (x.as_ptr(), sums.as_mut_ptr(), layout.plane());
    let shift = _mm_cvtsi32_si128(shift.cast_signed());
    for n in range.step_by(BLOCK) {
        let mut all = [[_mm512_setzero_si512(); LIMBS]; TOGETHER];
        // SAFETY: the caller's promise.
        unsafe {
            for term in terms {
                let from = x.add(term.start + LANES * n);
                for limb in 0..LIMBS {
                    let x = _mm512_loadu_si512(from.add(limb * plane).cast());
                    for (all, weights) in all.iter_mut().zip(&term.weights) {
                        let weights = _mm512_set1_epi32(weights.cast_signed());
                        all[limb] = _mm512_dpbusd_epi32(all[limb], x, weights);
                    }
                }
            }
            for (b, limbs) in all.iter().enumerate() {
                let mut halves = [_mm512_setzero_si512(); 2];
                for limb in limbs.iter().rev() {
                    let parts = [
                        _mm512_cvtepi32_epi64(_mm512_castsi512_si256(*limb)),
                        _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64::<1>(*limb)),
                    ];
                    for (half, part) in halves.iter_mut().zip(parts) {
                        *half = _mm512_add_epi64(_mm512_slli_epi64::<8>(*half), part);
                    }
                }
                for (i, half) in halves.into_iter().enumerate() {
                    let to = sums.add(b * layout.degree + n + i * BLOCK / 2).cast();
                    let sum =
                        _mm512_add_epi64(_mm512_loadu_si512(to), _mm512_sll_epi64(half, shift));
                    _mm512_storeu_si512(to, sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;

    #[test]
    fn every_level_equals_integers() {
        let mut rng = Random::seeded(1);
        let (degree, groups) = (128, 2);
        for limbs in 1..=8 {
            let layout = Layout { degree, limbs };
            let bytes = rng.uniform(groups * layout.group(), 8);
            let x: Vec<u8> = bytes.iter().map(|word| *word as u8).collect();
            let places = [(0, 0), (1, 0), (0, 1), (1, 63), (1, degree), (0, degree - 1)];
            let weights = rng.uniform(TOGETHER * places.len(), 32);
            let term = |((group, offset), weights): (&(usize, usize), &[u64; TOGETHER])| Term {
                start: group * layout.group() + LANES * offset,
                weights: weights.map(|word| word as u32),
            };
            let terms: Vec<Term> = places.iter().zip(weights.as_chunks().0).map(term).collect();
            for (level, range) in Level::available()
                .into_iter()
                .flat_map(|level| [0..degree, STEP..3 * STEP, 64..64].map(|range| (level, range)))
            {
                let shift = 7;
                let mut sums = vec![u64::MAX; TOGETHER * degree];
                multiply_add(level, &mut sums, (&x, layout), (&terms, shift), range.clone());
                for (i, sum) in sums.iter().enumerate() {
                    let (b, n) = (i / degree, i % degree);
                    let mut want = -1i128;
                    for term in terms.iter().filter(|_| range.contains(&n)) {
                        for (lane, weight) in term.weights[b].to_le_bytes().into_iter().enumerate()
                        {
                            let place =
                                |limb| term.start + limb * layout.plane() + LANES * n + lane;
                            let x = (0..limbs).map(|limb| u128::from(x[place(limb)]) << (8 * limb));
                            let x = x.sum::<u128>().cast_signed();
                            want += (x * i128::from(weight.cast_signed())) << shift;
                        }
                    }
                    assert_eq!(*sum, want as u64, "{level:?} {limbs} {range:?} {b} {n}");
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn starts_behind_the_last_polynomial_are_refused() {
        let layout = Layout { degree: 64, limbs: 2 };
        let term = Term { start: layout.group() + LANES * 64, weights: [1; TOGETHER] };
        let x = vec![0; 2 * layout.group() - 1];
        multiply_add(Level::best(), &mut [0; 256], (&x, layout), (&[term], 0), 0..64);
    }
}
