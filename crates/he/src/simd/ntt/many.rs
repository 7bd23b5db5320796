//! Sums of products with polynomials in a power of X: several products are added while a sum is in registers, and
//! values that repeat are read once. Factors lie beside each other block by block, so that memory is read in order.

use super::super::modulus::Modulus;
use super::super::vector::Vector;
#[cfg(target_arch = "x86_64")]
use super::integers;
use super::{LAZY, Transform, Width};

/// Values of a transform that are worked on together, whole squares of the lanes of every level.
pub(crate) const BLOCK: usize = 64;

/// Polynomials in X^8 and in its powers have transforms that repeat whole vectors on every level.
pub(crate) const LEAST_SIZE: usize = 8;

/// Returns how many values differ in a block of the transform of a polynomial in X^size, a power of two of
/// [`LEAST_SIZE`] at least.
pub(crate) const fn each(size: usize) -> usize {
    if size < BLOCK { BLOCK / size } else { 1 }
}

/// Factors whose products are added: for each block of [`BLOCK`] values one factor after the other.
#[derive(Clone, Copy)]
pub(crate) struct Factors<'a> {
    /// How many.
    pub(crate) count: usize,
    /// The values of the first factors: [`BLOCK`] for each block and factor.
    pub(crate) values: &'a [f64],
    /// The values of the second factors, [`each`] for each block and factor, in their natural order
    /// ([`Transform::block_of`]).
    pub(crate) repeated: &'a [f64],
    /// The second factors are the transforms of polynomials in X^size.
    pub(crate) size: usize,
}

impl Transform {
    /// Adds products of values of magnitude at most p/2 to sums of such magnitude, and leaves such sums, of whole blocks of
    /// values.
    ///
    /// # Panics
    /// For lengths that differ.
    pub(crate) fn add_products(&self, sums: &mut [f64], factors: Factors<'_>) {
        check(sums, factors);
        #[cfg(target_arch = "x86_64")]
        if self.level.0 == Width::Fma512 && integers::are_there() {
            // SAFETY: the instructions exist; the lengths were checked.
            return unsafe { integers::add(self, sums, factors) };
        }
        self.add_fused(sums, factors);
    }

    /// [`Transform::add_products`] by fused multiply-add.
    fn add_fused(&self, sums: &mut [f64], factors: Factors<'_>) {
        check(sums, factors);
        match self.level.0 {
            // SAFETY: a vector of one needs no instructions; the lengths were checked.
            Width::Scalar => unsafe { add::<f64>(self, sums, factors) },
            // SAFETY: the level says that the instructions exist; the lengths were checked.
            #[cfg(target_arch = "x86_64")]
            Width::Fma256 => unsafe { add256(self, sums, factors) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Width::Fma512 => unsafe { add512(self, sums, factors) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!(),
        }
    }
}

/// Asserts the lengths that [`Transform::add_products`] needs.
fn check(sums: &[f64], Factors { count, values, repeated, size }: Factors<'_>) {
    assert!(sums.len().is_multiple_of(BLOCK) && size.is_power_of_two() && size >= LEAST_SIZE);
    assert!(values.len() == count * sums.len());
    assert!(repeated.len() == count * (sums.len() / BLOCK) * each(size));
}

/// # Safety
/// The features; lengths as in [`Transform::add_products`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn add256(transform: &Transform, sums: &mut [f64], factors: Factors<'_>) {
    // SAFETY: the caller's promise.
    unsafe { add::<std::arch::x86_64::__m256d>(transform, sums, factors) }
}

/// # Safety
/// The features; lengths as in [`Transform::add_products`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn add512(transform: &Transform, sums: &mut [f64], factors: Factors<'_>) {
    // SAFETY: the caller's promise.
    unsafe { add::<std::arch::x86_64::__m512d>(transform, sums, factors) }
}

/// # Safety
/// The instructions of `V`; lengths as in [`Transform::add_products`].
#[inline(always)]
unsafe fn add<V: Vector>(transform: &Transform, sums: &mut [f64], factors: Factors<'_>) {
    let (count, rest) = (factors.count, factors.count % LAZY);
    // SAFETY: the caller's promise. Loops and no closures, which would be compiled without the instructions.
    unsafe {
        let mut first = 0;
        while first + LAZY <= count {
            add_some::<V, LAZY>(transform, sums, factors, first);
            first += LAZY;
        }
        match rest {
            1 => add_some::<V, 1>(transform, sums, factors, first),
            2 => add_some::<V, 2>(transform, sums, factors, first),
            3 => add_some::<V, 3>(transform, sums, factors, first),
            _ => const { assert!(LAZY == 4) },
        }
    }
}

/// Adds the products of so many factors from the `first` on.
///
/// # Safety
/// The instructions of `V`; lengths as in [`Transform::add_products`].
#[inline(always)]
unsafe fn add_some<V: Vector, const SOME: usize>(
    transform: &Transform,
    sums: &mut [f64],
    Factors { count, values, repeated, size }: Factors<'_>,
    first: usize,
) {
    let (square, each) = (V::LANES * V::LANES, each(size));
    let (blocks, sums) = (sums.len() / BLOCK, sums.as_mut_ptr());
    // SAFETY: the caller's promise, and `first` and those after it are factors.
    unsafe {
        let modulus = Modulus::<V>::new(transform.prime);
        let mut factors = [(V::splat(0.0), V::splat(0.0)); SOME];
        for block in 0..blocks {
            let at = block * count + first;
            for within in (0..BLOCK).step_by(square) {
                for (i, factor) in factors.iter_mut().enumerate() {
                    let from = repeated.as_ptr().add((at + i) * each);
                    *factor = modulus.factor(vector(from, within, size));
                }
                for row in 0..V::LANES {
                    let place = within + row * V::LANES;
                    let mut sum = V::load(sums.add(block * BLOCK + place));
                    for (i, (value, quotient)) in factors.into_iter().enumerate() {
                        let x = V::load(values.as_ptr().add((at + i) * BLOCK + place));
                        sum = sum.add(modulus.times(x, value, quotient));
                    }
                    modulus.centred(sum).store(sums.add(block * BLOCK + place));
                }
            }
        }
    }
}

/// Returns what every vector of the square `within` a block is, of which the differing values are at `from`.
///
/// # Safety
/// The instructions of `V`, and [`each`] values.
#[inline(always)]
unsafe fn vector<V: Vector>(from: *const f64, within: usize, size: usize) -> V {
    const { assert!(V::LANES <= LEAST_SIZE) };
    // SAFETY: the caller's promise; a place within a block by the size is below the values that differ.
    unsafe {
        if size >= V::LANES * V::LANES {
            return V::splat(*from.add(within / size));
        }
        let mut lanes = [0.0; LEAST_SIZE];
        for (lane, value) in lanes.iter_mut().enumerate().take(V::LANES) {
            *value = *from.add((within + lane * V::LANES) / size);
        }
        V::load(lanes.as_ptr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;
    use ring::Random;

    /// The largest prime below 2^50 that is 1 mod 2^13.
    const PRIME: u64 = 1_125_899_906_826_241;

    /// Values of magnitude at most p/2, a quarter of them at the ends.
    fn centred(count: usize, rng: &mut Random) -> Vec<f64> {
        let half = (PRIME / 2) as i64;
        let one = |word: u64| match word >> 62 {
            0 if word & 1 == 0 => half,
            0 => -half,
            _ => (word % PRIME) as i64 - half,
        };
        std::iter::repeat_with(|| one(rng.word()) as f64).take(count).collect()
    }

    /// Lists beside each other, `each` of each in turn.
    fn beside(lists: &[&[f64]], each: usize) -> Vec<f64> {
        let blocks = lists.first().map_or(0, |list| list.len() / each);
        let block = |i: usize| lists.iter().flat_map(move |list| &list[i * each..][..each]);
        (0..blocks).flat_map(block).copied().collect()
    }

    #[test]
    fn products_with_repeating_values_are_those_of_whole_transforms() {
        let mut rng = Random::seeded(4);
        for level in Level::available() {
            for (degree, size) in [(2048, 8), (2048, 16), (2048, 32), (2048, 64), (4096, 256)] {
                let transform = Transform::new(level, degree, PRIME);
                let sums = centred(degree, &mut rng);
                let mut factor = || (centred(degree, &mut rng), centred(degree / size, &mut rng));
                let factors: Vec<_> = (0..35).map(|_| factor()).collect();
                for count in [0, 1, 2, 7, 16, 17, 35] {
                    let factors = &factors[..count];
                    let mut expected = sums.clone();
                    for (a, b) in factors {
                        let mut whole = vec![0.0; degree];
                        transform.spread(b, size, &mut whole);
                        transform.multiply_add(&mut expected, a, &whole);
                        transform.reduce(&mut expected);
                    }
                    let first: Vec<&[f64]> = factors.iter().map(|(a, _)| a.as_slice()).collect();
                    let values = beside(&first, BLOCK);
                    let blocks = (0..degree / BLOCK).map(|block| block * BLOCK / size);
                    let of = |i| factors.iter().flat_map(move |(_, b)| &b[i..][..each(size)]);
                    let repeated: Vec<f64> = blocks.flat_map(of).copied().collect();
                    let factors = Factors { count, values: &values, repeated: &repeated, size };
                    for add in [Transform::add_products, Transform::add_fused] {
                        let mut found = sums.clone();
                        add(&transform, &mut found, factors);
                        let same =
                            |(a, b): (&f64, &f64)| (*a as i64 - *b as i64) % PRIME as i64 == 0;
                        let all = expected.iter().zip(&found).all(same);
                        assert!(all, "{level:?} {degree} {size} {count}");
                        assert!(found.iter().all(|value| value.abs() <= (PRIME / 2 + 1) as f64));
                    }
                }
            }
        }
    }
}
