//! Degrees, primes, and the table of what is secure.

use std::fmt;
use std::sync::Arc;

use super::ring::{Prime, Ring};
use crate::error::{Error, Result};
use crate::simd::Level;
use crate::simd::ntt::power;

/// Largest modulus bits, the special prime's included, for 128 bits of security with a
/// ternary secret and errors of deviation 3.2, by `scripts/lattice_estimate.py`. Those of the
/// "Security Guidelines for Implementing Homomorphic Encryption" (ePrint 2024/463, table
/// 5.2), but for N = 2048, which have 53.
pub const TABLE: [(usize, u32); 5] =
    [(2048, 52), (4096, 106), (8192, 214), (16384, 430), (32768, 868)];

/// Bits that a prime may have.
pub const PRIME_BITS: std::ops::RangeInclusive<u32> = 20..=50;

/// Least bits of a digit: fewer would need more digits than keys have numbers for.
const LEAST_DIGIT: u32 = 5;

/// How a ciphertext under another key gets under the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switching {
    /// One digit for each ciphertext prime, and a special prime of so many bits that the
    /// result is divided by: noise of a few bits, at the price of modulus.
    Special(u32),
    /// Digits of so many bits: no modulus is lost, the noise is that of a digit.
    Digits(u32),
}

/// Ring degree N, ciphertext primes and the way of key switching.
#[derive(Clone)]
pub struct Params {
    ring: Arc<Ring>,
    count: usize,
    switching: Switching,
}

impl Params {
    /// Makes the largest primes of these bits that are 1 mod 2N. Both parties find the same.
    ///
    /// # Errors
    /// [`Error::Weak`] above the table's modulus or off its degrees; [`Error::Shape`] for
    /// primes or digits of other sizes, or when there are not enough.
    pub fn new(degree: usize, moduli: &[u32], switching: Switching) -> Result<Self> {
        Self::at_level(degree, moduli, switching, Level::best())
    }

    pub(crate) fn at_level(
        degree: usize,
        moduli: &[u32],
        switching: Switching,
        level: Level,
    ) -> Result<Self> {
        let mut bits = moduli.to_vec();
        match switching {
            Switching::Special(special) => bits.push(special),
            Switching::Digits(digit) if (LEAST_DIGIT..=50).contains(&digit) => {}
            Switching::Digits(digit) => {
                return Err(Error::shape("bits of a digit", format!("{LEAST_DIGIT} to 50"), digit));
            }
        }
        check_security(degree, &bits)?;
        check_sizes(moduli, &bits)?;
        let ring = Ring::new(degree, &largest_primes(degree, &bits, &[])?, level)?;
        Ok(Self { ring: Arc::new(ring), count: moduli.len(), switching })
    }

    /// Returns the ring degree N: coefficients of a polynomial, slots of a plaintext.
    pub fn degree(&self) -> usize {
        self.ring.degree
    }

    /// Returns the number of slots of each of the two rows: N/2.
    pub fn row(&self) -> usize {
        self.degree() / 2
    }

    /// Returns the number of bits of the ciphertext modulus, the special prime not included.
    pub fn modulus_bits(&self) -> u32 {
        self.primes().iter().map(|prime| prime.bits).sum()
    }

    /// Returns the bits of the residues of each ciphertext prime.
    pub fn widths(&self) -> Vec<u32> {
        self.primes().iter().map(|prime| prime.bits).collect()
    }

    /// Returns how keys are switched.
    pub const fn switching(&self) -> Switching {
        self.switching
    }

    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The ciphertext primes.
    pub(crate) fn primes(&self) -> &[Prime] {
        self.ring.primes.get(..self.count).unwrap_or_default()
    }

    /// The special prime and its place among all of them.
    pub(crate) fn special(&self) -> Option<(usize, &Prime)> {
        let special = matches!(self.switching, Switching::Special(_));
        self.ring.primes.iter().enumerate().next_back().filter(|_| special)
    }

    /// The primes of keys and their places: those of ciphertexts, then the special one.
    pub(crate) fn extended(&self) -> impl Iterator<Item = (usize, &Prime)> {
        self.primes().iter().enumerate().chain(self.special())
    }

    /// The parameters with the last ciphertext prime dropped ([`super::Ciphertext`] has the
    /// operation). Keys, encoders and plaintexts of these serve them too.
    ///
    /// # Errors
    /// [`Error::Shape`] when one prime is left.
    pub fn dropped(&self) -> Result<Self> {
        if self.count < 2 {
            return Err(Error::shape("ciphertext primes", "at least two", self.count));
        }
        Ok(Self { count: self.count - 1, ..self.clone() })
    }

    /// Returns whether what is made for these serves `other`: the same primes, or fewer of them.
    pub fn covers(&self, other: &Self) -> bool {
        self.count >= other.count && Self { count: other.count, ..self.clone() } == *other
    }

    /// # Errors
    /// [`Error::Shape`] when they do not cover the other.
    pub(crate) fn check_covers(&self, what: &'static str, other: &Self) -> Result<()> {
        if self.covers(other) { Ok(()) } else { Err(Error::shape(what, other, self)) }
    }

    /// # Errors
    /// [`Error::Shape`] when they differ.
    pub(crate) fn check(&self, what: &'static str, other: &Self) -> Result<()> {
        if self == other { Ok(()) } else { Err(Error::shape(what, self, other)) }
    }
}

fn check_security(degree: usize, bits: &[u32]) -> Result<()> {
    let modulus_bits = bits.iter().fold(0u32, |sum, bits| sum.saturating_add(*bits));
    let weak = |limit| Error::Weak { degree, modulus_bits, limit };
    let Some((_, most)) = TABLE.iter().find(|(known, _)| *known == degree) else {
        return Err(weak("allowed degrees are 2048, 4096, 8192, 16384 and 32768".into()));
    };
    if modulus_bits <= *most {
        Ok(())
    } else {
        Err(weak(format!(
            "the limit at degree {degree} is {most} bits, the special prime included"
        )))
    }
}

fn check_sizes(moduli: &[u32], bits: &[u32]) -> Result<()> {
    if moduli.is_empty() {
        return Err(Error::shape("ciphertext primes", "at least one", 0));
    }
    match bits.iter().find(|bits| !PRIME_BITS.contains(bits)) {
        Some(other) => Err(Error::shape("bits of a prime", "20 to 50", other)),
        None => Ok(()),
    }
}

/// The largest different primes of each size that are 1 mod 2N and not taken.
pub(crate) fn largest_primes(degree: usize, bits: &[u32], taken: &[u64]) -> Result<Vec<u64>> {
    let mut found = taken.to_vec();
    for bits in bits {
        let order = 2 * degree as u64;
        let least = 1u64 << (bits - 1);
        let candidates = (1..least / order).map(|i| (1u64 << bits) - i * order + 1);
        let prime = candidates.into_iter().find(|n| is_prime(*n) && !found.contains(n));
        let none = || Error::shape("primes", "enough that are 1 mod 2N", format!("{bits} bits"));
        found.push(prime.ok_or_else(none)?);
    }
    Ok(found.split_off(taken.len()))
}

/// Miller and Rabin's test with the bases that decide it below 2^64 (Sinclair).
pub(crate) fn is_prime(n: u64) -> bool {
    const BASES: [u64; 7] = [2, 325, 9375, 28178, 450_775, 9_780_504, 1_795_265_022];
    if n < 3 || n.is_multiple_of(2) {
        return n == 2;
    }
    let twos = (n - 1).trailing_zeros();
    BASES.iter().map(|base| base % n).filter(|base| *base != 0).all(|base| {
        let mut x = power(base, (n - 1) >> twos, n);
        let first = x == 1 || x == n - 1;
        first
            || (1..twos).any(|_| {
                x = power(x, 2, n);
                x == n - 1
            })
    })
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        let primes =
            |params: &Self| params.ring.primes.iter().map(|prime| prime.value).collect::<Vec<_>>();
        self.count == other.count
            && (Arc::ptr_eq(&self.ring, &other.ring)
                || self.switching == other.switching
                    && self.degree() == other.degree()
                    && primes(self) == primes(other))
    }
}

impl Eq for Params {}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Params({self})")
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "N = {}, primes of {:?} bits, ", self.degree(), self.widths())?;
        match self.switching {
            Switching::Special(bits) => write!(f, "a special one of {bits}"),
            Switching::Digits(bits) => write!(f, "digits of {bits}"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn weak_parameters_are_refused_with_the_limit() {
        let special = Switching::Special(36);
        assert!(Params::new(4096, &[35, 35], special).is_ok());
        assert!(Params::new(8192, &[42, 43, 43, 43, 43], Switching::Digits(13)).is_ok());
        for (degree, moduli) in [(4096, [35, 36].as_slice()), (2048, &[20]), (1024, &[20])] {
            let error = Params::new(degree, moduli, special).unwrap_err();
            assert!(matches!(error, Error::Weak { .. }), "{error}");
        }
        let digits = Switching::Digits(13);
        for (degree, most) in TABLE {
            let count = most.div_ceil(50) as usize;
            let mut moduli = vec![most / count as u32; count];
            moduli[0] += most + 1 - moduli.iter().sum::<u32>();
            let error = Params::new(degree, &moduli, digits).unwrap_err();
            assert!(matches!(error, Error::Weak { .. }), "{error}");
        }
        // What the table of 2018 had.
        for (degree, moduli) in [(2048, [27; 2].as_slice()), (8192, &[43, 43, 44, 44, 44])] {
            assert!(matches!(Params::new(degree, moduli, digits), Err(Error::Weak { .. })));
        }
        let text = Params::new(4096, &[50, 50], special).unwrap_err().to_string();
        assert!(text.contains("the limit at degree 4096 is 106 bits"), "{text}");
    }

    #[test]
    fn sizes_are_checked() {
        for (moduli, switching) in [
            (&[][..], Switching::Digits(10)),
            (&[51], Switching::Digits(10)),
            (&[19], Switching::Digits(10)),
            (&[30], Switching::Digits(4)),
            (&[30], Switching::Special(51)),
        ] {
            assert!(matches!(Params::new(4096, moduli, switching), Err(Error::Shape { .. })));
        }
        assert!(Params::new(16384, &[20; 19], Switching::Digits(10)).is_err());
    }

    #[test]
    fn primes_are_prime_different_and_of_their_size() {
        let found = largest_primes(8192, &[43, 43, 44, 44, 44], &[]).unwrap();
        for (i, prime) in found.iter().enumerate() {
            assert!((2..2000).all(|d| prime % d != 0) && prime % 16384 == 1);
            assert!(!found[..i].contains(prime));
            assert_eq!(prime.ilog2(), if i < 2 { 42 } else { 43 });
        }
        let small: Vec<u64> = (0..60).filter(|n| is_prime(*n)).collect();
        assert_eq!(small, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59]);
        assert!(!is_prime(3_215_031_751) && is_prime((1 << 61) - 1));
    }
}
