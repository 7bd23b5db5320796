//! A server's key in a file of its own, which is made once and then stays.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rcgen::KeyPair;
use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// Longest file that is read as a key.
const LONGEST: u64 = 1 << 16;
/// Bits of a file's mode that let others than its owner at it.
const OTHERS: u32 = 0o077;

/// The key in `file` (PKCS #8, PEM), which is made where there is none: with mode 600, and all of
/// it or nothing.
///
/// # Errors
/// [`Error::Misuse`] for a file that others than its owner may read or write, that holds no key,
/// or that cannot be made.
pub(super) fn key(file: &str) -> Result<KeyPair> {
    let path = Path::new(file);
    let refused = |why: String| Error::misuse(format!("the key file `{file}` {why}"));
    let cannot = |what: &str, error: io::Error| refused(format!("cannot be {what}: {error}"));
    let pem = match File::open(path) {
        Ok(opened) => read(opened).map_err(|e| cannot("read", e))?.map_err(refused)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            make(path).map_err(|e| cannot("made", e))?;
            // Another process may have been sooner: what counts is what stands there now.
            let made = File::open(path).and_then(read).map_err(|e| cannot("read", e))?;
            made.map_err(refused)?
        }
        Err(error) => return Err(cannot("read", error)),
    };
    KeyPair::from_pem(&pem).map_err(|e| refused(format!("holds no private key: {e}")))
}

/// The text of a key file, or why it is not to be used.
fn read(file: File) -> io::Result<Result<Zeroizing<String>, String>> {
    let about = file.metadata()?;
    if !about.is_file() {
        return Ok(Err("is not a regular file".into()));
    }
    if about.permissions().mode() & OTHERS != 0 {
        return Ok(Err("may be read by others than its owner: chmod 600, and make a new key if \
                       somebody may have seen it"
            .into()));
    }
    let mut pem = Zeroizing::new(String::with_capacity(LONGEST as usize));
    file.take(LONGEST).read_to_string(&mut pem)?;
    Ok(Ok(pem))
}

/// Puts a new key into a file that is not there yet.
fn make(path: &Path) -> io::Result<()> {
    let key = KeyPair::generate().map_err(|e| io::Error::other(e.to_string()))?;
    let pem = Zeroizing::new(key.serialize_pem());
    let temporary = beside(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = file.write_all(pem.as_bytes()).and_then(|()| file.sync_all());
    // A link, unlike a renamed file, does not take the place of a key that came meanwhile.
    let linked = match written.and_then(|()| fs::hard_link(&temporary, path)) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other,
    };
    // The first error is the one to report.
    let _ = fs::remove_file(&temporary);
    linked
}

/// A name in the same directory that no other process uses.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().map_or("key".into(), |name| name.to_string_lossy());
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::transport::tls::Identity;

    /// A folder for one test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("tacit-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn file(&self, name: &str) -> String {
            self.0.join(name).to_str().unwrap().into()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn refusal(file: &str) -> String {
        Identity::kept(file).unwrap_err().to_string()
    }

    #[test]
    fn a_key_is_made_once_for_its_owner_alone() {
        let folder = Folder::new("keys-made");
        let file = folder.file("server.key");
        let first = Identity::kept(&file).unwrap().pin().unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let content = fs::read(&file).unwrap();
        assert_eq!(Identity::kept(&file).unwrap().pin().unwrap(), first);
        assert_eq!(fs::read(&file).unwrap(), content);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "something else is left");
        let other = Identity::kept(&folder.file("other.key")).unwrap().pin().unwrap();
        assert_ne!(other, first);
    }

    #[test]
    fn a_key_that_came_meanwhile_stays() {
        let folder = Folder::new("keys-race");
        let file = folder.file("server.key");
        let pin = Identity::kept(&file).unwrap().pin().unwrap();
        make(Path::new(&file)).unwrap();
        assert_eq!(Identity::kept(&file).unwrap().pin().unwrap(), pin);
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let folder = Folder::new("keys-bad");
        let file = folder.file("server.key");
        Identity::kept(&file).unwrap();
        for mode in [0o640, 0o604, 0o620, 0o644] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let why = refusal(&file);
            assert!(why.contains(&file) && why.contains("chmod 600"), "{mode:o}: {why}");
        }
        fs::write(&file, "no key").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(refusal(&file).contains("holds no private key"));
        assert!(refusal(&folder.file("no folder/key")).contains("cannot be made"));
        assert!(refusal(folder.0.to_str().unwrap()).contains("not a regular file"));
    }
}
