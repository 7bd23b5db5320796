//! What binds hashes to one session and one direction.

use sha2::{Digest, Sha256};
use wire::Role;

/// Public identifier of a session: a hash of both parties' fresh nonces. Two
/// setups must never share one in the same direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionId(pub [u8; 32]);

/// A session and the party that holds Delta in it: everything hashed in one
/// direction starts with these.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Domain {
    session: SessionId,
    cot_sender: Role,
}

impl Domain {
    pub(crate) const fn new(session: SessionId, cot_sender: Role) -> Self {
        Self { session, cot_sender }
    }

    /// SHA-256 of label, session, direction and `parts`. Under one label the
    /// parts always have the same lengths, so that the encoding is injective.
    pub(crate) fn digest(&self, label: &[u8; 8], parts: &[&[u8]]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"tacit ot");
        hash.update(label);
        hash.update(self.session.0);
        hash.update([u8::from(self.cot_sender == Role::Server)]);
        for part in parts {
            hash.update(part);
        }
        hash.finalize().into()
    }

    /// The words of [`Domain::digest`].
    pub(crate) fn words(&self, label: &[u8; 8], parts: &[&[u8]]) -> [u64; 4] {
        let digest = self.digest(label, parts);
        let (words, _) = digest.as_chunks();
        std::array::from_fn(|at| u64::from_le_bytes(words[at]))
    }

    /// Two 128-bit values out of [`Domain::digest`].
    pub(crate) fn blocks(&self, label: &[u8; 8], parts: &[&[u8]]) -> [u128; 2] {
        let digest = u128_pair(self.digest(label, parts));
        [digest.0, digest.1]
    }
}

fn u128_pair(bytes: [u8; 32]) -> (u128, u128) {
    let (mut low, mut high) = ([0; 16], [0; 16]);
    low.copy_from_slice(&bytes[..16]);
    high.copy_from_slice(&bytes[16..]);
    (u128::from_le_bytes(low), u128::from_le_bytes(high))
}
