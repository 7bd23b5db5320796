//! Products of ciphertexts with one integer for all slots: noise grows by the integer, not
//! by the plaintext prime.

use std::fmt;

use super::cipher::Ciphertext;
use super::params::Params;
use crate::error::Result;
use crate::simd::ntt::Factor;
use crate::simd::residue;

/// An integer that ciphertexts are multiplied by, mod every ciphertext prime.
#[derive(Clone)]
pub struct Scalar {
    params: Params,
    factors: Vec<Factor>,
}

impl Scalar {
    /// For ciphertexts of these parameters, or with fewer primes.
    pub fn new(params: &Params, value: i64) -> Self {
        let residue = |prime: u64| value.rem_euclid(prime as i64) as u64;
        let factor = |prime: &super::ring::Prime| Factor::new(residue(prime.value), prime.value);
        Self { factors: params.primes().iter().map(factor).collect(), params: params.clone() }
    }
}

impl Ciphertext {
    /// Adds `cipher * scalar`.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for other parameters.
    pub fn add_scaled(&mut self, cipher: &Self, scalar: &Scalar) -> Result<()> {
        self.params.check("ciphertext parameters", &cipher.params)?;
        scalar.params.check_covers("scalar parameters", &self.params)?;
        let (degree, level) = (self.params.degree(), self.params.ring().level);
        for (sums, half) in self.halves.iter_mut().zip(&cipher.halves) {
            let parts = sums.chunks_exact_mut(degree).zip(half.chunks_exact(degree));
            let primes = self.params.primes().iter().zip(&scalar.factors);
            for ((prime, factor), (sums, half)) in primes.zip(parts) {
                residue::add_scaled(level, prime.float(), sums, half, *factor);
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scalar(<hidden>)")
    }
}
