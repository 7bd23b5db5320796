//! A client of BFV whose results are compared with integers.

use ring::Random;
use tacit_he::bfv::{Ciphertext, Encoder, Params, SecretKey};

/// A client's key and both parties' view of it.
pub(crate) struct Client {
    pub(crate) params: Params,
    pub(crate) encoder: Encoder,
    pub(crate) secret: SecretKey,
    pub(crate) rng: Random,
}

impl Client {
    /// A client with a plaintext prime above 2^bits.
    pub(crate) fn new(params: &Params, bits: u32) -> Self {
        let mut rng = Random::seeded(u64::from(bits));
        let encoder = Encoder::new(params, Encoder::prime_above(params, bits).unwrap()).unwrap();
        let secret = SecretKey::generate(params, &mut rng).unwrap();
        Self { params: params.clone(), encoder, secret, rng }
    }

    /// Uniform values of all slots.
    pub(crate) fn slots(&mut self) -> Vec<u64> {
        let prime = u128::from(self.encoder.prime());
        let words = self.rng.uniform(self.params.degree(), 64);
        words.iter().map(|word| ((u128::from(*word) * prime) >> 64) as u64).collect()
    }

    /// A fresh ciphertext, as the server expands it.
    pub(crate) fn encrypt(&mut self, slots: &[u64]) -> Ciphertext {
        let fresh = self.secret.encrypt(&self.encoder, slots, &mut self.rng).unwrap();
        fresh.expand(&self.params).unwrap()
    }
}
