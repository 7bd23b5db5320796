//! Model cards: what a signer says of one model file, signed with Ed25519 (RFC 8032).
//!
//! A card is JSON with the fields of [`Card`] in their order, and `signature` last. What is signed
//! is `tacit model card v1` and the JSON of the card without its signature; both parties write
//! that JSON anew from the fields, so that there is one text for each card.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rcgen::{KeyPair, PKCS_ED25519, SigningKey};
use runtime::{MOST_CARD, digest_of, hexadecimal};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::alg_id;
use serde::{Deserialize, Serialize};
use wire::{Error, Result};
use zeroize::Zeroizing;

const DOMAIN: &[u8] = b"tacit model card v1";
/// Most characters of a name, a version and a description.
const LONGEST: [usize; 3] = [128, 64, 1024];
/// Longest file that is read as a key.
const LONGEST_KEY: u64 = 1 << 16;

/// What a signer says of a model file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Card {
    /// The model's name, 1 to 128 characters.
    pub name: String,
    /// Its version, at most 64 characters.
    pub version: String,
    /// What it is for, at most 1,024 characters.
    pub description: String,
    /// The commitment to the model file, 64 hexadecimal digits in lower case.
    pub commitment: String,
    /// The signer's public key, as many.
    pub key: String,
}

/// A card as it is written: the fields of [`Card`], then its signature, and no others.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signed {
    name: String,
    version: String,
    description: String,
    commitment: String,
    key: String,
    signature: String,
}

impl Card {
    /// Signs what `name`, `version` and `description` say of the file with this commitment, by the
    /// key in the PEM file `key`. Returns the card's JSON, which a server shows.
    ///
    /// # Errors
    /// [`Error::Misuse`] for texts that are too long or have control characters, and for a file
    /// that holds no Ed25519 key or that others than its owner may read.
    pub fn sign(
        [name, version, description]: [&str; 3],
        commitment: &[u8; 32],
        key: &str,
    ) -> Result<String> {
        let pair = signer(key)?;
        let card = Self {
            name: name.into(),
            version: version.into(),
            description: description.into(),
            commitment: hexadecimal(commitment),
            key: digits(pair.public_key_raw()),
        };
        card.check().map_err(Error::misuse)?;
        let signature = pair.sign(&card.message()?);
        let signature = signature.map_err(|e| Error::internal(format!("cannot sign: {e}")))?;
        let Self { name, version, description, commitment, key } = card;
        let signature = digits(&signature);
        json(&Signed { name, version, description, commitment, key, signature })
    }

    /// Reads a card and verifies that the key in it signed it.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn verified(text: &str) -> Result<Self, String> {
        if text.len() > MOST_CARD {
            return Err(format!("it has more than {MOST_CARD} bytes"));
        }
        let signed: Signed = serde_json::from_str(text)
            .map_err(|_| "it has other fields than a card".to_string())?;
        let Signed { name, version, description, commitment, key, signature } = signed;
        let card = Self { name, version, description, commitment, key };
        card.check()?;
        let key = digest_of(&card.key).ok_or("its key has not 64 hexadecimal digits")?;
        let (first, second) = signature.split_at_checked(64).unwrap_or_default();
        let signature = digest_of(first).zip(digest_of(second)).map(|(a, b)| [a, b].concat());
        let signature = signature.ok_or("its signature has not 128 hexadecimal digits")?;
        let algorithms = default_provider().signature_verification_algorithms.all;
        let ed25519 = algorithms.iter().find(|one| one.public_key_alg_id() == alg_id::ED25519);
        let ed25519 = ed25519.ok_or("this release has no Ed25519")?;
        let message = card.message().map_err(|error| error.to_string())?;
        ed25519
            .verify_signature(&key, &message, &signature)
            .map_err(|_| "its signature does not hold".to_string())?;
        Ok(card)
    }

    /// What is wrong with the texts, if anything is.
    fn check(&self) -> Result<(), String> {
        let Self { name, version, description, commitment, .. } = self;
        let texts = [("name", name), ("version", version), ("description", description)];
        for ((what, text), most) in texts.into_iter().zip(LONGEST) {
            if text.chars().count() > most || text.chars().any(char::is_control) {
                return Err(format!("its {what} is one line of at most {most} characters"));
            }
        }
        if name.is_empty() {
            return Err("it has no name".into());
        }
        match digest_of(commitment) {
            Some(digest) if hexadecimal(&digest) == *commitment => Ok(()),
            _ => Err("its commitment has not 64 hexadecimal digits in lower case".into()),
        }
    }

    /// What is signed.
    fn message(&self) -> Result<Vec<u8>> {
        Ok([DOMAIN, json(self)?.as_bytes()].concat())
    }
}

/// Makes the key of a signer in a new file that its owner alone may read (PKCS #8, PEM), and
/// returns its public half, 64 hexadecimal digits.
///
/// # Errors
/// [`Error::Misuse`] for a file that is there already or cannot be made.
pub fn make_signer(file: &str) -> Result<String> {
    let cannot = |why: String| Error::misuse(format!("cannot make the key `{file}`: {why}"));
    let pair = KeyPair::generate_for(&PKCS_ED25519).map_err(|e| cannot(e.to_string()))?;
    let pem = Zeroizing::new(pair.serialize_pem());
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let written = opened
        .and_then(|mut opened| opened.write_all(pem.as_bytes()).and_then(|()| opened.sync_all()));
    written.map_err(|e| cannot(e.to_string()))?;
    Ok(digits(pair.public_key_raw()))
}

/// The key of a signer out of its file.
fn signer(file: &str) -> Result<KeyPair> {
    let refused = |why: String| Error::misuse(format!("the signer's key `{file}` {why}"));
    let cannot = |e: std::io::Error| refused(format!("cannot be read: {e}"));
    let opened = File::open(Path::new(file)).map_err(cannot)?;
    if opened.metadata().map_err(cannot)?.permissions().mode() & 0o077 != 0 {
        return Err(refused("may be read by others than its owner: chmod 600".into()));
    }
    let mut pem = Zeroizing::new(String::with_capacity(LONGEST_KEY as usize));
    opened.take(LONGEST_KEY).read_to_string(&mut pem).map_err(cannot)?;
    let pair = KeyPair::from_pem_and_sign_algo(&pem, &PKCS_ED25519);
    pair.map_err(|e| refused(format!("is no Ed25519 key: {e}")))
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::internal(format!("a card without JSON: {e}")))
}

/// The text of the card in `file`, which is about the model file of this commitment, and the card.
pub(crate) fn shown(file: &str, commitment: Option<&[u8; 32]>) -> Result<(String, Card)> {
    let bad =
        |why: String| Error::misuse(format!("the model card `{file}` cannot be shown: {why}"));
    let mut text = String::new();
    let opened = File::open(file).and_then(|opened| {
        // One byte more than a card may have, which is then too long.
        opened.take(MOST_CARD as u64 + 1).read_to_string(&mut text)
    });
    opened.map_err(|e| bad(e.to_string()))?;
    if text.len() > MOST_CARD {
        return Err(bad(format!("it has more than {MOST_CARD} bytes")));
    }
    let text = text.trim_end().to_string();
    let card = Card::verified(&text).map_err(bad)?;
    match commitment.map(hexadecimal) {
        Some(commitment) if commitment == card.commitment => Ok((text, card)),
        _ => Err(bad("it is about another model file".into())),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn signed(texts: [&str; 3]) -> Result<String> {
        let file = tempfile::tempdir().unwrap();
        let key = file.path().join("signer.pem").to_str().unwrap().to_string();
        let public = make_signer(&key)?;
        assert!(make_signer(&key).is_err(), "a key was overwritten");
        let card = Card::sign(texts, &[7; 32], &key)?;
        assert_eq!(Card::verified(&card).unwrap().key, public);
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).unwrap();
        let refused = Card::sign(texts, &[7; 32], &key).unwrap_err().to_string();
        assert!(refused.contains("chmod 600"), "{refused}");
        Ok(card)
    }

    #[test]
    fn a_card_holds_until_a_byte_changes() {
        let card = signed(["digits", "1.2", "Reads \"digits\", ü"]).unwrap();
        let read = Card::verified(&card).unwrap();
        assert_eq!((read.name.as_str(), read.version.as_str()), ("digits", "1.2"));
        assert_eq!(read.commitment, "07".repeat(32));
        for (from, to) in [
            ("digits", "digitz"),
            ("1.2", "1.3"),
            ("Reads", "reads"),
            ("0707", "0708"),
            ("\"signature\":\"", "\"signature\":\"00"),
        ] {
            let changed = card.replacen(from, to, 1);
            assert_ne!(changed, card);
            assert!(Card::verified(&changed).is_err(), "{changed}");
        }
        let mut other = card.clone();
        let last = other.len() - 3;
        let digit = if other.as_bytes()[last] == b'0' { "1" } else { "0" };
        other.replace_range(last..=last, digit);
        assert_eq!(Card::verified(&other), Err("its signature does not hold".into()));
        for none in ["", "{}", "null", &card.replacen("{", "{\"more\":1,", 1)] {
            assert!(Card::verified(none).unwrap_err().contains("other fields"), "{none}");
        }
    }

    #[test]
    fn the_key_of_a_card_is_its_signers() {
        let [first, second] = [signed(["a", "", ""]).unwrap(), signed(["a", "", ""]).unwrap()];
        let key = |card: &str| Card::verified(card).unwrap().key;
        let forged = first.replacen(&key(&first), &key(&second), 1);
        assert_eq!(Card::verified(&forged), Err("its signature does not hold".into()));
    }

    #[test]
    fn texts_are_short_lines() {
        for texts in [["", "", ""], ["a\n", "", ""], ["a", "", "\u{1b}[2J"]] {
            assert!(signed(texts).is_err(), "{texts:?}");
        }
        assert!(signed(["a", "", &"b".repeat(1025)]).is_err());
        assert!(signed([&"ü".repeat(128), &"v".repeat(64), &"b".repeat(1024)]).is_ok());
    }
}
