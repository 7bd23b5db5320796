//! What a file says of itself, and whether it is whole.

use super::commitment::{SALT, commitment};
use super::digest::{Digests, Hashed};
use super::format::{Entries, OWN, corrupt, of, open};
use super::read::{damaged, read_graph, read_header};
use crate::error::Result;
use crate::ir::Graph;
use std::io::Read;
use std::path::Path;

/// What a file says of itself; unless it [holds](Self::holds), none of it is certain.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// The public part of the model.
    pub graph: Graph,
    /// The version of the file's format.
    pub version: String,
    /// The program that wrote the file, with its release.
    pub made_by: String,
    /// The further entries of its metadata, as they are in the file.
    pub entries: Entries,
    /// The number of weights and biases.
    pub parameters: u64,
    /// The length of the file.
    pub bytes: u64,
    /// The digest in the file, in hexadecimal.
    pub digest: String,
    /// The digest of the file's contents.
    pub found: String,
    /// The commitment to the file as it was found; none of a file without a salt.
    pub commitment: Option<[u8; 32]>,
}

impl Inspection {
    /// Returns whether the file is as it was written.
    pub fn holds(&self) -> bool {
        self.digest == self.found
    }
}

/// Reads what a file says of itself. Weights are hashed and not kept; their ranges are not checked.
///
/// # Errors
/// The errors of [`load`](super::load). A file that is damaged behind its header is no error here: it is described, and
/// [`Inspection::holds`] is false.
pub fn inspect(path: impl AsRef<Path>) -> Result<Inspection> {
    let path = path.as_ref();
    let (mut file, size) = open(path)?;
    examine(&mut file, size).map_err(|error| of(path, error))
}

/// As [`inspect`], for a file of `size` bytes.
pub(crate) fn examine(source: &mut impl Read, size: u64) -> Result<Inspection> {
    let mut source = Hashed::new(source);
    let read = read_header(&mut source, size).and_then(|header| Ok((read_graph(&header)?, header)));
    let digests = source.finish().map_err(damaged)?;
    let (graph, header) = match (read, &digests) {
        (Ok(read), _) => read,
        (Err(error), Some(digests)) => return digests.check().and(Err(error)),
        (Err(error), None) => return Err(error),
    };
    let Some(Digests { stored, found }) = digests else {
        return Err(corrupt("has no digest in its place"));
    };
    let mut entries: Entries =
        header.metadata().iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
    let version = entries.remove("version").unwrap_or_default();
    let made_by = entries.remove("made_by").unwrap_or_default();
    let commitment = commitment(entries.remove(SALT).as_ref(), &found).unwrap_or_default();
    entries.retain(|name, _| !OWN.contains(&name.as_str()));
    let count =
        |shape: &[usize]| shape.iter().fold(1, |all: u64, side| all.saturating_mul(*side as u64));
    let parameters = header.tensors().values().map(|tensor| count(&tensor.shape)).sum();
    Ok(Inspection {
        graph,
        version,
        made_by,
        entries,
        parameters,
        bytes: size,
        digest: stored,
        found,
        commitment,
    })
}
