//! The client's keys.

use std::fmt;

use ring::word::mask;
use ring::{Random, Seed};
use zeroize::Zeroizing;

use super::cipher::{CIPHER_DOMAIN, Fresh};
use super::ntt::{Kernel, Transformed};
use super::params::Params;
use super::response::Response;
use super::sample;
use crate::error::{Error, Result, expect_len};

/// Separates the uniform half of the public key.
pub(super) const PUBLIC_DOMAIN: u64 = u64::from_le_bytes(*b"rlwe.pka");

/// A ternary secret. Serves every modulus up to that of its parameters
/// ([`Params::within`]). Zeroized on drop, prints nothing.
pub struct SecretKey {
    params: Params,
    secret: Transformed,
}

/// An encryption of zero that the server re-randomises its responses with.
/// Serves every modulus up to that of its parameters.
pub struct PublicKey {
    params: Params,
    body: Vec<u64>,
    pub(crate) a: Transformed,
    pub(crate) b: Transformed,
}

impl SecretKey {
    /// Makes a fresh secret. One per session.
    ///
    /// # Errors
    /// None for parameters that exist.
    pub fn generate(params: Params, rng: &mut Random) -> Result<Self> {
        let kernel = Kernel::of(params.degree())?;
        let secret = kernel.signed(&sample::ternary(rng, params.degree()), 2);
        Ok(Self { params, secret })
    }

    /// Returns the parameters, with the largest modulus this key serves.
    pub const fn params(&self) -> Params {
        self.params
    }

    /// Returns the public key for `seed`, which must come from a hash of both parties' nonces: a
    /// key with a chosen uniform half would unmask responses.
    ///
    /// # Errors
    /// None for parameters that exist.
    pub fn public_key(&self, seed: &Seed, rng: &mut Random) -> Result<PublicKey> {
        let (degree, bits) = (self.params.degree(), self.params.modulus_bits());
        let a = sample::expand(seed, PUBLIC_DOMAIN, degree, bits);
        let product = self.times_secret(&a, bits)?;
        let error = sample::narrow(rng, degree);
        let body = product.iter().zip(error.iter());
        let body = body.map(|(p, e)| (*e as u64).wrapping_sub(*p) & mask(bits)).collect();
        PublicKey::within(self.params, seed, body)
    }

    /// Encrypts N `values` mod 2^plain_bits, lifted to the top of the modulus.
    /// Every call draws a new seed.
    ///
    /// # Errors
    /// [`Error::Shape`] for parameters beyond this key, a wrong number of values
    /// or more plain bits than modulus bits.
    pub fn encrypt(
        &self,
        params: Params,
        values: &[u64],
        plain_bits: u32,
        rng: &mut Random,
    ) -> Result<Fresh> {
        params.check_within(&self.params)?;
        params.check_bits("plain bits", plain_bits)?;
        expect_len("values to encrypt", params.degree(), values.len())?;
        let (degree, bits) = (params.degree(), params.modulus_bits());
        let seed = rng.seed();
        let a = sample::expand(&seed, CIPHER_DOMAIN, degree, bits);
        let product = self.times_secret(&a, bits)?;
        let error = sample::narrow(rng, degree);
        let hidden = product.iter().zip(error.iter()).zip(values);
        let body = hidden.map(|((p, e), value)| {
            let lifted = value << (bits - plain_bits);
            lifted.wrapping_add(*e as u64).wrapping_sub(*p) & mask(bits)
        });
        Ok(Fresh { seed, body: body.collect() })
    }

    /// Returns the phases mod 2^K' of the coefficients `keep` that the response carries.
    ///
    /// # Errors
    /// [`Error::Shape`] when the response has other lengths or widths.
    pub fn decrypt(&self, response: &Response, keep: &[usize]) -> Result<Zeroizing<Vec<u64>>> {
        let bits = response.bits;
        self.params.check_bits("response bits", bits)?;
        expect_len("response c1", self.params.degree(), response.c1.len())?;
        expect_len("response c0", keep.len(), response.c0.len())?;
        let product = self.times_secret(&response.c1, bits)?;
        let phases = keep.iter().zip(&response.c0).map(|(index, c0)| {
            let product = product.get(*index).ok_or_else(|| {
                Error::shape("kept coefficient", format!("below {}", product.len()), index)
            })?;
            Ok(c0.wrapping_add(*product) & mask(bits))
        });
        phases.collect::<Result<Vec<u64>>>().map(Zeroizing::new)
    }

    /// `a`, mod 2^bits, times the secret.
    pub(super) fn times_secret(&self, a: &[u64], bits: u32) -> Result<Zeroizing<Vec<u64>>> {
        let kernel = Kernel::of(self.params.degree())?;
        let norm = self.params.degree() as u64;
        kernel.product(&kernel.unsigned(a, bits, norm), &self.secret, norm).map(Zeroizing::new)
    }
}

impl SecretKey {
    /// The secret's coefficients mod 2^64.
    pub(super) fn coefficients(&self) -> Result<Zeroizing<Vec<u64>>> {
        let mut one = vec![0; self.params.degree()];
        one.iter_mut().take(1).for_each(|first| *first = 1);
        self.times_secret(&one, self.params.modulus_bits())
    }
}

impl PublicKey {
    /// From the agreed seed and the N integers mod 2^K that the client sent.
    ///
    /// # Errors
    /// [`Error::Shape`] for a wrong length or integers beyond the modulus.
    pub fn new(params: Params, seed: &Seed, body: Vec<u64>) -> Result<Self> {
        let (degree, bits) = (params.degree(), params.modulus_bits());
        expect_len("public key", degree, body.len())?;
        if body.iter().any(|value| value & !mask(bits) != 0) {
            return Err(Error::shape("public key", format!("integers of {bits} bits"), "more"));
        }
        Self::within(params, seed, body)
    }

    /// The key of N integers that are known to be below the modulus.
    fn within(params: Params, seed: &Seed, body: Vec<u64>) -> Result<Self> {
        let (degree, bits) = (params.degree(), params.modulus_bits());
        let kernel = Kernel::of(degree)?;
        let norm = degree as u64;
        let a = kernel.unsigned(&sample::expand(seed, PUBLIC_DOMAIN, degree, bits), bits, norm);
        let b = kernel.unsigned(&body, bits, norm);
        Ok(Self { params, body, a, b })
    }

    /// Returns the parameters, with the largest modulus this key serves.
    pub const fn params(&self) -> Params {
        self.params
    }

    /// Returns the N integers mod 2^K to send.
    pub fn body(&self) -> &[u64] {
        &self.body
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({}, <hidden>)", self.params)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.params)
    }
}
