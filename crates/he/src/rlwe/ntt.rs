//! Exact negacyclic products by one or two NTT primes.
//!
//! Let `a` have centred coefficients below 2^(bits-1) in magnitude, and let a signed `b` have
//! L1 norm n. Their product has coefficients below n * 2^(bits-1), and so has a sum of
//! products whose norms add up to n. Coefficients below 2^48 are determined by their residue
//! mod one prime just under 2^50, those up to p1 * p2 / 2 > 2^98 by their residues mod two
//! primes (Chinese remainder theorem); the low 64 bits of the integer are kept. Everything
//! here is free of branches on data.

use std::ops::Range;
use std::sync::OnceLock;

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::compact::Smaller;
use crate::error::{Error, Result};
use crate::simd::ntt::many::Factors;
use crate::simd::ntt::{LAZY, Transform, power};
use crate::simd::recombine::Recombine;
use crate::simd::{Level, convert};

/// The two largest primes below 2^50 that are 1 mod 2^13, the smaller first.
pub(super) const PRIMES: [u64; 2] = [1_125_899_906_629_633, 1_125_899_906_826_241];

/// Largest sum of the L1 norms of the signed factors of one [`Sum`], their partners being
/// mod 2^bits, up to 64: sums are at most 2^98 in magnitude.
pub(crate) const fn largest_norm(bits: u32) -> u64 {
    1 << if bits > 37 { 99 - bits } else { 62 }
}

/// Largest magnitude of one coefficient of a signed factor.
pub(crate) const LARGEST_COEFFICIENT: u64 = 1 << 31;

/// Bits of the largest magnitude that one prime tells apart.
const ONE_PRIME: u32 = 48;

/// PRIMES\[0\]^-1 mod PRIMES\[1\].
const INVERSE: u64 = power(PRIMES[0], PRIMES[1] - 2, PRIMES[1]);

/// The transforms of one ring degree.
pub(crate) struct Kernel {
    pub(super) level: Level,
    pub(super) transforms: [Transform; 2],
    recombine: Recombine,
    pub(super) smaller: Smaller,
}

/// A polynomial in the evaluation basis of the first prime or both.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Transformed {
    pub(super) residues: Vec<Vec<f64>>,
    /// Bits of the coefficients, sign included.
    pub(super) bits: u32,
}

/// A sum of products in the evaluation basis.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Sum {
    residues: Vec<Vec<f64>>,
    norm: u64,
    /// Most bits of an unsigned factor.
    bits: u32,
    /// Products since the last reduction.
    pending: usize,
}

impl Transformed {
    /// How many primes.
    pub(crate) fn primes(&self) -> usize {
        self.residues.len()
    }
}

impl Sum {
    /// Makes room for a product of a factor of so many bits and a signed one of this L1 norm, both known mod so many
    /// primes.
    fn grow(&mut self, bits: u32, known: usize, norm: u64) -> Result<()> {
        self.norm = self.norm.saturating_add(norm);
        self.bits = self.bits.max(bits);
        let (primes, least) = (self.residues.len(), self::primes(self.bits, 1));
        if primes < least || primes > known {
            return Err(Error::shape("primes of a product", least, primes));
        }
        check_norm(self.norm, norm_within(primes, self.bits))
    }
}

impl Kernel {
    /// The kernel of a degree of the parameter table, built on first use.
    ///
    /// # Errors
    /// [`Error::Shape`] for any other degree.
    pub(crate) fn of(degree: usize) -> Result<&'static Self> {
        static KERNELS: [OnceLock<Kernel>; 2] = [const { OnceLock::new() }; 2];
        let slot = super::params::TABLE.iter().position(|(known, _)| *known == degree);
        slot.and_then(|slot| KERNELS.get(slot))
            .map(|cell| cell.get_or_init(|| Self::build(degree, Level::best())))
            .ok_or_else(|| Error::shape("ring degree", "2048 or 4096", degree))
    }

    fn build(degree: usize, level: Level) -> Self {
        let transforms = PRIMES.map(|prime| Transform::new(level, degree, prime));
        let recombine = Recombine::new(PRIMES, INVERSE);
        Self { level, transforms, recombine, smaller: Smaller::default() }
    }

    /// Transforms a polynomial with coefficients mod 2^bits, to be multiplied by signed
    /// factors whose L1 norms add up to at most `norm`.
    pub(crate) fn unsigned(&self, coefficients: &[u64], bits: u32, norm: u64) -> Transformed {
        let values = |prime| {
            let mut values = vec![0.0; coefficients.len()];
            if bits <= 50 {
                convert::centred(self.level, coefficients, bits, &mut values);
            } else {
                convert::wide(self.level, coefficients, bits, prime, &mut values);
            }
            values
        };
        self.transform(values, coefficients.len(), bits, primes(bits, norm))
    }

    /// Transforms a polynomial with coefficients up to [`LARGEST_COEFFICIENT`] in
    /// magnitude for the first `primes` primes. Of a shorter list, whose length is a power
    /// of two, the rest is zero.
    pub(crate) fn signed(&self, coefficients: &[i64], primes: usize) -> Transformed {
        let mut values = vec![0.0; coefficients.len()];
        convert::small(self.level, coefficients, &mut values);
        let transformed = self.small(&values, primes);
        values.zeroize();
        transformed
    }

    /// [`Kernel::signed`] of integers that are held as f64.
    pub(crate) fn small(&self, coefficients: &[f64], primes: usize) -> Transformed {
        let values = |_| {
            let mut values = vec![0.0; self.transforms[0].degree()];
            values.iter_mut().zip(coefficients).for_each(|(to, from)| *to = *from);
            values
        };
        self.transform(values, coefficients.len(), 33, primes)
    }

    fn transform(
        &self,
        values: impl Fn(u64) -> Vec<f64>,
        filled: usize,
        bits: u32,
        primes: usize,
    ) -> Transformed {
        let residues = self.transforms.iter().zip(PRIMES).take(primes).map(|(transform, prime)| {
            let mut residues = values(prime);
            transform.forward_filled(&mut residues, filled);
            residues
        });
        Transformed { residues: residues.collect(), bits }
    }

    /// Something to expand into.
    pub(crate) fn blank(&self) -> Transformed {
        let zeros = vec![0.0; self.transforms[0].degree()];
        Transformed { residues: vec![zeros; PRIMES.len()], bits: 33 }
    }

    /// The empty sum of products with `primes` primes.
    pub(crate) fn zero(&self, primes: usize) -> Sum {
        let degree = self.transforms[0].degree();
        Sum { residues: vec![vec![0.0; degree]; primes], norm: 0, bits: 1, pending: 0 }
    }

    /// Adds `a * b`, where `norm` is the L1 norm of the signed factor b.
    ///
    /// # Errors
    /// [`Error::Shape`] when the norms add up to more than [`largest_norm`], or to more
    /// than the sum's primes tell apart, or when a factor lacks one of these.
    pub(crate) fn accumulate(
        &self,
        sum: &mut Sum,
        a: &Transformed,
        b: &Transformed,
        norm: u64,
    ) -> Result<()> {
        sum.grow(a.bits, a.primes().min(b.primes()), norm)?;
        let factors = a.residues.iter().zip(&b.residues);
        let residues = sum.residues.iter_mut().zip(factors);
        for (transform, (sum, (a, b))) in self.transforms.iter().zip(residues) {
            transform.multiply_add(sum, a, b);
        }
        sum.pending += 1;
        if sum.pending == LAZY {
            self.reduce(sum);
        }
        Ok(())
    }

    /// Makes room for products whose first factors are of so many bits, of signed factors whose L1 norms add up to
    /// `norm`, known mod both primes; they are added part by part ([`Kernel::add_part`]).
    ///
    /// # Errors
    /// The errors of [`Kernel::accumulate`].
    pub(super) fn admit(&self, sum: &mut Sum, bits: u32, norm: u64) -> Result<()> {
        if sum.pending > 0 {
            self.reduce(sum);
        }
        sum.grow(bits, PRIMES.len(), norm)
    }

    /// Adds a part of the values of products mod one of the primes, whose factors are of this part.
    pub(super) fn add_part(
        &self,
        sum: &mut Sum,
        prime: usize,
        part: &Range<usize>,
        factors: Factors<'_>,
    ) {
        let sum = sum.residues.get_mut(prime).and_then(|sum| sum.get_mut(part.clone()));
        if let (Some(sum), Some(transform)) = (sum, self.transforms.get(prime)) {
            transform.add_products(sum, factors);
        }
    }

    fn reduce(&self, sum: &mut Sum) {
        for (transform, residues) in self.transforms.iter().zip(&mut sum.residues) {
            transform.reduce(residues);
        }
        sum.pending = 0;
    }

    /// The sum's coefficients mod 2^64.
    pub(crate) fn finish(&self, mut sum: Sum) -> Vec<u64> {
        self.reduce(&mut sum);
        for (transform, residues) in self.transforms.iter().zip(&mut sum.residues) {
            transform.backward(residues);
        }
        match sum.residues.as_mut_slice() {
            [first, second] => self.recombine.words(self.level, first, second),
            rest => {
                let mut words = vec![0; self.transforms[0].degree()];
                for values in rest.iter() {
                    convert::add_shifted(self.level, &mut words, values, 0, u64::BITS);
                }
                words
            }
        }
    }

    /// One product, `norm` being the L1 norm of the signed factor b.
    ///
    /// # Errors
    /// The errors of [`Kernel::accumulate`].
    pub(crate) fn product(&self, a: &Transformed, b: &Transformed, norm: u64) -> Result<Vec<u64>> {
        let mut sum = self.zero(a.primes());
        self.accumulate(&mut sum, a, b, norm)?;
        Ok(self.finish(sum))
    }
}

/// Primes that tell sums apart, of coefficients mod 2^bits times weights whose
/// magnitudes add up to `norm`.
pub(crate) const fn primes(bits: u32, norm: u64) -> usize {
    let norm = if norm < 2 { 0 } else { u64::BITS - (norm - 1).leading_zeros() };
    if bits - 1 + norm <= ONE_PRIME { 1 } else { 2 }
}

/// Largest sum of the L1 norms of the signed factors of one [`Sum`] that so many primes tell apart, where
/// they tell any: their number is at least that of [`primes`] for a norm of 1.
const fn norm_within(primes: usize, bits: u32) -> u64 {
    if primes == 1 { 1 << (ONE_PRIME + 1).saturating_sub(bits) } else { largest_norm(bits) }
}

/// Refuses a sum of norms above `most`: of the secret sum nothing else is asked, and the only branch is here.
#[inline(never)]
fn check_norm(norm: u64, most: u64) -> Result<()> {
    let refuse = || Error::shape("sum of weight magnitudes", format!("at most {most}"), "more");
    if norm <= most { Ok(()) } else { Err(refuse()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use super::*;
    use crate::rlwe::TABLE;
    use proptest::prelude::*;
    use ring::Random;
    use ring::word::{signed, spread};

    /// Schoolbook product mod X^N + 1 and 2^64.
    fn naive(a: &[u64], b: &[i64]) -> Vec<u64> {
        let mut out = vec![0u64; a.len()];
        for (j, w) in b.iter().enumerate().filter(|(_, w)| **w != 0) {
            for (i, x) in a.iter().enumerate() {
                let term = x.wrapping_mul(*w as u64);
                let at = (i + j) % a.len();
                let sign = spread(u64::from(i + j >= a.len()));
                out[at] = out[at].wrapping_add((term ^ sign).wrapping_sub(sign));
            }
        }
        out
    }

    fn norm(b: &[i64]) -> u64 {
        b.iter().map(|w| w.unsigned_abs()).sum()
    }

    /// A kernel for every level of this machine.
    pub(in crate::rlwe) fn kernels(degree: usize) -> impl Iterator<Item = (Level, Kernel)> {
        Level::available().into_iter().map(move |level| (level, Kernel::build(degree, level)))
    }

    #[test]
    fn primes_leave_room_for_the_documented_bound() {
        let [p, q] = PRIMES.map(u128::from);
        assert!(p < q && q < 1 << 50 && p / 4 > 1 << (ONE_PRIME - 1));
        assert!(p * q / 2 - p > 1u128 << 98);
        assert!((1..=64).all(|bits| u128::from(largest_norm(bits)) << (bits - 1) <= 1 << 98));
        assert_eq!(PRIMES[0] as u128 * INVERSE as u128 % q, 1);
        assert_eq!([primes(37, 4096), primes(38, 4096)], [1, 2]);
        assert_eq!([primes(38, 2048), primes(38, 2049), primes(64, 1)], [1, 2, 2]);
        for bits in 1..=64 {
            for count in primes(bits, 1)..=2 {
                let most = norm_within(count, bits);
                assert!(most <= largest_norm(bits) && primes(bits, most) <= count, "{bits}");
                assert!(most == largest_norm(bits) || primes(bits, most + 1) > count, "{bits}");
            }
        }
    }

    #[test]
    fn products_equal_the_schoolbook_at_the_extremes() {
        for (degree, _) in TABLE {
            let most = |bits| (largest_norm(bits) / degree as u64).min(LARGEST_COEFFICIENT) as i64;
            let (largest, wide) = (most(64), most(48));
            let narrow = ONE_PRIME + 1 - degree.ilog2();
            for (level, kernel) in kernels(degree) {
                let wide = [(64, largest), (64, -largest), (48, wide), (48, -wide)];
                for (bits, weight) in wide.into_iter().chain([(narrow, 1), (narrow, -1)]) {
                    for value in [1u64 << (bits - 1), (1 << (bits - 1)) - 1, u64::MAX] {
                        let value = value & ring::word::mask(bits);
                        let (a, b) = (vec![value; degree], vec![weight; degree]);
                        let x = kernel.unsigned(&a, bits, norm(&b));
                        assert_eq!(x.primes(), if bits >= 48 { 2 } else { 1 });
                        let got = kernel.product(&x, &kernel.signed(&b, 2), norm(&b)).unwrap();
                        let centred: Vec<u64> = a.iter().map(|a| signed(*a, bits) as u64).collect();
                        assert_eq!(got, naive(&centred, &b), "{level:?}");
                    }
                }
            }
        }
        assert!(Kernel::of(1024).is_err());
    }

    #[test]
    fn what_the_primes_do_not_tell_apart_is_refused() {
        let kernel = Kernel::of(2048).unwrap();
        let (a, b) = (kernel.unsigned(&[1; 2048], 64, 9), kernel.signed(&[1; 2048], 2));
        let mut sum = kernel.zero(2);
        kernel.accumulate(&mut sum, &a, &b, largest_norm(64)).unwrap();
        assert!(kernel.accumulate(&mut sum, &a, &b, 1).is_err());
        let a = kernel.unsigned(&[1; 2048], 38, 2048);
        assert!(kernel.product(&a, &b, 2048).is_ok());
        assert!(kernel.product(&a, &b, 2049).is_err());
        assert!(kernel.accumulate(&mut kernel.zero(2), &a, &b, 1).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn sums_of_products_equal_the_schoolbook(
            seed: u64, slot in 0usize..2, width in 24u32..=64, bits in 2u32..20, products in 1..12
        ) {
            let degree = TABLE[slot].0;
            for (level, kernel) in kernels(degree) {
                let mut rng = Random::seeded(seed);
                let mut sum = kernel.zero(2);
                let mut want = vec![0u64; degree];
                for i in 0..products {
                    let a = rng.uniform(degree, width);
                    let b: Vec<i64> = rng.uniform(degree, bits).iter().enumerate()
                        .map(|(at, w)| if i < 2 || at % 97 == 0 { signed(*w, bits) } else { 0 })
                        .collect();
                    let (x, y) = (kernel.unsigned(&a, width, largest_norm(width)), kernel.signed(&b, 2));
                    kernel.accumulate(&mut sum, &x, &y, norm(&b)).unwrap();
                    let centred: Vec<u64> = a.iter().map(|a| signed(*a, width) as u64).collect();
                    for (w, n) in want.iter_mut().zip(naive(&centred, &b)) {
                        *w = w.wrapping_add(n);
                    }
                }
                prop_assert_eq!(kernel.finish(sum), want, "{:?}", level);
            }
        }
    }
}
