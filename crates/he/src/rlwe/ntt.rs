//! Exact negacyclic products mod 2^64 by two NTT primes.
//!
//! A product of `a` (coefficients below 2^64) and a signed `b` of L1 norm at most
//! 2^34 has coefficients below 2^98 in magnitude, and so has a sum of products
//! whose L1 norms add up to at most 2^34. Both primes lie just under 2^50, so
//! p1 * p2 / 2 > 2^98 and the Chinese remainder theorem gives the integer itself,
//! of which the low 64 bits are kept. Everything here is free of branches on data.

use std::sync::OnceLock;

use ring::word::spread;
use tfhe_ntt::prime64::Plan;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{Error, Result};

/// The two largest primes below 2^50 that are 1 mod 2^13, the smaller first.
/// Below 2^50 `tfhe-ntt` takes its lazy IFMA path.
const PRIMES: [u64; 2] = [1_125_899_906_629_633, 1_125_899_906_826_241];

/// Largest sum of the L1 norms of the signed factors of one [`Sum`].
pub(crate) const LARGEST_NORM: u64 = 1 << 34;

/// Largest magnitude of one coefficient of a signed factor.
pub(crate) const LARGEST_COEFFICIENT: u64 = 1 << 31;

/// PRIMES\[0\]^-1 mod PRIMES\[1\], and that times 2^64 / PRIMES\[1\] (Shoup).
const INVERSE: u64 = power(PRIMES[0], PRIMES[1] - 2, PRIMES[1]);
const INVERSE_SHOUP: u64 = (((INVERSE as u128) << 64) / PRIMES[1] as u128) as u64;

const fn power(base: u64, mut exponent: u64, modulus: u64) -> u64 {
    let (mut result, mut square) = (1u128, base as u128);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * square % modulus as u128;
        }
        square = square * square % modulus as u128;
        exponent >>= 1;
    }
    result as u64
}

/// The transforms of one ring degree.
pub(crate) struct Kernel {
    plans: [Plan; 2],
}

/// A polynomial in the evaluation basis of both primes.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Transformed {
    residues: [Vec<u64>; 2],
}

/// A sum of products in the evaluation basis.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Sum {
    residues: [Vec<u64>; 2],
    norm: u64,
}

impl Kernel {
    /// The kernel of a degree of the parameter table, built on first use.
    ///
    /// # Errors
    /// [`Error::Shape`] for any other degree.
    pub(crate) fn of(degree: usize) -> Result<&'static Self> {
        static KERNELS: [OnceLock<Option<Kernel>>; 2] = [const { OnceLock::new() }; 2];
        let slot = super::params::TABLE.iter().position(|(known, _)| *known == degree);
        slot.and_then(|slot| KERNELS.get(slot))
            .and_then(|cell| cell.get_or_init(|| Self::build(degree)).as_ref())
            .ok_or_else(|| Error::shape("ring degree", "2048 or 4096", degree))
    }

    fn build(degree: usize) -> Option<Self> {
        let [first, second] = PRIMES.map(|prime| Plan::try_new(degree, prime));
        Some(Self { plans: [first?, second?] })
    }

    /// Transforms a polynomial with coefficients mod 2^64.
    pub(crate) fn unsigned(&self, coefficients: &[u64]) -> Transformed {
        self.transform(|prime| coefficients.iter().map(|c| c % prime).collect())
    }

    /// Transforms a polynomial with coefficients up to [`LARGEST_COEFFICIENT`].
    pub(crate) fn signed(&self, coefficients: &[i64]) -> Transformed {
        let lift = |prime: u64, c: i64| (c as u64).wrapping_add(prime & (c >> 63) as u64);
        self.transform(|prime| coefficients.iter().map(|c| lift(prime, *c)).collect())
    }

    fn transform(&self, reduce: impl Fn(u64) -> Vec<u64>) -> Transformed {
        let residues = std::array::from_fn(|i| {
            let mut values = reduce(PRIMES[i]);
            self.plans[i].fwd(&mut values);
            values
        });
        Transformed { residues }
    }

    /// The empty sum.
    pub(crate) fn zero(&self) -> Sum {
        Sum { residues: [0, 1].map(|i: usize| vec![0; self.plans[i].ntt_size()]), norm: 0 }
    }

    /// Adds `a * b`, where `norm` is the L1 norm of the signed factor.
    ///
    /// # Errors
    /// [`Error::Shape`] when the norms add up to more than [`LARGEST_NORM`].
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
        for (i, plan) in self.plans.iter().enumerate() {
            plan.mul_accumulate(&mut sum.residues[i], &a.residues[i], &b.residues[i]);
        }
        Ok(())
    }

    /// The sum's coefficients mod 2^64.
    pub(crate) fn finish(&self, mut sum: Sum) -> Vec<u64> {
        for (plan, residues) in self.plans.iter().zip(&mut sum.residues) {
            plan.inv(residues);
            plan.normalize(residues);
        }
        let [first, second] = &sum.residues;
        first.iter().zip(second).map(|(x, y)| recombine(*x, *y)).collect()
    }

    /// One product, `norm` being the L1 norm of the signed factor.
    pub(crate) fn product(&self, a: &Transformed, b: &Transformed, norm: u64) -> Result<Vec<u64>> {
        let mut sum = self.zero();
        self.accumulate(&mut sum, a, b, norm)?;
        Ok(self.finish(sum))
    }
}

/// The low 64 bits of the integer of least magnitude that is `x` mod PRIMES\[0\]
/// and `y` mod PRIMES\[1\].
fn recombine(x: u64, y: u64) -> u64 {
    let [p, q] = PRIMES;
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

    #[test]
    fn primes_leave_room_for_the_documented_bound() {
        let [p, q] = PRIMES.map(u128::from);
        assert!(p < q && q < 1 << 50);
        assert!(p * q / 2 - p > (1u128 << 64) * u128::from(LARGEST_NORM));
        assert_eq!(PRIMES[0] as u128 * INVERSE as u128 % q, 1);
    }

    #[test]
    fn products_equal_the_schoolbook_at_the_extremes() {
        for (degree, _) in TABLE {
            let kernel = Kernel::of(degree).unwrap();
            let largest = (LARGEST_NORM / degree as u64) as i64;
            for sign in [1, -1] {
                let (a, b) = (vec![u64::MAX; degree], vec![sign * largest; degree]);
                assert_eq!(norm(&b), LARGEST_NORM);
                let got = kernel.product(&kernel.unsigned(&a), &kernel.signed(&b), norm(&b));
                assert_eq!(got.unwrap(), naive(&a, &b));
            }
        }
        assert!(Kernel::of(1024).is_err());
    }

    #[test]
    fn a_sum_above_the_bound_is_refused() {
        let kernel = Kernel::of(2048).unwrap();
        let (a, b) = (kernel.unsigned(&[1; 2048]), kernel.signed(&[1; 2048]));
        let mut sum = kernel.zero();
        kernel.accumulate(&mut sum, &a, &b, LARGEST_NORM).unwrap();
        assert!(kernel.accumulate(&mut sum, &a, &b, 1).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn sums_of_products_equal_the_schoolbook(seed: u64, slot in 0usize..2, bits in 2u32..20) {
            let degree = TABLE[slot].0;
            let (kernel, mut rng) = (Kernel::of(degree).unwrap(), Random::seeded(seed));
            let mut sum = kernel.zero();
            let mut want = vec![0u64; degree];
            for _ in 0..2 {
                let a = rng.uniform(degree, 64);
                let b: Vec<i64> = rng.uniform(degree, bits).iter()
                    .map(|w| ring::word::signed(*w, bits)).collect();
                let (x, y) = (kernel.unsigned(&a), kernel.signed(&b));
                kernel.accumulate(&mut sum, &x, &y, norm(&b)).unwrap();
                for (w, n) in want.iter_mut().zip(naive(&a, &b)) {
                    *w = w.wrapping_add(n);
                }
            }
            prop_assert_eq!(kernel.finish(sum), want);
        }
    }
}
