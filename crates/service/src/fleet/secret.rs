//! The secret that the door of a fleet and its servers share, in a file of its own.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use aws_lc_rs::hmac;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::tokens::{bytes, hexadecimal};

/// Bits of a file's mode that let others than its owner at it.
const OTHERS: u32 = 0o077;

/// 32 secret bytes, of which codes are made by HMAC-SHA-256 (RFC 2104).
#[derive(Clone)]
pub(crate) struct Secret(Zeroizing<[u8; 32]>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(<32 bytes>)")
    }
}

impl Secret {
    /// Reads the secret in `path`, which is made where there is none and `create` says so: for its
    /// owner alone, and all of it or nothing.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a file that others may read, that holds no secret, or that is missing;
    /// [`Error::Random`].
    pub(crate) fn from_file(path: &Path, create: bool) -> Result<Self> {
        let named = |why: String| {
            Error::misuse(format!("the secret of the fleet in `{}` {why}", path.display()))
        };
        match read(path) {
            Ok(found) => return found.map_err(named),
            Err(e) if e.kind() == ErrorKind::NotFound && create => {}
            Err(e) if e.kind() == ErrorKind::NotFound => {
                let why = "is missing: start the door first, which makes it, and copy the file";
                return Err(named(why.into()));
            }
            Err(e) => return Err(named(format!("cannot be read: {e}"))),
        }
        let mut fresh = Zeroizing::new([0; 32]);
        getrandom::fill(fresh.as_mut()).map_err(|e| Error::Random(e.to_string()))?;
        make(path, &fresh).map_err(|e| named(format!("cannot be made: {e}")))?;
        // Another process may have been first.
        read(path).map_err(|e| named(format!("cannot be read: {e}")))?.map_err(named)
    }

    /// Makes a secret of known bytes.
    #[cfg(test)]
    pub(crate) fn of(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A name of the secret that tells nothing of it.
    pub(crate) fn name(&self) -> [u8; 8] {
        let digest = Sha256::new()
            .chain_update(b"tacit fleet key v1")
            .chain_update(self.0.as_ref())
            .finalize();
        digest.first_chunk().copied().unwrap_or_default()
    }

    /// The code of `parts` for one purpose; each part is counted with its length.
    pub(crate) fn code(&self, purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
        let mut made = hmac::Context::with_key(&self.key());
        update(&mut made, purpose, parts);
        let tag = made.sign();
        let mut code = [0; 32];
        for (to, from) in code.iter_mut().zip(tag.as_ref()) {
            *to = *from;
        }
        code
    }

    /// Whether `code` is that of `parts`, in a time that does not depend on either.
    pub(crate) fn verifies(&self, purpose: &str, parts: &[&[u8]], code: &[u8]) -> bool {
        use subtle::ConstantTimeEq;
        let wanted = Zeroizing::new(self.code(purpose, parts));
        bool::from(wanted.ct_eq(code))
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.0.as_ref())
    }
}

fn update(made: &mut hmac::Context, purpose: &str, parts: &[&[u8]]) {
    for part in std::iter::once(&purpose.as_bytes()).chain(parts) {
        made.update(&(part.len() as u64).to_le_bytes());
        made.update(part);
    }
}

/// The secret in a file, or why it is not to be used.
fn read(path: &Path) -> std::io::Result<Result<Secret, String>> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Ok(Err("is not a regular file".into()));
    }
    if about.permissions().mode() & OTHERS != 0 {
        let why = "may be read by others than its owner: chmod 600, and make a new one if somebody \
                   may have seen it";
        return Ok(Err(why.into()));
    }
    let mut text = Zeroizing::new(String::with_capacity(128));
    file.take(128).read_to_string(&mut text)?;
    let secret = bytes(text.trim_end()).map(|bytes| Secret(Zeroizing::new(bytes)));
    Ok(secret.ok_or_else(|| "has no 64 hexadecimal digits".into()))
}

/// Puts a secret into a file that is not there yet.
fn make(path: &Path, secret: &[u8; 32]) -> std::io::Result<()> {
    let name = path.file_name().map_or("secret".into(), |name| name.to_string_lossy());
    let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let text = Zeroizing::new(hexadecimal(secret));
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    // A link, unlike a renamed file, does not take the place of one that came meanwhile.
    let linked = match written.and_then(|()| fs::hard_link(&temporary, path)) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other,
    };
    // The first error is the one to report.
    let _ = fs::remove_file(&temporary);
    linked
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.secret");
        assert!(Secret::from_file(&path, false).unwrap_err().to_string().contains("door first"));
        let made = Secret::from_file(&path, true).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = Secret::from_file(&path, false).unwrap();
        assert_eq!(made.code("a", &[b"b"]), again.code("a", &[b"b"]));
        assert!(!format!("{made:?}").contains(&fs::read_to_string(&path).unwrap()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Secret::from_file(&path, true).unwrap_err().to_string().contains("chmod 600"));
        fs::write(&path, "no secret").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(Secret::from_file(&path, true).unwrap_err().to_string().contains("hexadecimal"));
    }

    #[test]
    fn codes_hold_for_one_purpose_one_secret_and_one_way_to_cut_parts() {
        let (one, other) = (Secret::of([1; 32]), Secret::of([2; 32]));
        let code = one.code("ticket", &[b"ab", b"c"]);
        assert!(one.verifies("ticket", &[b"ab", b"c"], &code));
        assert!(!one.verifies("ticket", &[b"a", b"bc"], &code));
        assert!(!one.verifies("proof", &[b"ab", b"c"], &code));
        assert!(!other.verifies("ticket", &[b"ab", b"c"], &code));
        assert!(!one.verifies("ticket", &[b"ab", b"c"], &code[..31]));
        assert_ne!(one.name(), other.name());
    }

    /// RFC 4231, test case 1, by way of the key that the library is given.
    #[test]
    fn codes_are_those_of_hmac_sha_256() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &[0x0b; 20]);
        let tag = hmac::sign(&key, b"Hi There");
        assert_eq!(hexadecimal(tag.as_ref()).get(..16), Some("b0344c61d8db3853"));
    }
}
