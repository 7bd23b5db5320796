//! What a model file says of itself.

use std::collections::BTreeMap;
use std::path::Path;

use graph::{Graph, Tensor};
use serde::Serialize;

use crate::refused::refused;
use runtime::hexadecimal;
use wire::Result;

/// Most characters of an entry that is shown.
const LONGEST_ENTRY: usize = 4096;

/// A model file, for people and programs. Unless `holds` is true, nothing else is certain.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// SHA-256 of the whole file, weights included, as it stands in the file.
    pub digest: String,
    /// That of the contents that were found.
    pub found_digest: String,
    /// Whether both are the same: no byte changed since the file was written.
    pub holds: bool,
    /// Version of the file's format.
    pub format_version: String,
    /// The program that wrote the file, with its release.
    pub made_by: String,
    /// Name of the file or directory that was compiled, if it was noted.
    pub source: Option<String>,
    /// The options that it was compiled with, as JSON, if they were noted.
    pub options: Option<String>,
    /// Names of what else the importer stored, such as `preprocess` and `text`.
    pub entries: Vec<String>,
    /// Name of the imported network.
    pub name: String,
    /// The suite it was compiled for.
    pub suite: String,
    /// SHA-256 of the public part without share widths.
    pub public_digest: String,
    /// The commitment to the file as it was found, which servers show to clients; `None` of a file
    /// without a salt.
    pub commitment: Option<String>,
    /// What goes in.
    pub input: TensorDescription,
    /// What comes out.
    pub output: TensorDescription,
    /// The number of names of outputs.
    pub labels: usize,
    /// The number of nodes.
    pub nodes: usize,
    /// The number of nodes with each operator.
    pub operators: BTreeMap<&'static str, usize>,
    /// The number of weights and biases.
    pub parameters: u64,
    /// The length of the file.
    pub bytes: u64,
}

/// A tensor at the end of a graph.
#[derive(Clone, Debug, Serialize)]
pub struct TensorDescription {
    /// Its name in the imported network.
    pub name: String,
    /// Its shape, without a batch.
    pub shape: Vec<usize>,
    /// Width of its shares.
    pub bits: u32,
    /// Whether it may be negative.
    pub signed: bool,
    /// Real value of one unit.
    pub scale: f64,
    /// Smallest and largest integer, of an input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[i64; 2]>,
}

/// Reads what the file says of itself, and whether it is as it was written.
///
/// # Errors
/// [`wire::Error::Misuse`] for a file that cannot be read, is foreign, or is damaged where that
/// stands.
pub fn inspect(path: impl AsRef<Path>) -> Result<Inspection> {
    let about = graph::inspect(path).map_err(refused)?;
    let graph = &about.graph;
    let mut operators = BTreeMap::new();
    for node in &graph.nodes {
        *operators.entry(node.op.title()).or_default() += 1;
    }
    let entry = |name: &str| about.entries.get(name).map(|text| printable(text));
    Ok(Inspection {
        holds: about.holds(),
        format_version: printable(&about.version),
        made_by: printable(&about.made_by),
        source: entry("source"),
        options: entry("options"),
        entries: about.entries.keys().map(|name| printable(name)).collect(),
        name: graph.name.clone(),
        suite: graph.suite.clone(),
        public_digest: hexadecimal(&graph::digest(graph)),
        commitment: about.commitment.as_ref().map(hexadecimal),
        input: TensorDescription {
            range: Some(graph.input_range),
            shape: graph.input_shape().to_vec(),
            ..tensor(graph, graph.input)
        },
        output: TensorDescription {
            shape: graph.output_shape().to_vec(),
            ..tensor(graph, graph.output)
        },
        labels: graph.labels.len(),
        nodes: graph.nodes.len(),
        operators,
        parameters: about.parameters,
        bytes: about.bytes,
        digest: about.digest,
        found_digest: about.found,
    })
}

/// A tensor of a verified graph, in which every index is in range.
fn tensor(graph: &Graph, index: usize) -> TensorDescription {
    let Tensor { name, shape, format } = &graph.tensors[index];
    let (name, shape) = (name.clone(), shape.clone());
    let graph::Format { bits, scale, signed } = *format;
    TensorDescription { name, shape, bits, signed, scale, range: None }
}

/// The start of a text from the file, fit for a terminal.
fn printable(text: &str) -> String {
    let safe = |c: char| if c.is_control() { '?' } else { c };
    text.chars().take(LONGEST_ENTRY).map(safe).collect()
}
