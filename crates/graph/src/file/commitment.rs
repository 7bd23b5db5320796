//! The commitment to a model file: it tells clients that a server still has the same model, and
//! nothing of its weights.
//!
//! It is the SHA-256 of `tacit model v1`, the salt and the digest of the file, all three as text.
//! The salt is drawn at random when the file is written and stays in it, so that who knows the
//! commitment cannot try out which of the models that it can think of has it. Nobody finds another
//! file with the same commitment as long as nobody finds collisions of SHA-256.

use super::format::{Entries, corrupt};
use crate::error::{Error, Result};
use ring::Random;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Name of the entry that holds the salt.
pub(super) const SALT: &str = "salt";
const DOMAIN: &[u8] = b"tacit model v1";
/// Hexadecimal digits of a salt.
const DIGITS: usize = 64;

/// `entries` with a salt, which is drawn where they have none.
///
/// # Errors
/// [`Error::Misuse`] for a salt that is none, [`Error::Io`] when the operating system gives no
/// randomness.
pub(super) fn salted(entries: &Entries) -> Result<Entries> {
    let mut entries = entries.clone();
    if let Some(salt) = entries.get(SALT) {
        let bad = || Error::Misuse(format!("a salt has {DIGITS} hexadecimal digits"));
        return if is_salt(salt) { Ok(entries) } else { Err(bad()) };
    }
    let mut rng = Random::from_os()
        .map_err(|e| Error::Io(format!("no entropy from the system for a salt: {e}")))?;
    let mut bytes = [0; DIGITS / 2];
    rng.fill(&mut bytes);
    let digits = bytes.iter().fold(String::with_capacity(DIGITS), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    entries.insert(SALT.into(), digits);
    Ok(entries)
}

/// The commitment to a file of this salt and digest; none where it has no salt.
///
/// # Errors
/// [`Error::Corrupt`] for a salt that is none.
pub(super) fn commitment(salt: Option<&String>, digest: &str) -> Result<Option<[u8; 32]>> {
    let Some(salt) = salt else { return Ok(None) };
    if !is_salt(salt) {
        return Err(corrupt("has a salt that is none"));
    }
    let hash = Sha256::new().chain_update(DOMAIN).chain_update(salt).chain_update(digest);
    Ok(Some(hash.finalize().into()))
}

fn is_salt(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}
