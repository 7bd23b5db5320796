//! The `.tacit` file: safetensors with the integer weights and, in its
//! metadata, the public graph.
//!
//! Tensors `<node>.weight` (I32, `[out, in / groups, rows, columns]`, in the Winograd domain
//! the rows and columns of a tile) and `<node>.bias` (I64, `[out]`) for each linear node, `<node>.bias` (I64, one for each
//! element) for each offset, nothing else. Metadata: `digest`, the SHA-256 of the whole file (see `digest.rs`),
//! `format` = `tacit`, `version` = `2`, `graph` = JSON, `made_by` = `tacit` and its release, `salt`
//! (see `commitment.rs`), and what the importer adds about where the model comes from and how its
//! inputs are made. The bytes depend on the model, what was added, the salt and the release only.

mod commitment;
mod digest;
mod format;
mod inspect;
mod read;
mod write;

use crate::error::{Error, Result};
use crate::ir::Model;
use crate::model::verify_model;
pub use format::Entries;
use format::{io, of, open};
pub use inspect::{Inspection, inspect};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

#[cfg(any(test, feature = "testing"))]
pub(crate) use digest::seal;
#[cfg(any(test, feature = "testing"))]
pub(crate) use inspect::examine;
#[cfg(any(test, feature = "testing"))]
pub(crate) use read::decode;
#[cfg(any(test, feature = "testing"))]
pub(crate) use write::encode;

/// Writes a model, replacing `path` only when all of it is on disk.
///
/// # Errors
/// [`Error::Invalid`] for a model that [`verify_model`] refuses, [`Error::Io`]
/// when the file system does, or `path` is something else than a file.
pub fn save(model: &Model, path: impl AsRef<Path>) -> Result<()> {
    save_with(model, &Entries::new(), path)
}

/// Writes a model like [`save`], with further entries in its metadata, which the digest covers.
/// Their `salt`, 64 hexadecimal digits, is that of the file's commitment; a random one without.
///
/// # Errors
/// Those of [`save`], and [`Error::Misuse`] for an entry that has the name of one of the file's
/// own, entries that are too long, and a salt that is none.
pub fn save_with(model: &Model, entries: &Entries, path: impl AsRef<Path>) -> Result<()> {
    verify_model(model)?;
    let path = path.as_ref();
    // Renaming onto a device or pipe would replace it.
    if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        return Err(Error::Io(format!("{}: not a regular file", path.display())));
    }
    let bytes = write::encode(model, &commitment::salted(entries)?)?;
    let temporary = beside(path);
    let written = put(&temporary, &bytes).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
        io(path, &error)
    })
}

/// Reads and verifies a model. The whole file is read once.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Corrupt`] when it is
/// damaged, foreign or of another version, [`Error::Invalid`] with pass `load` when its
/// contents break an invariant.
pub fn load(path: impl AsRef<Path>) -> Result<Model> {
    load_committed(path).map(|(model, _)| model)
}

/// Reads and verifies a model like [`load`], and returns the commitment to its file beside it: 32
/// bytes that tell whether a file is still the same and nothing of its weights. A file that an
/// earlier release wrote has none.
///
/// # Errors
/// The errors of [`load`].
pub fn load_committed(path: impl AsRef<Path>) -> Result<(Model, Option<[u8; 32]>)> {
    let path = path.as_ref();
    let (mut file, size) = open(path)?;
    read::read(&mut file, size).map_err(|error| of(path, error))
}

/// A name in the same directory that no other process uses.
fn beside(path: &Path) -> PathBuf {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = now.map_or(0, |since| since.subsec_nanos());
    let name = path.file_name().map_or("model".into(), |name| name.to_string_lossy());
    path.with_file_name(format!(".{name}.{}-{nanos}", std::process::id()))
}

fn put(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
