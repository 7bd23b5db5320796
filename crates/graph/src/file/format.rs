//! What reading, writing and inspecting a model file share: its constants, names and errors.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use crate::error::{Error, Result};
use crate::ir::{Graph, Model, Node, NodeWeights};

/// Further entries of a file's metadata, by name.
pub type Entries = BTreeMap<String, String>;

pub(super) const FORMAT: &str = "tacit";
pub(super) const FILE_VERSION: &str = "2";
pub(super) const MADE_BY: &str = concat!("tacit ", env!("CARGO_PKG_VERSION"));
/// Names of the entries that this crate writes itself.
pub(super) const OWN: [&str; 5] = ["digest", "format", "graph", "made_by", "version"];
/// Largest file that [`load`] reads, in bytes.
pub(super) const MAX_FILE: u64 = 1 << 32;
/// Longest header that it reads, in bytes.
pub(super) const MAX_HEADER: u64 = 1 << 26;

/// A file to read, and how long it is.
pub(super) fn open(path: &Path) -> Result<(File, u64)> {
    // Asked before opening: a pipe would block, a device has no end.
    let about = fs::metadata(path).map_err(|error| io(path, &error))?;
    if !about.is_file() {
        return Err(Error::Corrupt(format!("{}: not a regular file", path.display())));
    }
    let file = File::open(path).map_err(|error| io(path, &error))?;
    let size = about.len();
    if size > MAX_FILE {
        return Err(Error::Corrupt(format!("{}: {size} bytes is too large", path.display())));
    }
    Ok((file, size))
}

/// The error with the name of the file that it is about.
pub(super) fn of(path: &Path, error: Error) -> Error {
    match error {
        Error::Corrupt(why) => Error::Corrupt(format!("{}: {why}", path.display())),
        other => other,
    }
}

pub(super) fn io(path: &Path, error: &std::io::Error) -> Error {
    Error::Io(format!("{}: {error}", path.display()))
}

pub(super) fn corrupt(why: impl Into<String>) -> Error {
    Error::Corrupt(why.into())
}

pub(super) fn weighted_nodes(model: &Model) -> impl Iterator<Item = (&Node, &NodeWeights)> {
    model.weights.iter().map(|(index, weights)| (&model.graph.nodes[*index], weights))
}

pub(super) fn weight_name(node: &str) -> String {
    format!("{node}.weight")
}

pub(super) fn bias_name(node: &str) -> String {
    format!("{node}.bias")
}

pub(super) fn weight_shape(graph: &Graph, node: &Node) -> Option<Vec<usize>> {
    node.op.weighted()?.weight_shape(graph.output_of(node))
}

pub(super) fn bias_shape(graph: &Graph, node: &Node) -> Option<Vec<usize>> {
    node.op.weighted()?.bias_shape(graph.output_of(node))
}
