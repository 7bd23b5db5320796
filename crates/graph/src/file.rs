//! The `.tacit` file: safetensors with the integer weights and, in its
//! metadata, the public graph.
//!
//! Tensors `<node>.weight` (I32, `[out, in / groups, rows, columns]`, in the Winograd domain
//! the rows and columns of a tile) and `<node>.bias` (I64, `[out]`) for each linear node, `<node>.bias` (I64, one for each
//! element) for each offset, nothing else. Metadata:
//! `format` = `tacit`, `version` = `1`, `graph` = JSON. The bytes depend on the
//! model only.

use crate::error::{Error, Result};
use crate::ir::{Graph, Model, Node, NodeWeights};
use crate::model::{printable, verify_model};
use safetensors::{Dtype, tensor::Metadata};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const FORMAT: &str = "tacit";
const FILE_VERSION: &str = "1";
/// Largest file that [`load`] reads, in bytes.
const MAX_FILE: u64 = 1 << 32;
/// Longest header that it reads, in bytes.
const MAX_HEADER: u64 = 1 << 26;

/// Writes a model, replacing `path` only when all of it is on disk.
///
/// # Errors
/// [`Error::Invalid`] for a model that [`verify_model`] refuses, [`Error::Io`]
/// when the file system does, or `path` is something else than a file.
pub fn save(model: &Model, path: impl AsRef<Path>) -> Result<()> {
    verify_model(model)?;
    let path = path.as_ref();
    // Renaming onto a device or pipe would replace it.
    if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        return Err(Error::Io(format!("{}: not a regular file", path.display())));
    }
    let bytes = encode(model)?;
    let temporary = beside(path);
    let written = write(&temporary, &bytes).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
        io(path, &error)
    })
}

/// Reads and verifies a model.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Corrupt`] when it is
/// damaged, foreign or newer, [`Error::Invalid`] with pass `load` when its
/// contents break an invariant.
pub fn load(path: impl AsRef<Path>) -> Result<Model> {
    let path = path.as_ref();
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
    read(&mut BufReader::new(file), size).map_err(|error| match error {
        Error::Corrupt(why) => Error::Corrupt(format!("{}: {why}", path.display())),
        other => other,
    })
}

fn io(path: &Path, error: &std::io::Error) -> Error {
    Error::Io(format!("{}: {error}", path.display()))
}

fn corrupt(why: impl Into<String>) -> Error {
    Error::Corrupt(why.into())
}

/// A name in the same directory that no other process uses.
fn beside(path: &Path) -> PathBuf {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = now.map_or(0, |since| since.subsec_nanos());
    let name = path.file_name().map_or("model".into(), |name| name.to_string_lossy());
    path.with_file_name(format!(".{name}.{}-{nanos}", std::process::id()))
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[derive(Serialize)]
struct Header {
    #[serde(rename = "__metadata__")]
    metadata: BTreeMap<&'static str, String>,
    #[serde(flatten)]
    tensors: BTreeMap<String, Entry>,
}

#[derive(Serialize)]
struct Entry {
    dtype: &'static str,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

/// The file's bytes. The header is written here because its keys must come in
/// a fixed order.
pub(crate) fn encode(model: &Model) -> Result<Zeroizing<Vec<u8>>> {
    let json = |error: serde_json::Error| corrupt(format!("header: {error}"));
    let graph = serde_json::to_string(&model.graph).map_err(json)?;
    let mut tensors = BTreeMap::new();
    let mut data = Zeroizing::new(Vec::with_capacity(data_len(model)));
    let mut put = |name: String, dtype, shape, bytes: &mut dyn Iterator<Item = u8>| {
        let start = data.len();
        data.extend(bytes);
        tensors.insert(name, Entry { dtype, shape, data_offsets: [start, data.len()] });
    };
    // All 8-byte integers come first, so that everything is aligned.
    for (node, weights) in weighted_nodes(model) {
        let mut bytes = weights.bias.iter().flat_map(|b| b.to_le_bytes());
        if let Some(shape) = bias_shape(&model.graph, node) {
            put(bias_name(&node.name), "I64", shape, &mut bytes);
        }
    }
    for (node, weights) in weighted_nodes(model) {
        let mut bytes = weights.weight.iter().flat_map(|w| w.to_le_bytes());
        if let Some(shape) = weight_shape(&model.graph, node) {
            put(weight_name(&node.name), "I32", shape, &mut bytes);
        }
    }
    let entries = [("format", FORMAT.into()), ("version", FILE_VERSION.into()), ("graph", graph)];
    let metadata = BTreeMap::from(entries);
    let mut header = serde_json::to_vec(&Header { metadata, tensors }).map_err(json)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut file = Zeroizing::new(Vec::with_capacity(8 + header.len() + data.len()));
    file.extend_from_slice(&(header.len() as u64).to_le_bytes());
    file.extend_from_slice(&header);
    file.extend_from_slice(&data);
    Ok(file)
}

fn data_len(model: &Model) -> usize {
    model.weights.values().map(|w| 4 * w.weight.len() + 8 * w.bias.len()).sum()
}

fn weighted_nodes(model: &Model) -> impl Iterator<Item = (&Node, &NodeWeights)> {
    model.weights.iter().map(|(index, weights)| (&model.graph.nodes[*index], weights))
}

fn weight_name(node: &str) -> String {
    format!("{node}.weight")
}

fn bias_name(node: &str) -> String {
    format!("{node}.bias")
}

fn weight_shape(graph: &Graph, node: &Node) -> Option<Vec<usize>> {
    node.op.weighted()?.weight_shape(graph.output_of(node))
}

fn bias_shape(graph: &Graph, node: &Node) -> Option<Vec<usize>> {
    node.op.weighted()?.bias_shape(graph.output_of(node))
}

/// A verified model from the file's bytes.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn decode(bytes: &[u8]) -> Result<Model> {
    read(&mut std::io::Cursor::new(bytes), bytes.len() as u64)
}

/// A verified model from a file of `size` bytes. One tensor at a time is held beside
/// the model.
fn read(source: &mut (impl Read + Seek), size: u64) -> Result<Model> {
    let (start, header) = read_header(source, size)?;
    let graph = read_graph(&header)?;
    let mut weights = BTreeMap::new();
    let mut found = 0;
    for (index, node) in graph.nodes.iter().enumerate() {
        let mut tensor = |name: String, dtype, shape: &[usize]| {
            found += 1;
            array(source, start, &header, &name, dtype, shape)
        };
        let shapes = (weight_shape(&graph, node), bias_shape(&graph, node));
        if shapes == (None, None) {
            continue;
        }
        let weight = match shapes.0 {
            Some(shape) => tensor(weight_name(&node.name), Dtype::I32, &shape)?,
            None => Zeroizing::default(),
        };
        let weight = weight.as_chunks().0.iter().map(|w| i32::from_le_bytes(*w)).collect();
        let bias = match shapes.1 {
            Some(shape) => tensor(bias_name(&node.name), Dtype::I64, &shape)?,
            None => Zeroizing::default(),
        };
        let bias = bias.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect();
        weights.insert(index, NodeWeights { weight, bias });
    }
    if header.tensors().len() != found {
        return Err(corrupt("holds tensors that belong to no node"));
    }
    let model = Model { graph, weights };
    verify_model(&model).map_err(|error| error.in_pass("load"))?;
    Ok(model)
}

fn damaged(why: impl std::fmt::Display) -> Error {
    let why = printable(&why.to_string());
    corrupt(format!("damaged, incomplete, or not a Tacit model: {why}"))
}

/// The header, and where the data begins.
fn read_header(source: &mut impl Read, size: u64) -> Result<(u64, Metadata)> {
    let mut length = [0; 8];
    source.read_exact(&mut length).map_err(damaged)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER.min(size.saturating_sub(8)) {
        return Err(damaged("its header is longer than it may be"));
    }
    let mut header = vec![0; length as usize];
    source.read_exact(&mut header).map_err(damaged)?;
    let header: Metadata = serde_json::from_slice(&header).map_err(damaged)?;
    let end = header.tensors().values().map(|tensor| tensor.data_offsets.1).max().unwrap_or(0);
    if (end as u64).checked_add(8 + length) != Some(size) {
        return Err(damaged("its length is not what its header says"));
    }
    Ok((8 + length, header))
}

fn read_graph(header: &Metadata) -> Result<Graph> {
    let field = |name: &str| header.metadata().as_ref().and_then(|fields| fields.get(name));
    if field("format").map(String::as_str) != Some(FORMAT) {
        return Err(corrupt("a safetensors file, but not a Tacit model"));
    }
    match field("version").map(String::as_str) {
        Some(FILE_VERSION) => {}
        Some(other) => {
            let other = printable(other);
            let why = format!("file version {other}, this program reads version {FILE_VERSION}");
            return Err(corrupt(format!("{why}: compile the model again or update Tacit")));
        }
        None => return Err(corrupt("has no file version")),
    }
    Graph::from_json(field("graph").ok_or_else(|| corrupt("has no graph"))?)
}

/// The bytes of one tensor, of exactly this type and shape; the data begins at `start`.
fn array(
    source: &mut (impl Read + Seek),
    start: u64,
    header: &Metadata,
    name: &str,
    dtype: Dtype,
    shape: &[usize],
) -> Result<Zeroizing<Vec<u8>>> {
    let info = header.info(name).ok_or_else(|| corrupt(format!("tensor `{name}` is missing")))?;
    if info.dtype != dtype || info.shape != shape {
        let have = format!("{:?} {:?}", info.dtype, info.shape);
        return Err(corrupt(format!("tensor `{name}` is {have}, not {dtype:?} {shape:?}")));
    }
    let each = if dtype == Dtype::I64 { 8 } else { 4 };
    let length = shape.iter().try_fold(each, |all: usize, side| all.checked_mul(*side));
    // The header ends inside the file, and so do all tensors that end before its last one.
    let (from, to) = info.data_offsets;
    if to.checked_sub(from).is_none() || to.checked_sub(from) != length {
        return Err(corrupt(format!("tensor `{name}` is cut off")));
    }
    let mut bytes = Zeroizing::new(vec![0; to - from]);
    let found = source.seek(SeekFrom::Start(start.saturating_add(from as u64)));
    found.and_then(|_| source.read_exact(&mut bytes)).map_err(damaged)?;
    Ok(bytes)
}
