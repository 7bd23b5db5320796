//! What a party needs that commits to its secret key: its coefficients, the public halves of what
//! it sends, and products of these with words of many bits.
//!
//! Phases are linear in the secret with public coefficients: `b + a*s`. So a tag that is linear, as
//! words mod 2^modulus that the parties hold for each coefficient of `s`, gives tags of phases by a
//! product with the same `a` ([`Multiplicand`]). Here `a` stands for integers from 0 to 2^K - 1, and
//! nothing is reduced mod 2^K: both parties have the same integers.

use std::fmt;

use ring::word::mask;
use ring::{Random, Seed};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::cipher::{CIPHER_DOMAIN, Fresh};
use super::key::{PUBLIC_DOMAIN, PublicKey, SecretKey};
use super::ntt::{Kernel, Transformed};
use super::params::Params;
use super::sample;
use crate::error::{Error, Result, expect_len};

/// Bits of a digit: sums of a few products of N pairs of digits stay below 2^63.
const DIGIT: u32 = 23;
/// Digits of a public factor of up to 64 bits.
const PUBLIC_DIGITS: usize = 3;
/// Widest words.
const WIDEST: u32 = 115;

/// Bits of an error of the public key less [`LEAST_ERROR`]: samples are below 30 in magnitude.
pub const ERROR_BITS: u32 = 6;
/// The least error of a public key that fits [`ERROR_BITS`].
pub const LEAST_ERROR: i64 = -32;

impl SecretKey {
    /// Returns the coefficients, -1, 0 or 1, mod 2^64.
    ///
    /// # Errors
    /// None for a key that exists.
    pub fn ternary(&self) -> Result<Zeroizing<Vec<u64>>> {
        self.coefficients()
    }

    /// Returns errors of a public key, which are at least [`LEAST_ERROR`] and fit [`ERROR_BITS`].
    pub fn key_errors(&self, rng: &mut Random) -> Zeroizing<Vec<i64>> {
        sample::narrow(rng, self.params().degree())
    }

    /// Returns the body of the public key of `seed` with these `errors`: `errors - a*secret` mod 2^K.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of errors.
    pub fn public_body(&self, seed: &Seed, errors: &[i64]) -> Result<Vec<u64>> {
        let (params, bits) = (self.params(), self.params().modulus_bits());
        expect_len("errors of a public key", params.degree(), errors.len())?;
        let product = self.times_secret(&PublicKey::uniform_half(params, seed), bits)?;
        let body = product.iter().zip(errors);
        Ok(body.map(|(p, e)| (*e as u64).wrapping_sub(*p) & mask(bits)).collect())
    }
}

impl PublicKey {
    /// Returns the uniform half of the key of `seed`: N integers mod 2^K.
    pub fn uniform_half(params: Params, seed: &Seed) -> Vec<u64> {
        sample::expand(seed, PUBLIC_DOMAIN, params.degree(), params.modulus_bits())
    }
}

impl Fresh {
    /// Returns the half that the secret multiplies: N integers mod 2^K.
    pub fn uniform_half(&self, params: Params) -> Vec<u64> {
        sample::expand(&self.seed, CIPHER_DOMAIN, params.degree(), params.modulus_bits())
    }
}

/// Returns samples close to a Gaussian of deviation 2^13, which hide combinations of errors.
pub fn covers(rng: &mut Random, count: usize) -> Zeroizing<Vec<i64>> {
    let all = sample::wide(rng, 4 * count);
    Zeroizing::new(all.chunks_exact(4).map(|four| four.iter().sum()).collect())
}

/// N words mod 2^modulus, to be multiplied by public polynomials mod X^N + 1. Zeroized on drop,
/// prints nothing.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Multiplicand {
    #[zeroize(skip)]
    degree: usize,
    #[zeroize(skip)]
    modulus: u32,
    /// The polynomials of digits, the lowest first.
    digits: Vec<Transformed>,
}

impl Multiplicand {
    /// Transforms `words`, as many as a ring degree of the parameter table, mod 2^modulus.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of words and for more than 115 bits.
    pub fn new(words: &[u128], modulus: u32) -> Result<Self> {
        if !(1..=WIDEST).contains(&modulus) {
            return Err(Error::shape("bits of words to multiply", "1 to 115", modulus));
        }
        let kernel = Kernel::of(words.len())?;
        let digit = |at: u32| {
            let shift = at * DIGIT;
            let low = mask(DIGIT.min(modulus - shift));
            let values = words.iter().map(|word| ((word >> shift) as u64 & low) as i64);
            kernel.signed(&Zeroizing::new(values.collect::<Vec<i64>>()), 2)
        };
        let digits = (0..modulus.div_ceil(DIGIT)).map(digit).collect();
        Ok(Self { degree: words.len(), modulus, digits })
    }

    /// Returns the product with `a`, N integers of up to 64 bits taken as they are, mod 2^modulus.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of integers.
    pub fn times(&self, a: &[u64]) -> Result<Zeroizing<Vec<u128>>> {
        expect_len("factors of words", self.degree, a.len())?;
        let kernel = Kernel::of(self.degree)?;
        let norm = (self.degree as u64) << DIGIT;
        let all = norm * PUBLIC_DIGITS as u64;
        let digit = |at: usize| {
            let digits = a.iter().map(|word| word >> (at as u32 * DIGIT) & mask(DIGIT));
            // One bit more than a digit has, so that none is taken for a negative number.
            kernel.unsigned(&digits.collect::<Vec<u64>>(), DIGIT + 1, all)
        };
        let public: Vec<Transformed> = (0..PUBLIC_DIGITS).map(digit).collect();
        let mut words = Zeroizing::new(vec![0u128; self.degree]);
        for place in 0..self.digits.len() {
            let mut sum = kernel.zero(2);
            for (at, public) in public.iter().enumerate().take(place + 1) {
                if let Some(own) = self.digits.get(place - at) {
                    kernel.accumulate(&mut sum, public, own, norm)?;
                }
            }
            let part = Zeroizing::new(kernel.finish(sum));
            let shift = place as u32 * DIGIT;
            for (word, part) in words.iter_mut().zip(part.iter()) {
                *word = word.wrapping_add((i128::from(*part as i64) as u128) << shift);
            }
        }
        let ring = u128::MAX >> (128 - self.modulus);
        words.iter_mut().for_each(|word| *word &= ring);
        Ok(words)
    }
}

impl fmt::Debug for Multiplicand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Multiplicand(<{} words of {} bits>)", self.degree, self.modulus)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Schoolbook product mod X^N + 1 and 2^128, at one coefficient.
    fn coefficient(a: &[u64], words: &[u128], at: usize) -> u128 {
        let degree = a.len();
        (0..degree).fold(0, |sum: u128, i| {
            let term = words[(at + degree - i) % degree].wrapping_mul(u128::from(a[i]));
            if i > at { sum.wrapping_sub(term) } else { sum.wrapping_add(term) }
        })
    }

    #[test]
    fn products_equal_the_schoolbook_at_the_extremes() {
        let mut rng = Random::seeded(1);
        for (degree, bits, modulus) in
            [(2048, 52, 92), (4096, 64, 104), (2048, 20, 60), (4096, 64, 115)]
        {
            let ring = u128::MAX >> (128 - modulus);
            let random: Vec<u128> = (0..degree).map(|_| rng.block() & ring).collect();
            for (a, words) in [
                (rng.uniform(degree, bits), random.clone()),
                (vec![mask(bits); degree], vec![ring; degree]),
                (vec![mask(bits); degree], random),
            ] {
                let got = Multiplicand::new(&words, modulus).unwrap().times(&a).unwrap();
                for at in [0, 1, 77, degree - 1] {
                    assert_eq!(got[at], coefficient(&a, &words, at) & ring, "{bits} {modulus}");
                }
            }
        }
        assert!(Multiplicand::new(&[0; 2048], 116).is_err());
        assert!(Multiplicand::new(&[0; 100], 9).is_err());
        assert!(Multiplicand::new(&[0; 2048], 9).unwrap().times(&[0; 4]).is_err());
    }

    #[test]
    fn phases_follow_from_the_coefficients() {
        let mut rng = Random::seeded(2);
        let params = Params::new(2048, 52).unwrap();
        let key = SecretKey::generate(params, &mut rng).unwrap();
        let ternary = key.ternary().unwrap();
        assert!(ternary.iter().all(|s| s.wrapping_add(1) <= 2));
        let words: Vec<u128> = ternary.iter().map(|s| i128::from(*s as i64) as u128).collect();
        let words: Vec<u128> = words.iter().map(|word| word & (u128::MAX >> 36)).collect();
        let secret = Multiplicand::new(&words, 92).unwrap();
        let phase = |body: &[u64], a: &[u64]| -> Vec<i64> {
            let product = secret.times(a).unwrap();
            let sums = body.iter().zip(product.iter()).map(|(b, p)| b.wrapping_add(*p as u64));
            sums.map(|sum| ring::word::signed(sum & mask(52), 52)).collect()
        };
        let seed = rng.seed();
        let errors = key.key_errors(&mut rng);
        let body = key.public_body(&seed, &errors).unwrap();
        let a = PublicKey::uniform_half(params, &seed);
        assert_eq!(phase(&body, &a), *errors);
        assert!(errors.iter().all(|e| (LEAST_ERROR..LEAST_ERROR + (1 << ERROR_BITS)).contains(e)));
        let values = rng.uniform(2048, 26);
        let fresh = key.encrypt(params, &values, 26, &mut rng).unwrap();
        let phases = phase(&fresh.body, &fresh.uniform_half(params));
        for (phase, value) in phases.iter().zip(&values) {
            let error =
                ring::word::signed((*phase as u64).wrapping_sub(value << 26) & mask(52), 52);
            assert!(error.abs() < 30);
        }
    }

    #[test]
    fn covers_have_their_deviation() {
        let all = covers(&mut Random::seeded(3), 20_000);
        let square = all.iter().map(|x| (*x as f64).powi(2)).sum::<f64>() / 20_000.0;
        assert!((square.sqrt() / 8190.4 - 1.0).abs() < 0.03);
        assert!(all.iter().all(|x| x.abs() < 1 << 16));
    }
}
