//! A model as the bytes of a file.

use super::digest;
use super::format::{
    Entries, FILE_VERSION, FORMAT, MADE_BY, MAX_HEADER, OWN, bias_name, bias_shape, corrupt,
    weight_name, weight_shape, weighted_nodes,
};
use crate::error::{Error, Result};
use crate::ir::Model;
use serde::Serialize;
use std::collections::BTreeMap;
use zeroize::Zeroizing;

#[derive(Serialize)]
struct Header<'a> {
    #[serde(rename = "__metadata__")]
    metadata: Metadata<'a>,
    #[serde(flatten)]
    tensors: BTreeMap<String, Entry>,
}

/// The digest comes first, which is where readers look for it.
#[derive(Serialize)]
struct Metadata<'a> {
    digest: &'static str,
    #[serde(flatten)]
    others: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
struct Entry {
    dtype: &'static str,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

/// The file's bytes. The header is written here because its keys must come in
/// a fixed order.
pub(crate) fn encode(model: &Model, entries: &Entries) -> Result<Zeroizing<Vec<u8>>> {
    if let Some(name) = entries.keys().find(|name| OWN.contains(&name.as_str())) {
        return Err(Error::Misuse(format!("the entry `{name}` is the file's own")));
    }
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
    let own =
        [("format", FORMAT), ("version", FILE_VERSION), ("graph", &graph), ("made_by", MADE_BY)];
    let others = entries.iter().map(|(name, text)| (name.as_str(), text.as_str())).chain(own);
    let metadata = Metadata { digest: digest::NONE, others: others.collect() };
    let mut header = serde_json::to_vec(&Header { metadata, tensors }).map_err(json)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    if header.len() as u64 > MAX_HEADER {
        return Err(Error::Misuse(format!("the file's header is longer than {MAX_HEADER} bytes")));
    }
    let mut file = Zeroizing::new(Vec::with_capacity(8 + header.len() + data.len()));
    file.extend_from_slice(&(header.len() as u64).to_le_bytes());
    file.extend_from_slice(&header);
    file.extend_from_slice(&data);
    digest::seal(&mut file);
    Ok(file)
}

fn data_len(model: &Model) -> usize {
    model.weights.values().map(|w| 4 * w.weight.len() + 8 * w.bias.len()).sum()
}
