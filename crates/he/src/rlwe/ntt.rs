//! Exact negacyclic products by one or two NTT primes.
//!
//! Of `a` with centred coefficients below 2^(bits-1) in magnitude and a signed `b` of L1
//! norm n, the product has coefficients below n * 2^(bits-1), and so has a sum of
//! products whose norms add up to n. Below 2^48 one prime just under 2^50 tells them
//! apart; two do up to p1 * p2 / 2 > 2^98, by the Chinese remainder theorem, and of the
//! integer the low 64 bits are kept. Everything here is free of branches on data.

use std::sync::OnceLock;

use ring::word::{signed, spread};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{Error, Result};
use crate::simd::ntt::{LAZY, Transform, power};
use crate::simd::{Level, convert};

/// The two largest primes below 2^50 that are 1 mod 2^13, the smaller first.
const PRIMES: [u64; 2] = [1_125_899_906_629_633, 1_125_899_906_826_241];

/// Largest sum of the L1 norms of the signed factors of one [`Sum`].
pub(crate) const LARGEST_NORM: u64 = 1 << 34;

/// Largest magnitude of one coefficient of a signed factor.
pub(crate) const LARGEST_COEFFICIENT: u64 = 1 << 31;

/// Bits of the largest magnitude that one prime tells apart.
const ONE_PRIME: u32 = 48;

/// PRIMES\[0\]^-1 mod PRIMES\[1\], and that times 2^64 / PRIMES\[1\] (Shoup).
const INVERSE: u64 = power(PRIMES[0], PRIMES[1] - 2, PRIMES[1]);
const INVERSE_SHOUP: u64 = (((INVERSE as u128) << 64) / PRIMES[1] as u128) as u64;

/// The transforms of one ring degree.
pub(crate) struct Kernel {
    level: Level,
    transforms: [Transform; 2],
}

/// A polynomial in the evaluation basis of the first prime or both.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Transformed {
    residues: Vec<Vec<f64>>,
    /// Bits of the coefficients, sign included.
    bits: u32,
}

/// A sum of products in the evaluation basis.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Sum {
    residues: Vec<Vec<f64>>,
    norm: u64,
    /// Products since the last reduction.
    pending: usize,
}

impl Transformed {
    /// How many primes.
    pub(crate) fn primes(&self) -> usize {
        self.residues.len()
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
        Self { level, transforms }
    }

    /// Transforms a polynomial with coefficients mod 2^bits, to be multiplied by signed
    /// factors whose L1 norms add up to at most `norm`.
    pub(crate) fn unsigned(&self, coefficients: &[u64], bits: u32, norm: u64) -> Transformed {
        let values = |prime| {
            let mut values = vec![0.0; coefficients.len()];
            if bits <= 50 {
                convert::centred(self.level, coefficients, bits, &mut values);
            } else {
                let reduced = coefficients.iter().map(|c| centred(signed(*c, bits), prime));
                values.iter_mut().zip(reduced).for_each(|(to, value)| *to = value);
            }
            values
        };
        self.transform(values, bits, primes(bits, norm))
    }

    /// Transforms a polynomial with coefficients up to [`LARGEST_COEFFICIENT`] in
    /// magnitude for the first `primes` primes.
    pub(crate) fn signed(&self, coefficients: &[i64], primes: usize) -> Transformed {
        self.transform(|_| coefficients.iter().map(|c| *c as f64).collect(), 33, primes)
    }

    fn transform(&self, values: impl Fn(u64) -> Vec<f64>, bits: u32, primes: usize) -> Transformed {
        let residues = self.transforms.iter().zip(PRIMES).take(primes).map(|(transform, prime)| {
            let mut residues = values(prime);
            transform.forward(&mut residues);
            residues
        });
        Transformed { residues: residues.collect(), bits }
    }

    /// The empty sum of products with `primes` primes.
    pub(crate) fn zero(&self, primes: usize) -> Sum {
        let degree = self.transforms[0].degree();
        Sum { residues: vec![vec![0.0; degree]; primes], norm: 0, pending: 0 }
    }

    /// Adds `a * b`, where `norm` is the L1 norm of the signed factor b.
    ///
    /// # Errors
    /// [`Error::Shape`] when the norms add up to more than [`LARGEST_NORM`], or to more
    /// than the sum's primes tell apart, or when a factor lacks one of these.
    pub(crate) fn accumulate(
        &self,
        sum: &mut Sum,
        a: &Transformed,
        b: &Transformed,
        norm: u64,
    ) -> Result<()> {
        sum.norm = sum.norm.saturating_add(norm);
        if sum.norm > LARGEST_NORM {
            return Err(Error::shape("sum of weight magnitudes", "at most 2^34", "more"));
        }
        let primes = sum.residues.len();
        if primes < self::primes(a.bits, sum.norm) || primes > a.primes().min(b.primes()) {
            return Err(Error::shape(
                "primes of a product",
                self::primes(a.bits, sum.norm),
                primes,
            ));
        }
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
        match sum.residues.as_slice() {
            [first, second] => first.iter().zip(second).map(|(x, y)| recombine(*x, *y)).collect(),
            rest => {
                let mut words = vec![0; self.transforms[0].degree()];
                for values in rest {
                    convert::add_shifted(self.level, &mut words, values, 0, u64::BITS);
                }
                words
            }
        }
    }

    /// One product, `norm` being the L1 norm of the signed factor b.
    ///
    /// # Errors
    /// As [`Kernel::accumulate`].
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

/// `value` mod the prime, about half of it in magnitude at most.
fn centred(value: i64, prime: u64) -> f64 {
    /// Adding and subtracting it rounds to an integer.
    const ROUND: f64 = 1.5 * (1u64 << 52) as f64;
    let quotient = (value as f64 * (1.0 / prime as f64) + ROUND) - ROUND;
    value.wrapping_sub((quotient as i64).wrapping_mul(prime as i64)) as f64
}

/// The low 64 bits of the integer of least magnitude that is `x` mod PRIMES\[0\]
/// and `y` mod PRIMES\[1\], both centred.
fn recombine(x: f64, y: f64) -> u64 {
    let [p, q] = PRIMES;
    let canonical = |value: f64, prime: u64| {
        let value = value as i64;
        (value as u64).wrapping_add(prime & (value >> 63) as u64)
    };
    let (x, y) = (canonical(x, p), canonical(y, q));
    let difference = y + q - x;
    let quotient = ((u128::from(difference) * u128::from(INVERSE_SHOUP)) >> 64) as u64;
    let t = difference.wrapping_mul(INVERSE).wrapping_sub(quotient.wrapping_mul(q));
    let t = t.wrapping_sub(q & spread(1 ^ (t.wrapping_sub(q) >> 63)));
    let centred = t.wrapping_sub(q & spread((q / 2).wrapping_sub(t) >> 63));
    x.wrapping_add(p.wrapping_mul(centred))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::rlwe::TABLE;
    use proptest::prelude::*;
    use ring::Random;

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
    fn kernels(degree: usize) -> impl Iterator<Item = (Level, Kernel)> {
        Level::available().into_iter().map(move |level| (level, Kernel::build(degree, level)))
    }

    #[test]
    fn primes_leave_room_for_the_documented_bound() {
        let [p, q] = PRIMES.map(u128::from);
        assert!(p < q && q < 1 << 50 && p / 4 > 1 << (ONE_PRIME - 1));
        assert!(p * q / 2 - p > (1u128 << 63) * u128::from(LARGEST_NORM));
        assert_eq!(PRIMES[0] as u128 * INVERSE as u128 % q, 1);
        assert_eq!([primes(37, 4096), primes(38, 4096)], [1, 2]);
        assert_eq!([primes(38, 2048), primes(38, 2049), primes(64, 1)], [1, 2, 2]);
    }

    #[test]
    fn products_equal_the_schoolbook_at_the_extremes() {
        for (degree, _) in TABLE {
            let largest = (LARGEST_NORM / degree as u64) as i64;
            let narrow = ONE_PRIME + 1 - degree.ilog2();
            for (level, kernel) in kernels(degree) {
                for (bits, weight) in [(64, largest), (64, -largest), (narrow, 1), (narrow, -1)] {
                    for value in [1u64 << (bits - 1), (1 << (bits - 1)) - 1, u64::MAX] {
                        let value = value & ring::word::mask(bits);
                        let (a, b) = (vec![value; degree], vec![weight; degree]);
                        let x = kernel.unsigned(&a, bits, norm(&b));
                        assert_eq!(x.primes(), if bits == 64 { 2 } else { 1 });
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
        kernel.accumulate(&mut sum, &a, &b, LARGEST_NORM).unwrap();
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
                    let (x, y) = (kernel.unsigned(&a, width, LARGEST_NORM), kernel.signed(&b, 2));
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
