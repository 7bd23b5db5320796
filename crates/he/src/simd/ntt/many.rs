//! Sums of products with polynomials in a power of X: several products are added while a sum is in registers, and
//! vectors that repeat are read once.

use super::super::modulus::Modulus;
use super::super::vector::Vector;
use super::{LAZY, Transform, Width};

/// A factor, and the vectors of the other ([`Transform::vectors`]).
pub(crate) type Pair<'a> = (&'a [f64], &'a [f64]);

impl Transform {
    /// Whether transforms of polynomials in X^size repeat whole vectors.
    pub(crate) const fn repeats(&self, size: usize) -> bool {
        size >= self.level().lanes()
    }

    /// Values of a block, whose vectors are alike: the square of the lanes.
    pub(crate) const fn square(&self) -> usize {
        self.level().lanes().pow(2)
    }

    /// Writes the vectors of the values from `start` on of the transform of a polynomial in X^size, out of its values
    /// in the order of [`Transform::block_of`]: one for each block. `start` and what `out` is for are powers of two of
    /// values and whole blocks.
    pub(crate) fn vectors(&self, values: &[f64], size: usize, start: usize, out: &mut [f64]) {
        let (lanes, square) = (self.level().lanes(), self.square());
        let values = values.get(start / size..).unwrap_or_default();
        if size >= square {
            let each = (size / square * lanes).min(out.len().max(1));
            out.chunks_mut(each).zip(values).for_each(|(blocks, value)| blocks.fill(*value));
            return;
        }
        let each = square / size;
        for (block, values) in out.chunks_exact_mut(lanes).zip(values.chunks_exact(each)) {
            let groups = block.chunks_exact_mut(lanes / each).zip(values);
            groups.for_each(|(group, value)| group.fill(*value));
        }
    }

    /// Adds products of values of magnitude at most p/2 to sums of such magnitude, and leaves such sums, of whole blocks of
    /// values.
    ///
    /// # Panics
    /// For lengths that differ.
    pub(crate) fn add_products(&self, sums: &mut [f64], pairs: &[Pair<'_>]) {
        assert!(sums.len().is_multiple_of(self.square()));
        let vectors = sums.len() / self.level().lanes();
        assert!(pairs.iter().all(|(a, b)| (a.len(), b.len()) == (sums.len(), vectors)));
        for pairs in pairs.chunks(LAZY) {
            match self.level.0 {
                // SAFETY: a vector of one needs no instructions; the lengths were checked.
                Width::Scalar => unsafe { add::<f64>(self, sums, pairs) },
                // SAFETY: the level says that the instructions exist; the lengths were checked.
                #[cfg(target_arch = "x86_64")]
                Width::Fma256 => unsafe { add256(self, sums, pairs) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Width::Fma512 => unsafe { add512(self, sums, pairs) },
                #[cfg(not(target_arch = "x86_64"))]
                _ => unreachable!(),
            }
        }
    }
}

/// # Safety
/// The features; lengths as in [`Transform::add_products`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn add256(transform: &Transform, sums: &mut [f64], pairs: &[Pair<'_>]) {
    // SAFETY: the caller's promise.
    unsafe { add::<std::arch::x86_64::__m256d>(transform, sums, pairs) }
}

/// # Safety
/// The features; lengths as in [`Transform::add_products`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn add512(transform: &Transform, sums: &mut [f64], pairs: &[Pair<'_>]) {
    // SAFETY: the caller's promise.
    unsafe { add::<std::arch::x86_64::__m512d>(transform, sums, pairs) }
}

/// Up to [`LAZY`] pairs.
///
/// # Safety
/// The instructions of `V`; lengths as in [`Transform::add_products`].
#[inline(always)]
unsafe fn add<V: Vector>(transform: &Transform, sums: &mut [f64], pairs: &[Pair<'_>]) {
    // SAFETY: the caller's promise.
    unsafe {
        match pairs {
            [a] => add_some::<V, 1>(transform, sums, &[*a]),
            [a, b] => add_some::<V, 2>(transform, sums, &[*a, *b]),
            [a, b, c] => add_some::<V, 3>(transform, sums, &[*a, *b, *c]),
            [a, b, c, d] => add_some::<V, 4>(transform, sums, &[*a, *b, *c, *d]),
            _ => {}
        }
    }
}

/// # Safety
/// The instructions of `V`; lengths as in [`Transform::add_products`].
#[inline(always)]
unsafe fn add_some<V: Vector, const PAIRS: usize>(
    transform: &Transform,
    sums: &mut [f64],
    pairs: &[Pair<'_>; PAIRS],
) {
    const { assert!(PAIRS <= LAZY) };
    let (blocks, sums) = (sums.len() / (V::LANES * V::LANES), sums.as_mut_ptr());
    // SAFETY: the caller's promise. Loops and no closures, which would be compiled without the instructions.
    unsafe {
        let modulus = Modulus::<V>::new(transform.prime);
        let mut factors = [(V::splat(0.0), V::splat(0.0)); PAIRS];
        for block in 0..blocks {
            for (factor, (_, b)) in factors.iter_mut().zip(pairs) {
                *factor = modulus.factor(V::load(b.as_ptr().add(block * V::LANES)));
            }
            for row in 0..V::LANES {
                let at = (block * V::LANES + row) * V::LANES;
                let mut sum = V::load(sums.add(at));
                for ((a, _), (value, quotient)) in pairs.iter().zip(factors) {
                    sum = sum.add(modulus.times(V::load(a.as_ptr().add(at)), value, quotient));
                }
                modulus.centred(sum).store(sums.add(at));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;
    use ring::Random;

    /// The largest prime below 2^50 that is 1 mod 2^13.
    const PRIME: u64 = 1_125_899_906_826_241;

    #[test]
    fn products_with_repeating_vectors_are_those_of_whole_transforms() {
        let mut rng = Random::seeded(4);
        for level in Level::available() {
            for (degree, size) in [(2048, 8), (2048, 16), (2048, 32), (4096, 64), (4096, 256)] {
                let transform = Transform::new(level, degree, PRIME);
                assert!(transform.repeats(size));
                let mut centred = |count: usize| -> Vec<f64> {
                    let below = || (rng.word() % PRIME) as i64 - (PRIME / 2) as i64;
                    std::iter::repeat_with(below).take(count).map(|x| x as f64).collect()
                };
                let sums = centred(degree);
                let factors: Vec<_> =
                    (0..6).map(|_| (centred(degree), centred(degree / size))).collect();
                for (count, part) in
                    (0..=factors.len()).zip([degree, 512, 1024, 256, 512, 64, degree])
                {
                    let (mut expected, mut found) = (sums.clone(), sums.clone());
                    for (a, b) in &factors[..count] {
                        let mut whole = vec![0.0; degree];
                        transform.spread(b, size, &mut whole);
                        transform.multiply_add(&mut expected, a, &whole);
                        transform.reduce(&mut expected);
                    }
                    for (start, found) in (0..).step_by(part).zip(found.chunks_exact_mut(part)) {
                        let mut vectors = vec![vec![0.0; part / level.lanes()]; count];
                        for ((_, b), vectors) in factors.iter().zip(&mut vectors) {
                            transform.vectors(b, size, start, vectors);
                        }
                        let pairs = factors.iter().zip(&vectors);
                        let pairs: Vec<_> =
                            pairs.map(|((a, _), b)| (&a[start..][..part], b.as_slice())).collect();
                        transform.add_products(found, &pairs);
                    }
                    let same = |(a, b): (&f64, &f64)| (*a as i64 - *b as i64) % PRIME as i64 == 0;
                    assert!(
                        expected.iter().zip(&found).all(same),
                        "{level:?} {degree} {size} {count}"
                    );
                    assert!(found.iter().all(|value| value.abs() <= (PRIME / 2 + 1) as f64));
                }
            }
        }
    }
}
