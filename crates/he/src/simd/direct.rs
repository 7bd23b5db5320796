//! Sums of shifted polynomials times integers, for several results at once.

use std::ops::Range;

use zeroize::Zeroize;

#[cfg(target_arch = "x86_64")]
use super::vector::Vector;
use super::{Level, Width};

pub(crate) mod bytes;

/// Results that share each load of a factor.
pub(crate) const TOGETHER: usize = 4;

/// Coefficients of a step.
pub(crate) const STEP: usize = 32;

/// A shift and what each result multiplies the shifted polynomial by.
#[derive(Clone, Copy, Zeroize)]
pub(crate) struct Term {
    /// Where the shifted polynomial starts.
    pub(crate) offset: usize,
    /// Weights, small integers.
    pub(crate) weights: [f64; TOGETHER],
}

/// Adds for all n in `range` and all results b
/// `sum over t of x[terms[t].offset + n] * terms[t].weights[b]` to `sums[b*degree + n]`.
/// Exact while no sum reaches 2^53.
///
/// # Panics
/// For lengths that do not fit, offsets behind the last polynomial, or a range that is not of
/// whole steps.
pub(crate) fn multiply_add(
    level: Level,
    sums: &mut [f64],
    x: &[f64],
    terms: &[Term],
    range: Range<usize>,
) {
    let degree = sums.len() / TOGETHER;
    let whole = range.start.is_multiple_of(STEP) && range.end.is_multiple_of(STEP);
    assert!(sums.len() == TOGETHER * degree && whole);
    assert!(range.start <= range.end && range.end <= degree);
    assert!(terms.iter().all(|term| term.offset + range.end <= x.len()));
    match level.0 {
        Width::Scalar => portable(sums, x, terms, range),
        // SAFETY: the level says that the instructions exist; all lengths were checked.
        #[cfg(target_arch = "x86_64")]
        Width::Fma256 => unsafe { fma256(sums, x, terms, range) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Fma512 => unsafe { fma512(sums, x, terms, range) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => portable(sums, x, terms, range),
    }
}

fn portable(sums: &mut [f64], x: &[f64], terms: &[Term], range: Range<usize>) {
    let degree = sums.len() / TOGETHER;
    for term in terms {
        let shifted = &x[term.offset..][range.clone()];
        for (sums, weight) in sums.chunks_exact_mut(degree).zip(term.weights) {
            let sums = &mut sums[range.clone()];
            sums.iter_mut().zip(shifted).for_each(|(sum, x)| *sum += x * weight);
        }
    }
}

/// # Safety
/// AVX2 and FMA; lengths as [`multiply_add`] checks them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn fma256(sums: &mut [f64], x: &[f64], terms: &[Term], range: Range<usize>) {
    // SAFETY: the caller's promise.
    unsafe { step_by_step::<std::arch::x86_64::__m256d, 2>(sums, x, terms, range) }
}

/// # Safety
/// AVX-512 F; lengths as [`multiply_add`] checks them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn fma512(sums: &mut [f64], x: &[f64], terms: &[Term], range: Range<usize>) {
    // SAFETY: the caller's promise.
    unsafe { step_by_step::<std::arch::x86_64::__m512d, 4>(sums, x, terms, range) }
}

/// `ROW` vectors of each result stay in registers over all terms.
///
/// # Safety
/// The instructions of `V`; `ROW * LANES` divides [`STEP`]; lengths as [`multiply_add`]
/// checks them: of `sums` at most `TOGETHER * degree`, of `x` at most
/// `offset + range.end` numbers are touched.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn step_by_step<V: Vector, const ROW: usize>(
    sums: &mut [f64],
    x: &[f64],
    terms: &[Term],
    range: Range<usize>,
) {
    let degree = sums.len() / TOGETHER;
    let (x, sums) = (x.as_ptr(), sums.as_mut_ptr());
    for n in range.step_by(ROW * V::LANES) {
        // SAFETY: the caller's promise.
        unsafe {
            let place = |b: usize, r: usize| sums.add(b * degree + n + r * V::LANES);
            let mut held: [[V; ROW]; TOGETHER] =
                std::array::from_fn(|b| std::array::from_fn(|r| V::load(place(b, r))));
            for term in terms {
                let from = x.add(term.offset + n);
                let shifted: [V; ROW] = std::array::from_fn(|r| V::load(from.add(r * V::LANES)));
                for (held, weight) in held.iter_mut().zip(term.weights) {
                    let weight = V::splat(weight);
                    for (held, shifted) in held.iter_mut().zip(shifted) {
                        *held = shifted.mul_add(weight, *held);
                    }
                }
            }
            for (b, held) in held.into_iter().enumerate() {
                for (r, held) in held.into_iter().enumerate() {
                    held.store(place(b, r));
                }
            }
        }
    }
}

/// Takes multiples of `modulus` off every sum: what is left is at most half of it in
/// magnitude. Sums are integers below 2^52 in magnitude, the modulus a power of two.
pub(crate) fn reduce(level: Level, sums: &mut [f64], modulus: f64) {
    match level.0 {
        Width::Scalar => reduce_all(sums, modulus),
        // SAFETY: the level says that the instructions exist.
        #[cfg(target_arch = "x86_64")]
        Width::Fma256 => unsafe { reduce256(sums, modulus) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Fma512 => unsafe { reduce512(sums, modulus) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => reduce_all(sums, modulus),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn reduce256(sums: &mut [f64], modulus: f64) {
    reduce_all(sums, modulus);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn reduce512(sums: &mut [f64], modulus: f64) {
    reduce_all(sums, modulus);
}

#[inline(always)]
fn reduce_all(sums: &mut [f64], modulus: f64) {
    /// Adding and subtracting it rounds to an integer.
    const ROUND: f64 = 1.5 * (1u64 << 52) as f64;
    let inverse = 1.0 / modulus;
    for sum in sums {
        let quotient = (*sum * inverse + ROUND) - ROUND;
        *sum -= quotient * modulus;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;

    #[test]
    fn every_level_equals_integers() {
        let mut rng = Random::seeded(1);
        let degree = 256;
        let integer = |word: u64, bits: u32| ring::word::signed(word, bits);
        let x: Vec<i64> = rng.uniform(2 * degree, 40).iter().map(|w| integer(*w, 40)).collect();
        let offsets = [0, 1, 7, 100, 255, 256];
        let weights: Vec<i64> =
            rng.uniform(TOGETHER * offsets.len(), 8).iter().map(|w| integer(*w, 8)).collect();
        let terms: Vec<Term> = offsets
            .iter()
            .zip(weights.as_chunks::<TOGETHER>().0)
            .map(|(offset, weights)| Term { offset: *offset, weights: weights.map(|w| w as f64) })
            .collect();
        let floats: Vec<f64> = x.iter().map(|x| *x as f64).collect();
        for level in Level::available() {
            for range in [0..degree, STEP..3 * STEP, 64..64] {
                let mut sums = vec![5.0; TOGETHER * degree];
                multiply_add(level, &mut sums, &floats, &terms, range.clone());
                for (i, sum) in sums.iter().enumerate() {
                    let (b, n) = (i / degree, i % degree);
                    let products = offsets.iter().zip(weights.as_chunks::<TOGETHER>().0);
                    let added: i64 = products.map(|(o, w)| x[o + n] * w[b]).sum();
                    let want = if range.contains(&n) { 5 + added } else { 5 };
                    assert_eq!(*sum, want as f64, "{level:?} {range:?} {b} {n}");
                }
            }
        }
    }

    #[test]
    fn reduced_sums_are_congruent_and_small() {
        let modulus = (1u64 << 40) as f64;
        let mut rng = Random::seeded(2);
        let words: Vec<i64> =
            rng.uniform(100, 53).iter().map(|w| ring::word::signed(*w, 53)).collect();
        for level in Level::available() {
            let mut sums: Vec<f64> = words.iter().map(|w| *w as f64).collect();
            reduce(level, &mut sums, modulus);
            for (sum, word) in sums.iter().zip(&words) {
                assert!(sum.abs() <= modulus / 2.0, "{level:?}");
                assert_eq!((*sum as i64 - word) & ((1 << 40) - 1), 0, "{level:?}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn offsets_beyond_the_extension_are_refused() {
        let term = Term { offset: 65, weights: [1.0; TOGETHER] };
        multiply_add(Level::best(), &mut [0.0; 256], &[0.0; 128], &[term], 0..64);
    }
}
