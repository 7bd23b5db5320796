//! The file with a client's secret key of suite `lola`, encrypted under a passphrase.
//!
//! Such a file is, in this order: the magic word, the kind, the digest of the plan and the nonce of
//! all files of the suite, the version of what follows (1), a salt, a check of the passphrase, and
//! the secret, encrypted. Argon2id (RFC 9106, its second recommendation: 64 MiB, three passes, four
//! lanes) makes 64 bytes of passphrase and salt: the key of ChaCha20-Poly1305 (RFC 8439), then
//! the check. A salt is used once, so the nonce of the cipher is zero; what stands before the
//! ciphertext is authenticated with it.

use argon2::{Algorithm, Argon2, Block, Params, Version};
use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, Nonce};
use ring::Random;
use subtle::ConstantTimeEq;
use wire::{Error, Result};
use zeroize::{Zeroize, Zeroizing};

use super::files::{HEADER, KIND, Kind, MAGIC};

/// Version of the encryption.
const VERSION: u8 = 1;
const SALT: usize = 32;
const CHECK: usize = 32;
/// Bytes behind the header and before the ciphertext.
const OWN: usize = 1 + SALT + CHECK;
const TAG: usize = 16;
/// Kibibytes, passes and lanes of Argon2id.
const COSTS: [u32; 3] = [64 << 10, 3, 4];

/// Encrypts the file of a secret key under a passphrase.
///
/// # Errors
/// [`Error::Misuse`] for an empty passphrase and a file of something else or one that is encrypted
/// already, [`Error::Transport`] when the operating system gives no randomness.
pub fn seal_secret(file: &[u8], passphrase: &str) -> Result<Vec<u8>> {
    let (header, body) = file.split_at_checked(HEADER).unwrap_or_default();
    if !header.starts_with(MAGIC) || header.get(KIND) != Some(&(Kind::Secret as u8)) {
        return Err(Error::misuse("only the file of a secret key is encrypted"));
    }
    if passphrase.is_empty() {
        return Err(Error::misuse("an empty passphrase protects nothing"));
    }
    let mut salt = [0; SALT];
    let no_entropy = |e| Error::transport(format!("no entropy from the system: {e}"));
    Random::from_os().map_err(no_entropy)?.fill(&mut salt);
    let derived = derived(passphrase, &salt)?;
    let mut sealed = header.to_vec();
    sealed.iter_mut().skip(KIND).take(1).for_each(|kind| *kind = Kind::Sealed as u8);
    sealed.push(VERSION);
    sealed.extend(salt);
    sealed.extend(derived.check());
    let mut secret = Zeroizing::new(Vec::with_capacity(body.len() + TAG));
    secret.extend_from_slice(body);
    let encrypted = derived.cipher()?.encrypt_in_place(&Nonce::default(), &sealed, &mut *secret);
    encrypted.map_err(|_| Error::internal("a secret that cannot be encrypted"))?;
    sealed.extend_from_slice(&secret);
    Ok(sealed)
}

/// Opens the file of a secret key with the passphrase that it needs; one that is not encrypted
/// needs none.
///
/// # Errors
/// [`Error::Misuse`] for a wrong passphrase, none where one is needed, and a file that is damaged
/// or of a later version.
pub fn open_secret(file: &[u8], passphrase: Option<&str>) -> Result<Zeroizing<Vec<u8>>> {
    let (header, rest) = file.split_at_checked(HEADER).unwrap_or_default();
    if !header.starts_with(MAGIC) || header.get(KIND) != Some(&(Kind::Sealed as u8)) {
        // What else is wrong with it is told by who reads it.
        return Ok(Zeroizing::new(file.to_vec()));
    }
    let passphrase = passphrase.ok_or_else(|| {
        Error::misuse("the secret key is encrypted: its passphrase is needed (--passphrase-file)")
    })?;
    let damaged = || Error::misuse("the file of the secret key is damaged");
    let (own, ciphertext) = rest.split_at_checked(OWN).ok_or_else(damaged)?;
    let (version, own) = own.split_first().ok_or_else(damaged)?;
    if *version != VERSION {
        let why = format!("the secret key is encrypted in a way of a later release ({version})");
        return Err(Error::misuse(why));
    }
    let (salt, check) = own.split_first_chunk::<SALT>().ok_or_else(damaged)?;
    let derived = derived(passphrase, salt)?;
    if !bool::from(derived.check().ct_eq(check)) {
        return Err(Error::misuse("the passphrase of the secret key is wrong"));
    }
    let (bound, _) = file.split_at_checked(HEADER + OWN).ok_or_else(damaged)?;
    let mut secret = Zeroizing::new(ciphertext.to_vec());
    let opened = derived.cipher()?.decrypt_in_place(&Nonce::default(), bound, &mut *secret);
    opened.map_err(|_| damaged())?;
    let mut plain = Zeroizing::new(Vec::with_capacity(HEADER + secret.len()));
    plain.extend_from_slice(header);
    plain.iter_mut().skip(KIND).take(1).for_each(|kind| *kind = Kind::Secret as u8);
    plain.extend_from_slice(&secret);
    Ok(plain)
}

/// What a passphrase and a salt give.
struct Derived(Zeroizing<[u8; 32 + CHECK]>);

impl Derived {
    fn cipher(&self) -> Result<ChaCha20Poly1305> {
        let (key, _) = self.0.split_at(32);
        ChaCha20Poly1305::new_from_slice(key)
            .map_err(|_| Error::internal("a key of another length"))
    }

    fn check(&self) -> &[u8] {
        self.0.split_at(32).1
    }
}

fn derived(passphrase: &str, salt: &[u8; SALT]) -> Result<Derived> {
    let [memory, passes, lanes] = COSTS;
    let refused = |e: argon2::Error| Error::misuse(format!("the passphrase cannot be used: {e}"));
    let params = Params::new(memory, passes, lanes, Some(32 + CHECK)).map_err(refused)?;
    let mut blocks = vec![Block::default(); params.block_count()];
    let mut out = Zeroizing::new([0; 32 + CHECK]);
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let hashed =
        argon.hash_password_into_with_memory(passphrase.as_bytes(), salt, &mut *out, &mut blocks);
    blocks.zeroize();
    hashed.map_err(refused)?;
    Ok(Derived(out))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A file with a secret of three bytes.
    fn plain() -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.push(Kind::Secret as u8);
        file.extend((0..64).chain([1, 2, 0]));
        file
    }

    fn words(file: &[u8], passphrase: Option<&str>) -> String {
        open_secret(file, passphrase).unwrap_err().to_string()
    }

    #[test]
    fn a_secret_comes_back_with_its_passphrase_alone() {
        let sealed = seal_secret(&plain(), "correct horse").unwrap();
        assert_eq!(sealed.len(), plain().len() + OWN + TAG);
        assert_eq!(sealed[KIND + 1..HEADER], plain()[KIND + 1..HEADER]);
        assert_eq!(*open_secret(&sealed, Some("correct horse")).unwrap(), plain());
        assert!(words(&sealed, None).contains("its passphrase is needed"));
        for wrong in ["", "correct", "correct horse\n", "Correct horse"] {
            assert!(words(&sealed, Some(wrong)).contains("passphrase of the secret key is wrong"));
        }
        assert_ne!(sealed, seal_secret(&plain(), "correct horse").unwrap(), "one salt twice");
    }

    #[test]
    fn what_was_not_encrypted_is_read_as_it_is() {
        for passphrase in [None, Some("whatever")] {
            assert_eq!(*open_secret(&plain(), passphrase).unwrap(), plain());
            assert_eq!(*open_secret(b"none", passphrase).unwrap(), b"none");
        }
    }

    #[test]
    fn changed_files_are_refused() {
        let sealed = seal_secret(&plain(), "x").unwrap();
        let changed = |at: usize| {
            let mut file = sealed.clone();
            file[at] ^= 1;
            words(&file, Some("x"))
        };
        assert!(changed(HEADER).contains("later release"));
        assert!(changed(HEADER + 1).contains("is wrong"), "another salt");
        assert!(changed(HEADER + 1 + SALT).contains("is wrong"), "another check");
        for at in [KIND + 1, HEADER - 1, HEADER + OWN, sealed.len() - 1] {
            assert!(changed(at).contains("is damaged"), "byte {at}");
        }
        for length in [HEADER, HEADER + 1, HEADER + OWN, sealed.len() - 1] {
            assert!(words(&sealed[..length], Some("x")).contains("is damaged"), "{length}");
        }
    }

    #[test]
    fn nothing_else_is_encrypted() {
        let sealed = seal_secret(&plain(), "x").unwrap();
        for file in [&sealed, &plain()[..20].to_vec(), &Vec::new()] {
            let refused = seal_secret(file, "x").unwrap_err().to_string();
            assert!(refused.contains("only the file of a secret key"), "{refused}");
        }
        assert!(seal_secret(&plain(), "").is_err());
    }
}
