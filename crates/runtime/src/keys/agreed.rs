//! What a handshake leaves to both parties, and the seeds that follow from it.

use ring::Seed;
use sha2::{Digest, Sha256};

/// What both parties hold after the handshake.
pub struct Agreed {
    /// Inputs of this session.
    pub(crate) inputs: usize,
    /// Binds everything that follows to what both parties drew and to the plan.
    pub session: [u8; 32],
}

impl Agreed {
    /// What both parties hold who drew these nonces and accepted the plan of this digest.
    pub(crate) fn new(
        inputs: u32,
        client: &[u8; 32],
        server: &[u8; 32],
        digest: &[u8; 32],
    ) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"tacit session v1");
        hash.update(client);
        hash.update(server);
        hash.update(digest);
        Self { inputs: inputs as usize, session: hash.finalize().into() }
    }

    /// What both parties hold who use the base OTs of this name, the client having drawn a nonce,
    /// for the plan of this digest. No other session has the name, to which both have contributed.
    pub(crate) fn resumed(
        inputs: u32,
        client: &[u8; 32],
        kept: &[u8; 32],
        digest: &[u8; 32],
    ) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"tacit resumed session v1");
        hash.update(client);
        hash.update(kept);
        hash.update(digest);
        Self { inputs: inputs as usize, session: hash.finalize().into() }
    }

    /// The seed of the public half of the key for ring degree `degree`, a hash of the session.
    pub(crate) fn key_seed(&self, degree: usize) -> Seed {
        self.seed(b"tacit public key v1", degree as u64)
    }

    /// A public seed, a hash of the session, of what `label` names.
    pub(crate) fn seed(&self, label: &[u8], number: u64) -> Seed {
        let mut hash = Sha256::new();
        hash.update(label);
        hash.update(self.session);
        hash.update(number.to_le_bytes());
        let mut seed = Seed([0; 16]);
        seed.0.iter_mut().zip(hash.finalize()).for_each(|(to, from)| *to = from);
        seed
    }
}
