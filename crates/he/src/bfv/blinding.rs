//! What a response adds to its ciphertext, prepared before there is one.

use std::fmt;

use ring::Random;

use super::cipher::Ciphertext;
use super::encoder::Encoder;
use super::key::PublicKey;
use super::noise::{Estimate, Load};
use super::response::Response;
use crate::error::{Error, Result};

/// Mask, encryption of zero and flooding of one response, which uses them up.
pub struct Blinding {
    /// As coefficients.
    masked: Ciphertext,
    flooding: u32,
    prime: u64,
}

impl Blinding {
    /// For a response to a ciphertext that went through `load`, with a mask of N integers
    /// uniform below p.
    ///
    /// # Errors
    /// The errors of [`Ciphertext::respond`].
    pub fn prepare(
        key: &PublicKey,
        encoder: &Encoder,
        mask: &[u64],
        load: &Load,
        rng: &mut Random,
    ) -> Result<Self> {
        let noise = Estimate::of(encoder, load)?;
        let zero = Ciphertext::zero(encoder.params());
        let masked = zero.masked(key, encoder, mask, &noise, rng)?;
        Ok(Self { masked, flooding: noise.flooding()?, prime: encoder.prime() })
    }
}

impl Ciphertext {
    /// Gives the response of [`Ciphertext::respond`] from what was prepared.
    ///
    /// # Errors
    /// [`Error::Shape`] for other parameters, another prime, or less flooding than `load` needs.
    pub fn respond_prepared(
        mut self,
        encoder: &Encoder,
        load: &Load,
        blinding: Blinding,
    ) -> Result<Response> {
        let flooding = Estimate::of(encoder, load)?.flooding()?;
        if blinding.flooding < flooding || blinding.prime != encoder.prime() {
            let wanted = format!("{flooding} bits of flooding mod {}", encoder.prime());
            let got = format!("{} mod {}", blinding.flooding, blinding.prime);
            return Err(Error::shape("blinding", wanted, got));
        }
        encoder.params().check("encoder parameters", &self.params)?;
        let params = self.params.clone();
        for half in &mut self.halves {
            params.ring().backward(half);
        }
        self.add(&blinding.masked)?;
        Ok(self.shortened(encoder))
    }
}

impl fmt::Debug for Blinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blinding({})", self.masked.params())
    }
}
