//! Noise followed from operation to operation.

use super::{Load, Sizes, bits, check, flooding_bits};
use crate::bfv::encoder::Encoder;
use crate::bfv::params::Params;
use crate::error::{Error, Result};

/// Noise followed from operation to operation, for what a [`Load`] does not describe.
#[derive(Clone, Debug)]
pub struct Estimate {
    params: Params,
    prime: u64,
    variance: f64,
}

impl Estimate {
    /// Makes the noise of a fresh encryption, to which a few plaintexts may be added.
    pub fn fresh(encoder: &Encoder) -> Self {
        let (params, prime) = (encoder.params().clone(), encoder.prime());
        let variance = Sizes::of(&params, prime).fresh();
        Self { params, prime, variance }
    }

    /// Makes the noise of a fresh encryption mod `prime`, for planning: no encoder has to be made.
    pub fn planned(params: &Params, prime: u64) -> Self {
        let variance = Sizes::of(params, prime).fresh();
        Self { params: params.clone(), prime, variance }
    }

    /// Makes the noise of a result that `load` describes.
    ///
    /// # Errors
    /// [`Error::Shape`] for other plaintext bits than the encoder's.
    pub fn of(encoder: &Encoder, load: &Load) -> Result<Self> {
        check(encoder, load)?;
        let fresh = Self::fresh(encoder);
        let variance = fresh.sizes().variance(load);
        Ok(Self { variance, ..fresh })
    }

    /// The noise after a rotation, or after swapping the rows.
    #[must_use]
    pub fn rotated(self) -> Self {
        Self { variance: self.variance + self.sizes().switching(), ..self }
    }

    /// The noise of the sum of `count` uncorrelated ciphertexts like this one.
    #[must_use]
    pub fn times(self, count: usize) -> Self {
        Self { variance: self.variance * count as f64, ..self }
    }

    /// The noise of the sum with another ciphertext, which may be the same one.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        Self { variance: (self.variance.sqrt() + other.variance.sqrt()).powi(2), ..self }
    }

    /// The noise of the sum with a ciphertext that is not correlated with this one.
    #[must_use]
    pub fn joined(self, other: &Self) -> Self {
        Self { variance: self.variance + other.variance, ..self }
    }

    /// The noise of the product with a plaintext.
    #[must_use]
    pub fn times_plain(self) -> Self {
        Self { variance: self.variance * self.sizes().weight(), ..self }
    }

    /// The noise of a sum of products of uncorrelated ciphertexts like this one with integers
    /// whose squares add up to at most `squares`.
    #[must_use]
    pub fn scaled(self, squares: f64) -> Self {
        Self { variance: self.variance * squares, ..self }
    }

    /// The noise of the product with another ciphertext under the same parameters, which may
    /// be the same one.
    #[must_use]
    pub fn product(self, other: &Self) -> Self {
        Self { variance: self.sizes().product(self.variance, other.variance), ..self }
    }

    /// The noise after the last prime was dropped.
    ///
    /// # Errors
    /// [`Error::Shape`] when one prime is left.
    pub fn dropped(self) -> Result<Self> {
        let params = self.params.dropped()?;
        let divisor = self.params.primes().last().map_or(1.0, |prime| prime.value as f64);
        let added = self.sizes().divided();
        Ok(Self { params, variance: self.variance / (divisor * divisor) + added, ..self })
    }

    /// Returns the bits of the largest magnitude.
    pub fn bits(&self) -> f64 {
        bits(self.variance)
    }

    /// Returns the bits from the largest magnitude to half the distance of two plaintexts, where
    /// decryption fails. Flooding and the rounding of the response come out of them.
    pub fn budget(&self) -> f64 {
        let modulus: f64 = self.params.primes().iter().map(|p| (p.value as f64).log2()).sum();
        modulus - (self.prime as f64).log2() - 1.0 - self.bits()
    }

    /// Returns whether the last prime can go at the price of a small part of a bit of the budget:
    /// what the division leaves of the noise is well above what its rounding adds.
    pub fn drops_freely(&self) -> bool {
        let divisor = self.params.primes().last().map_or(1.0, |prime| prime.value as f64);
        let left = self.variance / (divisor * divisor);
        self.params.primes().len() > 1 && left > 16.0 * self.sizes().divided()
    }

    /// Returns the bits of the largest magnitude of the flooding that
    /// [`crate::bfv::Ciphertext::respond`] adds.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the modulus does not hold a flooded response.
    pub fn flooding(&self) -> Result<u32> {
        Ok(flooding_bits(self.variance, self.flooded()?))
    }

    /// Returns the bits that flooding is above the noise: all that the modulus holds, of
    /// [`super::FLOODING`] to [`super::MOST_FLOODING`].
    ///
    /// # Errors
    /// As [`Estimate::flooding`].
    pub fn flooded(&self) -> Result<u32> {
        let none = || self.refusal();
        self.sizes().flooding(self.variance).ok_or_else(none)
    }

    fn refusal(&self) -> Error {
        Error::TooLarge(format!(
            "{} holds no response with noise of {} bits, flooded, beside slots mod {}; take \
             larger parameters, smaller slots or fewer products",
            self.params,
            self.bits().ceil(),
            self.prime
        ))
    }

    /// Returns the bits of the words of c1 and c0 in a response.
    pub fn response_bits(&self) -> [u32; 2] {
        self.sizes().response()
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the plaintext prime.
    pub const fn prime(&self) -> u64 {
        self.prime
    }

    fn sizes(&self) -> Sizes {
        Sizes::of(&self.params, self.prime)
    }
}
