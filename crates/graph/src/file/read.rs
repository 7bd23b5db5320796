//! A model from the bytes of a file, which are read once and in order.

use super::commitment::{SALT, commitment};
use super::digest::{CHUNK, Hashed, sound};
use super::format::{
    FILE_VERSION, FORMAT, MAX_HEADER, bias_name, bias_shape, corrupt, weight_name, weight_shape,
};
use crate::error::Result;
use crate::ir::{Graph, Model, NodeWeights};
use crate::model::{printable, verify_model};
use safetensors::{Dtype, tensor::Metadata};
use std::collections::BTreeMap;
use std::io::Read;
use zeroize::Zeroizing;

/// A verified model from the file's bytes.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn decode(bytes: &[u8]) -> Result<Model> {
    read(&mut &*bytes, bytes.len() as u64).map(|(model, _)| model)
}

/// A verified model from a file of `size` bytes, and the commitment to the file. A chunk of the
/// file is held beside the model.
pub(super) fn read(source: &mut impl Read, size: u64) -> Result<(Model, Option<[u8; 32]>)> {
    let mut source = Hashed::new(source);
    // What is wrong with the contents is only worth telling when they are those that were written.
    let read = contents(&mut source, size);
    let digests = source.finish().map_err(damaged)?;
    let (model, salt) = sound(read, digests.as_ref())?;
    verify_model(&model).map_err(|error| error.in_pass("load"))?;
    let digest = digests.map(|digests| digests.found).unwrap_or_default();
    Ok((model, commitment(salt.as_ref(), &digest)?))
}

/// What the file says, whether or not it is damaged: the model and the salt.
fn contents(source: &mut impl Read, size: u64) -> Result<(Model, Option<String>)> {
    let header = read_header(source, size)?;
    let graph = read_graph(&header)?;
    let (mut weights, tensors) = expected(&graph, &header)?;
    for name in header.offset_keys() {
        let place = tensors.get(&name).zip(header.info(&name));
        let Some(((index, dtype), info)) = place else {
            return Err(corrupt("holds tensors that belong to no node"));
        };
        let Some(node) = weights.get_mut(index) else { continue };
        let bytes = info.data_offsets.1.saturating_sub(info.data_offsets.0);
        match dtype {
            Dtype::I64 => node.bias = integers(source, bytes, i64::from_le_bytes)?,
            _ => node.weight = integers(source, bytes, i32::from_le_bytes)?,
        }
    }
    let salt = header.metadata().as_ref().and_then(|entries| entries.get(SALT)).cloned();
    Ok((Model { graph, weights }, salt))
}

/// Nodes with weights, which are still to be read, by index.
type Empty = BTreeMap<usize, NodeWeights>;
/// The node that a tensor belongs to and the type that it must have, by the tensor's name.
type Tensors = BTreeMap<String, (usize, Dtype)>;

/// The tensors of a graph, each of which the file has with the right type and shape.
fn expected(graph: &Graph, header: &Metadata) -> Result<(Empty, Tensors)> {
    let (mut empty, mut tensors) = (Empty::new(), Tensors::new());
    for (index, node) in graph.nodes.iter().enumerate() {
        let weight = weight_shape(graph, node).map(|s| (weight_name(&node.name), Dtype::I32, s));
        let bias = bias_shape(graph, node).map(|s| (bias_name(&node.name), Dtype::I64, s));
        for (name, dtype, shape) in weight.into_iter().chain(bias) {
            check_tensor(header, &name, dtype, &shape)?;
            tensors.insert(name, (index, dtype));
            empty.entry(index).or_insert_with(|| NodeWeights { weight: vec![], bias: vec![] });
        }
    }
    Ok((empty, tensors))
}

pub(super) fn damaged(why: impl std::fmt::Display) -> crate::Error {
    let why = printable(&why.to_string());
    corrupt(format!("damaged, incomplete, or not a Tacit model: {why}"))
}

/// What a file is instead of a model, by its first bytes, and what to do.
fn foreign(start: [u8; 8]) -> Option<&'static str> {
    match start {
        // The version of the format, then a field of the message.
        [8, _, 0x12 | 0x1a | 0x22 | 0x28 | 0x32 | 0x3a | 0x42, ..] => {
            Some("an ONNX model: compile it first (tacit compile MODEL.onnx -o MODEL.tacit)")
        }
        [b'P', b'K', 3, 4, ..] | [0x80, ..] => {
            Some("a zip archive or a pickle, as of PyTorch: export it to ONNX and compile that")
        }
        [0x1f, 0x8b, ..] | [0xfd, b'7', b'z', ..] => Some("compressed: unpack it first"),
        _ => None,
    }
}

/// The header; the data follow. Its tensors lie one after another and fill the file, which has `size` bytes.
pub(super) fn read_header(source: &mut impl Read, size: u64) -> Result<Metadata> {
    let mut length = [0; 8];
    source.read_exact(&mut length).map_err(damaged)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER.min(size.saturating_sub(8)) {
        return Err(match foreign(length.to_le_bytes()) {
            Some(kind) => corrupt(kind),
            None => damaged("its header is longer than it may be"),
        });
    }
    let mut header = vec![0; length as usize];
    source.read_exact(&mut header).map_err(damaged)?;
    let header: Metadata = serde_json::from_slice(&header).map_err(damaged)?;
    let end = header.tensors().values().map(|tensor| tensor.data_offsets.1).max().unwrap_or(0);
    if (end as u64).checked_add(8 + length) != Some(size) {
        return Err(damaged("its length is not what its header says"));
    }
    Ok(header)
}

pub(super) fn read_graph(header: &Metadata) -> Result<Graph> {
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

/// Refuses a file without a tensor of exactly this type and shape.
fn check_tensor(header: &Metadata, name: &str, dtype: Dtype, shape: &[usize]) -> Result<()> {
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
    Ok(())
}

/// The next `bytes` as integers.
fn integers<const N: usize, T>(
    source: &mut impl Read,
    bytes: usize,
    integer: fn([u8; N]) -> T,
) -> Result<Vec<T>> {
    let mut values = Vec::with_capacity(bytes / N);
    let mut chunk = Zeroizing::new(vec![0; CHUNK.min(bytes)]);
    let mut left = bytes;
    while left > 0 {
        let part = &mut chunk[..CHUNK.min(left)];
        source.read_exact(part).map_err(damaged)?;
        values.extend(part.as_chunks::<N>().0.iter().map(|bytes| integer(*bytes)));
        left -= part.len();
    }
    Ok(values)
}
