//! The numbers of advisory locks.

use sha2::{Digest, Sha256};

/// The number of an advisory lock. Two that are the same by chance wait for each other, and no more.
pub(super) fn number(parts: &[&[u8]]) -> i64 {
    let mut hash = Sha256::new().chain_update(b"tacit ledger 1 ");
    parts.iter().for_each(|part| hash.update(part));
    let [a, b, c, d, e, f, g, h, ..] = <[u8; 32]>::from(hash.finalize());
    i64::from_le_bytes([a, b, c, d, e, f, g, h])
}
