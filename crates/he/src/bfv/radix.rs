//! From residues mod several primes back to integers.

use zeroize::Zeroizing;

use super::params::Params;
use super::ring::{Prime, canonical};
use super::values::Values;
use crate::simd::ntt::Factor;
use crate::simd::{Level, residue};

/// Integers by balanced digits v_i to the bases 1, q_0, q_0*q_1, ...: every v_i is
/// centred, and so is the integer. Garner's algorithm.
pub(crate) struct MixedRadix<'a> {
    level: Level,
    primes: &'a [Prime],
}

impl<'a> MixedRadix<'a> {
    pub(crate) const fn new(level: Level, primes: &'a [Prime]) -> Self {
        Self { level, primes }
    }

    /// Replaces residues mod each prime in turn by digits.
    fn digits(&self, values: &mut [f64]) {
        let degree = values.len() / self.primes.len().max(1);
        for (i, prime) in self.primes.iter().enumerate() {
            let (lower, rest) = values.split_at_mut(i * degree);
            let (ours, _) = rest.split_at_mut(degree);
            for (below, digit) in self.primes.iter().zip(lower.chunks_exact(degree)) {
                let before = Values::of(ours);
                let factor = Factor::new(prime.inverse(below.value), prime.value);
                let float = prime.float();
                residue::scale_difference(self.level, float, ours, &before, digit, factor);
            }
        }
    }

    /// The integers mod 2^64.
    pub(crate) fn words(&self, values: &mut [f64]) -> Zeroizing<Vec<u64>> {
        self.digits(values);
        let degree = values.len() / self.primes.len().max(1);
        let mut words = Zeroizing::new(vec![0u64; degree]);
        let mut base = 1u64;
        for (prime, digits) in self.primes.iter().zip(values.chunks_exact(degree)) {
            for (word, digit) in words.iter_mut().zip(digits) {
                *word = word.wrapping_add((*digit as i64 as u64).wrapping_mul(base));
            }
            base = base.wrapping_mul(prime.value);
        }
        words
    }

    /// The magnitudes of the integers, rounded.
    pub(crate) fn magnitudes(&self, values: &mut [f64]) -> Vec<f64> {
        self.digits(values);
        let degree = values.len() / self.primes.len().max(1);
        let mut sums = vec![0.0; degree];
        for (prime, digits) in self.primes.iter().zip(values.chunks_exact(degree)).rev() {
            for (sum, digit) in sums.iter_mut().zip(digits) {
                *sum = *sum * prime.float() + digit;
            }
        }
        sums.iter().map(|sum: &f64| sum.abs()).collect()
    }
}

/// Integers c mod q, given by centred residues, as c/q in units of 2^-64, a few of these
/// off: the sum of y_i/q_i with y_i = c * (q/q_i)^-1 mod q_i.
pub(crate) fn fractions(params: &Params, values: &mut [f64]) -> Zeroizing<Vec<u64>> {
    let (degree, level) = (params.degree(), params.ring().level);
    let mut words = Zeroizing::new(vec![0u64; degree]);
    for (i, prime) in params.primes().iter().enumerate() {
        let others = params.primes().iter().enumerate().filter(|(j, _)| *j != i);
        let product = others.fold(1, |x, (_, other)| prime.product(x, other.value % prime.value));
        let factor = Factor::new(prime.inverse(product), prime.value);
        let Some(part) = values.chunks_exact_mut(degree).nth(i) else { continue };
        residue::scale(level, prime.float(), part, factor);
        // 2^127 / (prime * 2^unused), from 2^63 to 2^64.
        let unused = prime.value.leading_zeros();
        let inverse = ((1u128 << 127) / (u128::from(prime.value) << unused)) as u64;
        for (word, value) in words.iter_mut().zip(part.iter()) {
            let shifted = canonical(*value, prime.value) << unused;
            let fraction = (u128::from(shifted) * u128::from(inverse)) >> 63;
            *word = word.wrapping_add(fraction as u64);
        }
    }
    words
}
