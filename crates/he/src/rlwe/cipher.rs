//! Ciphertexts on the server: shares added, weights multiplied, products summed.

use std::fmt;

use ring::word::mask;
use ring::{Random, Seed};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::compact::Compact;
use super::ntt::{Kernel, LARGEST_COEFFICIENT, Sum, Transformed, largest_norm};
use super::params::Params;
use super::sample;
use crate::error::{Error, Result, expect_len};

/// Separates the uniform halves of ciphertexts from every other use of a seed.
pub(super) const CIPHER_DOMAIN: u64 = u64::from_le_bytes(*b"rlwe.cta");

/// A secret-key encryption as it is sent: 16 bytes and N integers of K bits.
#[derive(Clone, PartialEq, Eq)]
pub struct Fresh {
    /// Expands to the uniform half.
    pub seed: Seed,
    /// N integers mod 2^K.
    pub body: Vec<u64>,
}

/// A ciphertext with phase `c0 + c1 * secret` mod 2^K. On the server it may hold
/// the server's own share, so it is zeroized and prints nothing.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Ciphertext {
    #[zeroize(skip)]
    pub(crate) params: Params,
    pub(crate) c0: Vec<u64>,
    pub(crate) c1: Vec<u64>,
}

/// A ciphertext in the evaluation basis, ready to be multiplied.
pub struct Operand {
    pub(super) params: Params,
    pub(super) c0: Transformed,
    pub(super) c1: Transformed,
}

/// A polynomial of plain weights in the evaluation basis.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Weights {
    pub(super) poly: Stored,
    pub(super) norm: u64,
}

/// Transforms of weights, or as many of their values as differ.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) enum Stored {
    Whole(Transformed),
    Compact(Compact),
}

/// A sum of products of ciphertexts and weights.
pub struct Accumulator {
    pub(super) params: Params,
    pub(super) c0: Sum,
    pub(super) c1: Sum,
    /// What compact weights are expanded into.
    whole: Option<Transformed>,
}

impl Fresh {
    /// Returns the ciphertext that the seed and the body stand for.
    ///
    /// # Errors
    /// [`Error::Shape`] when the body is not N integers mod 2^K.
    pub fn expand(&self, params: Params) -> Result<Ciphertext> {
        self.expand_shortened(params, 0)
    }

    /// Rounds the body, N integers mod 2^K, to multiples of `2^dropped`, each up or down at random
    /// so that it is not expected to move, and keeps the K - `dropped` bits above: what is sent is
    /// shorter, and its errors grow by those of the rounding
    /// ([`super::noise::Load::unfolded`]).
    ///
    /// # Errors
    /// [`Error::Shape`] where no bit would be left.
    pub fn shorten(&mut self, params: Params, dropped: u32, rng: &mut Random) -> Result<()> {
        let bits = params.modulus_bits();
        params.check_bits("dropped bits", dropped + 1)?;
        if dropped == 0 {
            return Ok(());
        }
        let random = rng.uniform(self.body.len(), dropped);
        for (value, random) in self.body.iter_mut().zip(random) {
            *value = (value.wrapping_add(random) & mask(bits)) >> dropped;
        }
        Ok(())
    }

    /// Returns the ciphertext that the seed and the body stand for, after [`Fresh::shorten`].
    ///
    /// # Errors
    /// [`Error::Shape`] when the body is not N integers of K - `dropped` bits.
    pub fn expand_shortened(&self, params: Params, dropped: u32) -> Result<Ciphertext> {
        params.check_bits("dropped bits", dropped + 1)?;
        let (degree, bits) = (params.degree(), params.modulus_bits());
        expect_len("ciphertext body", degree, self.body.len())?;
        if self.body.iter().any(|value| value & !mask(bits - dropped) != 0) {
            return Err(Error::shape(
                "ciphertext body",
                format!("integers of {} bits", bits - dropped),
                "more",
            ));
        }
        let c0 = self.body.iter().map(|value| value << dropped).collect();
        let c1 = sample::expand(&self.seed, CIPHER_DOMAIN, degree, bits);
        Ok(Ciphertext { params, c0, c1 })
    }
}

impl Ciphertext {
    /// Returns the parameters.
    pub const fn params(&self) -> Params {
        self.params
    }

    /// Adds N plain `values` mod 2^plain_bits.
    ///
    /// # Errors
    /// [`Error::Shape`] for a wrong number of values or too many plain bits.
    pub fn add_plain(&mut self, values: &[u64], plain_bits: u32) -> Result<()> {
        let bits = self.params.modulus_bits();
        self.params.check_bits("plain bits", plain_bits)?;
        expect_len("values to add", self.params.degree(), values.len())?;
        for (c, value) in self.c0.iter_mut().zip(values) {
            *c = c.wrapping_add(value << (bits - plain_bits)) & mask(bits);
        }
        Ok(())
    }

    /// Changes to the evaluation basis. The ciphertext is consumed, so that it cannot be
    /// transformed twice.
    ///
    /// # Errors
    /// None for a ciphertext that exists.
    pub fn into_operand(self) -> Result<Operand> {
        let kernel = Kernel::of(self.params.degree())?;
        let bits = self.params.modulus_bits();
        let norm = largest_norm(bits);
        let [c0, c1] = [&self.c0, &self.c1].map(|half| kernel.unsigned(half, bits, norm));
        Ok(Operand { params: self.params, c0, c1 })
    }
}

impl Weights {
    /// Returns the most that the magnitudes of all weights in one [`Accumulator`] may add up to:
    /// 2^35 at K = 64, twice that for every bit less.
    pub const fn largest_norm(params: Params) -> u64 {
        largest_norm(params.modulus_bits())
    }

    /// Transforms N plain coefficients of magnitude at most 2^31, their magnitudes
    /// adding up to at most [`Weights::largest_norm`]. Zeros are not treated specially.
    ///
    /// # Errors
    /// [`Error::Shape`] beyond these limits.
    pub fn new(params: Params, coefficients: &[i64]) -> Result<Self> {
        expect_len("weight polynomial", params.degree(), coefficients.len())?;
        Self::short(params, coefficients)
    }

    /// Transforms the lowest coefficients, whose number divides N; the others are zero. This
    /// takes less time than [`Weights::new`].
    ///
    /// # Errors
    /// The errors of [`Weights::new`].
    pub fn short(params: Params, coefficients: &[i64]) -> Result<Self> {
        if coefficients.is_empty() || !params.degree().is_multiple_of(coefficients.len()) {
            let wanted = format!("a divisor of {}", params.degree());
            return Err(Error::shape("short weight polynomial", wanted, coefficients.len()));
        }
        let norm = Self::norm(params, coefficients)?;
        let poly = Kernel::of(params.degree())?.signed(coefficients, 2);
        Ok(Self { poly: Stored::Whole(poly), norm })
    }

    /// Transforms a polynomial in X^step from the coefficients of its powers. The result takes
    /// less memory by a factor of `step`.
    ///
    /// # Errors
    /// The errors of [`Weights::new`], and [`Error::Shape`] when `step` is no power of two
    /// that divides the degree.
    pub fn in_power(params: Params, step: usize, coefficients: &[i64]) -> Result<Self> {
        let degree = params.degree();
        if !step.is_power_of_two() || step > degree {
            return Err(Error::shape("step of weights", "a power of two within the degree", step));
        }
        expect_len("weight polynomial", degree / step, coefficients.len())?;
        let norm = Self::norm(params, coefficients)?;
        let poly = Kernel::of(degree)?.compact(coefficients, step);
        Ok(Self { poly: Stored::Compact(poly), norm })
    }

    /// The L1 norm of weights that are narrow enough.
    pub(super) fn norm(params: Params, coefficients: &[i64]) -> Result<u64> {
        // At most 4096 magnitudes of 32 bits do not overflow, and any larger one is refused.
        let (mut largest, mut norm) = (0u64, 0u64);
        for coefficient in coefficients {
            largest = largest.max(coefficient.unsigned_abs());
            norm = norm.wrapping_add(coefficient.unsigned_abs());
        }
        check_magnitudes(largest, norm, Self::largest_norm(params))?;
        Ok(norm)
    }

    /// Returns the memory of weights in X^step, in bytes.
    pub const fn bytes(params: Params, step: usize) -> usize {
        2 * 8 * params.degree() / step
    }
}

/// Refuses weights that are too large, or of which all together are: they are secret, nothing else is asked of them, and
/// the only branch is here.
#[inline(never)]
fn check_magnitudes(largest: u64, norm: u64, most: u64) -> Result<()> {
    if (largest > LARGEST_COEFFICIENT) | (norm > most) {
        let wanted = format!("at most 2^31 each and {most} together");
        return Err(Error::shape("weights", wanted, "more"));
    }
    Ok(())
}

impl Accumulator {
    /// Makes the empty sum.
    ///
    /// # Errors
    /// None for parameters that exist.
    pub fn new(params: Params) -> Result<Self> {
        let kernel = Kernel::of(params.degree())?;
        let (c0, c1) = (kernel.zero(2), kernel.zero(2));
        Ok(Self { params, c0, c1, whole: None })
    }

    /// Adds `operand * weights`.
    ///
    /// # Errors
    /// [`Error::Shape`] when parameters differ or the weights' magnitudes add up
    /// to more than [`Weights::largest_norm`].
    pub fn accumulate(&mut self, operand: &Operand, weights: &Weights) -> Result<()> {
        if operand.params != self.params {
            return Err(Error::shape("operand parameters", self.params, operand.params));
        }
        let kernel = Kernel::of(self.params.degree())?;
        let poly = match &weights.poly {
            Stored::Whole(poly) => poly,
            Stored::Compact(compact) => {
                let whole = self.whole.get_or_insert_with(|| kernel.blank());
                kernel.expand(compact, whole);
                whole
            }
        };
        kernel.accumulate(&mut self.c0, &operand.c0, poly, weights.norm)?;
        kernel.accumulate(&mut self.c1, &operand.c1, poly, weights.norm)
    }

    /// Returns the sum as a ciphertext.
    ///
    /// # Errors
    /// None for an accumulator that exists.
    pub fn finish(self) -> Result<Ciphertext> {
        let kernel = Kernel::of(self.params.degree())?;
        let bits = self.params.modulus_bits();
        let [c0, c1] = [self.c0, self.c1].map(|sum| {
            let mut values = kernel.finish(sum);
            values.iter_mut().for_each(|value| *value &= mask(bits));
            values
        });
        Ok(Ciphertext { params: self.params, c0, c1 })
    }
}

impl fmt::Debug for Fresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fresh(<{} coefficients>)", self.body.len())
    }
}

impl fmt::Debug for Ciphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ciphertext({})", self.params)
    }
}

impl fmt::Debug for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operand({})", self.params)
    }
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Weights(<hidden>)")
    }
}

impl fmt::Debug for Accumulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Accumulator({})", self.params)
    }
}
