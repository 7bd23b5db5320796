//! The digest of a file: the SHA-256 of all its bytes, with zeros where its own digits stand.
//!
//! The digits stand at the same place in every file, at the beginning of the header, so that a
//! reader finds them whatever else is damaged. A later version of the file either keeps this
//! rule or begins in another way.

use super::format::corrupt;
use crate::error::{Error, Result};
use crate::model::printable;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::io::{self, Read};
use zeroize::Zeroizing;

/// How the header begins, which follows its length.
const BEGINNING: &[u8] = br#"{"__metadata__":{"digest":""#;
/// Bytes of the header's length.
const LENGTH: usize = 8;
/// Where the digits begin in the file.
const AT: usize = LENGTH + BEGINNING.len();
/// The number of digits.
const DIGITS: usize = 64;
/// What stands for the digits when they are not known yet, and when the file is hashed.
pub(super) const NONE: &str = match str::from_utf8(&[b'0'; DIGITS]) {
    Ok(zeros) => zeros,
    Err(_) => "",
};
/// Digits of a digest that an error shows.
const SHOWN: usize = 12;
/// How much is read at a time, a multiple of the size of an integer.
pub(super) const CHUNK: usize = 1 << 16;

/// Writes its digest into a file, and returns whether it is long enough to have one.
pub(crate) fn seal(file: &mut [u8]) -> bool {
    let Some(digits) = file.get_mut(AT..AT + DIGITS) else { return false };
    digits.copy_from_slice(NONE.as_bytes());
    let found = hexadecimal(Sha256::digest(&*file));
    file[AT..AT + DIGITS].copy_from_slice(found.as_bytes());
    true
}

/// The digest that a file should have by its own words, and the one that it has.
#[derive(Debug)]
pub(super) struct Digests {
    /// The digits in the file, fit for a terminal.
    pub(super) stored: String,
    /// Those of its contents.
    pub(super) found: String,
}

impl Digests {
    /// Refuses a file whose contents are not those that it was written with.
    pub(super) fn check(&self) -> Result<()> {
        if self.stored == self.found {
            return Ok(());
        }
        let start = |digits: &str| digits.chars().take(SHOWN).collect::<String>();
        let (stored, found) = (start(&self.stored), start(&self.found));
        Err(corrupt(format!(
            "damaged: its digest should be {stored}... and is {found}...; copy the file again from \
             where it was made, or compile the model again"
        )))
    }
}

/// A reader from the beginning of a file that hashes what it reads.
pub(super) struct Hashed<R> {
    source: R,
    hash: Sha256,
    /// The first bytes, to the end of the digits.
    head: Vec<u8>,
}

impl<R: Read> Hashed<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, hash: Sha256::new(), head: Vec::with_capacity(AT + DIGITS) }
    }

    /// Reads what is left of the file. Returns its digests, or nothing when it does not begin
    /// as a file that has one.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn finish(mut self) -> io::Result<Option<Digests>> {
        let mut chunk = Zeroizing::new(vec![0; CHUNK]);
        while self.read(&mut chunk)? > 0 {}
        let Some((beginning, digits)) = self.head.split_at_checked(AT) else { return Ok(None) };
        // A flipped bit spoils the beginning or a digit, never both, so that a file with one is
        // not taken for a foreign one.
        let begins = &beginning[LENGTH..] == BEGINNING;
        let counts = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        if digits.len() < DIGITS || !(begins || counts) {
            return Ok(None);
        }
        let stored = printable(&String::from_utf8_lossy(digits));
        Ok(Some(Digests { stored, found: hexadecimal(self.hash.finalize()) }))
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(out)?;
        let mut rest = &out[..count];
        if self.head.len() < AT + DIGITS {
            let (head, behind) = rest.split_at(rest.len().min(AT + DIGITS - self.head.len()));
            for byte in head {
                let digit = self.head.len() >= AT;
                self.hash.update([if digit { b'0' } else { *byte }]);
                self.head.push(*byte);
            }
            rest = behind;
        }
        self.hash.update(rest);
        Ok(count)
    }
}

fn hexadecimal(digest: impl AsRef<[u8]>) -> String {
    digest.as_ref().iter().fold(String::with_capacity(DIGITS), |mut text, byte| {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The result of reading a file, unless the file is damaged, which is then what to say.
pub(super) fn sound<T>(read: Result<T>, digests: Option<&Digests>) -> Result<T> {
    match digests {
        Some(digests) => digests.check().and(read),
        None => read.and(Err(Error::Corrupt("has no digest in its place".into()))),
    }
}
