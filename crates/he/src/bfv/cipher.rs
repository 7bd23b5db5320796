//! Ciphertexts: sums, products with plaintexts.

use std::fmt;

use super::encoder::{Encoder, Plain};
use super::params::Params;
use super::ring::domain;
use super::values::Values;
use crate::error::{Result, expect_len};
use crate::simd::ntt::Factor;
use crate::simd::residue;
use ring::Seed;

/// Separates the uniform halves of ciphertexts from every other use of a seed.
pub(crate) const CIPHER: &[u8; 4] = b"bfvc";

/// A secret-key encryption as it is sent: 16 bytes, and per prime N values.
#[derive(Clone, PartialEq, Eq)]
pub struct Fresh {
    /// Expands to the uniform half.
    pub seed: Seed,
    /// For each ciphertext prime N integers below it: values in canonical order.
    pub body: Vec<Vec<u64>>,
}

/// A ciphertext with phase `c0 + c1 * secret`, in the evaluation basis. On the server it
/// may hold the server's own share, so it is erased and prints nothing.
#[derive(Clone)]
pub struct Ciphertext {
    pub(crate) params: Params,
    /// The residues of both halves mod each prime in turn.
    pub(crate) halves: [Values; 2],
}

/// A sum of products of ciphertexts and plaintexts, reduced now and then.
pub struct Accumulator {
    sum: Ciphertext,
    /// Products since the last reduction.
    pending: usize,
    /// Products between two of them.
    lazy: usize,
}

impl Fresh {
    /// Returns the ciphertext this stands for.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when the body is not N integers below each prime.
    pub fn expand(&self, params: &Params) -> Result<Ciphertext> {
        expect_len("primes of a ciphertext", params.primes().len(), self.body.len())?;
        let mut cipher = Ciphertext::zero(params);
        let (degree, slots) = (params.degree(), params.ring().order.slots());
        let [c0, c1] = &mut cipher.halves;
        let halves = c0.chunks_exact_mut(degree).zip(c1.chunks_exact_mut(degree));
        let primes = params.primes().iter().enumerate();
        for (((i, prime), body), (c0, c1)) in primes.zip(&self.body).zip(halves) {
            prime.check("ciphertext body", body)?;
            prime.load(c0, body, slots);
            prime.load(c1, &prime.uniform(&self.seed, domain(CIPHER, 0, 0, i), degree), slots);
        }
        Ok(cipher)
    }
}

impl Ciphertext {
    /// Makes the trivial encryption of zero.
    pub fn zero(params: &Params) -> Self {
        let length = params.degree() * params.primes().len();
        Self { params: params.clone(), halves: [0, 1].map(|_| Values::zero(length)) }
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Adds another.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for other parameters.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        self.combine(other, residue::add)
    }

    /// Subtracts another.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for other parameters.
    pub fn sub(&mut self, other: &Self) -> Result<()> {
        self.combine(other, residue::subtract)
    }

    fn combine(
        &mut self,
        other: &Self,
        operation: impl Fn(crate::simd::Level, f64, &mut [f64], &[f64]),
    ) -> Result<()> {
        self.params.check("ciphertext parameters", &other.params)?;
        let (degree, level) = (self.params.degree(), self.params.ring().level);
        for (ours, theirs) in self.halves.iter_mut().zip(&other.halves) {
            let parts = ours.chunks_exact_mut(degree).zip(theirs.chunks_exact(degree));
            for (prime, (ours, theirs)) in self.params.primes().iter().zip(parts) {
                operation(level, prime.float(), ours, theirs);
            }
        }
        Ok(())
    }

    /// Adds at most N plain `slots` below p: round(q*m/p), q the ciphertext modulus.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for other parameters, too many slots or integers of p or more.
    pub fn add_slots(&mut self, encoder: &Encoder, slots: &[u64]) -> Result<()> {
        encoder.params().check_covers("encoder parameters", &self.params)?;
        let [c0, _] = &mut self.halves;
        let mut added = Values::zero(c0.len());
        encoder.add_scaled(&mut added, slots)?;
        self.params.ring().forward(&mut added);
        add(&self.params, c0, &added);
        Ok(())
    }

    /// Divides ciphertext and modulus by the last prime, rounding: slots stay, noise gets
    /// that much smaller, down to what the rounding adds, and all that follows cheaper.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] when one prime is left.
    pub fn drop_modulus(&self) -> Result<Self> {
        let params = self.params.dropped()?;
        let (degree, level) = (params.degree(), params.ring().level);
        let mut dropped = Self::zero(&params);
        for (out, half) in dropped.halves.iter_mut().zip(&self.halves) {
            let mut parts = half.chunks_exact(degree);
            let (Some(last), Some(prime)) = (parts.next_back(), self.params.primes().last()) else {
                continue;
            };
            let mut rest = Values::of(last);
            prime.transform.backward(&mut rest);
            let mut lifted = Values::zero(degree);
            let outs = out.chunks_exact_mut(degree).zip(parts);
            for (other, (out, part)) in params.primes().iter().zip(outs) {
                residue::lift(level, other.float(), &mut lifted, &rest);
                other.transform.forward(&mut lifted);
                let factor = Factor::new(other.inverse(prime.value), other.value);
                residue::scale_difference(level, other.float(), out, part, &lifted, factor);
            }
        }
        Ok(dropped)
    }

    /// The product with a plaintext.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for other parameters.
    pub fn multiply(&self, plain: &Plain) -> Result<Self> {
        plain.params().check_covers("plaintext parameters", &self.params)?;
        let mut product = Self::zero(&self.params);
        let (degree, level) = (self.params.degree(), self.params.ring().level);
        for (out, half) in product.halves.iter_mut().zip(&self.halves) {
            let factors = half.chunks_exact(degree).zip(plain.values.chunks_exact(degree));
            let parts = out.chunks_exact_mut(degree).zip(factors);
            for (prime, (out, (half, plain))) in self.params.primes().iter().zip(parts) {
                residue::multiply(level, prime.float(), out, half, plain);
            }
        }
        Ok(product)
    }
}

/// Adds residues mod each prime in turn.
pub(crate) fn add(params: &Params, sums: &mut [f64], values: &[f64]) {
    let degree = params.degree();
    let parts = sums.chunks_exact_mut(degree).zip(values.chunks_exact(degree));
    for (prime, (sums, values)) in params.primes().iter().zip(parts) {
        residue::add(params.ring().level, prime.float(), sums, values);
    }
}

impl Accumulator {
    /// Makes the empty sum.
    pub fn new(params: &Params) -> Self {
        let lazy = params.primes().iter().map(|prime| prime.transform.lazy_products());
        Self { sum: Ciphertext::zero(params), pending: 0, lazy: lazy.min().unwrap_or(1) }
    }

    /// Adds `cipher * plain`.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for other parameters.
    pub fn multiply_add(&mut self, cipher: &Ciphertext, plain: &Plain) -> Result<()> {
        let params = &self.sum.params;
        params.check("ciphertext parameters", &cipher.params)?;
        plain.params().check_covers("plaintext parameters", params)?;
        let degree = params.degree();
        for (sum, half) in self.sum.halves.iter_mut().zip(&cipher.halves) {
            let factors = half.chunks_exact(degree).zip(plain.values.chunks_exact(degree));
            let parts = sum.chunks_exact_mut(degree).zip(factors);
            for (prime, (sum, (half, plain))) in params.primes().iter().zip(parts) {
                prime.transform.multiply_add(sum, half, plain);
            }
        }
        self.pending += 1;
        if self.pending == self.lazy {
            self.reduce();
        }
        Ok(())
    }

    fn reduce(&mut self) {
        let params = &self.sum.params;
        for half in &mut self.sum.halves {
            for (prime, part) in params.primes().iter().zip(half.chunks_exact_mut(params.degree()))
            {
                prime.transform.reduce(part);
            }
        }
        self.pending = 0;
    }

    /// Returns the sum.
    pub fn finish(mut self) -> Ciphertext {
        self.reduce();
        self.sum
    }
}

impl fmt::Debug for Fresh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fresh(<{} primes>)", self.body.len())
    }
}

impl fmt::Debug for Ciphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ciphertext({})", self.params)
    }
}

impl fmt::Debug for Accumulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Accumulator({})", self.sum.params)
    }
}
