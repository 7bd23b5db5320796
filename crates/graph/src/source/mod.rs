//! The float graph as an importer hands it over: JSON plus named arrays.

mod floats;
mod function;
mod linear;
mod lowering;
mod node;
mod op;
mod operator;
pub mod ops;
mod registration;
mod registry;
pub(crate) mod scaling;
pub mod shapes;
mod values;

pub use floats::{Calibration, FloatTensor, Floats, Means, Ranges};
pub use function::Function;
pub use linear::LinearOperator;
pub use lowering::{IntegerNode, Lowering, UnscaledLowering};
pub use node::SourceNode;
pub use op::SourceOp;
pub use operator::{CarriedSource, Place, SourceOperator};
pub use registration::SourceRegistration;
pub use registry::register;
pub use values::Values;

use crate::error::{Error, Result};
use crate::tensor::Part;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A named float model. Weights are referred to by name, see [`Floats`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Name of the model.
    pub name: String,
    /// The input.
    pub input: SourceInput,
    /// The inputs that the client's tensor is made of; see [`crate::Graph::inputs`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Part>,
    /// The results that the learnt tensor is made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Part>,
    /// What is kept from one input of a session to the next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<SourceState>,
    /// Name of the tensor that the client learns.
    pub output: String,
    /// Operators in topological order.
    pub nodes: Vec<SourceNode>,
    /// Bits that the nodes that write some tensors work with beyond those of activations, by tensor;
    /// 12 together at most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_bits: BTreeMap<String, u32>,
}

/// The tensor that the client provides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceInput {
    /// Name of the input tensor.
    pub name: String,
    /// `[channels, height, width]` or `[length]`, without the batch axis.
    pub shape: Vec<usize>,
}

/// A tensor that is kept, shared, from one input of a session to the next; 0 before the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceState {
    /// Name of the tensor that nodes read.
    pub name: String,
    /// Its shape, without the batch axis.
    pub shape: Vec<usize>,
    /// Name of the tensor, of the same shape, that it is before the next input.
    pub after: String,
}

/// What passes rewrite: a source graph with its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The operators.
    pub source: Source,
    /// The operators' weights.
    pub floats: Floats,
}

impl Source {
    /// Reads strict JSON.
    ///
    /// # Errors
    /// [`Error::Misuse`] for malformed JSON, unknown operators and unknown fields.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|e| Error::Misuse(format!("source graph: {e}")))
    }

    /// How often `tensor` is read; being kept after the last node counts as one.
    pub(crate) fn uses(&self, tensor: &str) -> usize {
        let reads = self.nodes.iter().flat_map(|n| &n.inputs).filter(|i| *i == tensor).count();
        reads + usize::from(self.is_kept(tensor))
    }

    /// Whether `tensor` is needed after the last node: as the output or as a state.
    pub(crate) fn is_kept(&self, tensor: &str) -> bool {
        self.output == tensor || self.states.iter().any(|state| state.after == tensor)
    }

    /// Index of the node that writes `tensor`.
    pub(crate) fn producer(&self, tensor: &str) -> Option<usize> {
        self.nodes.iter().position(|n| n.output == tensor)
    }

    /// Index of the linear node whose only reader is a reader of `tensor`.
    pub(crate) fn single_use_linear(&self, tensor: &str) -> Option<usize> {
        self.single_use(tensor, |op| op.linear().is_some())
    }

    /// Index of the node that a sum can be part of and whose only reader is a reader of `tensor`.
    pub(crate) fn single_use_product(&self, tensor: &str) -> Option<usize> {
        self.single_use(tensor, |op| op.is_product())
    }

    fn single_use(&self, tensor: &str, wanted: fn(&SourceOp) -> bool) -> Option<usize> {
        let index = self.producer(tensor)?;
        (wanted(&self.nodes[index].op) && self.uses(tensor) == 1).then_some(index)
    }

    /// Bits of a tensor whose values are integers of one scale and not negative, if it is one.
    pub(crate) fn unsigned_bits(&self, tensor: &str, activation_bits: u32) -> Option<u32> {
        let node = &self.nodes[self.producer(tensor)?];
        match node.op.keeps_integers() {
            true => self.unsigned_bits(node.inputs.first()?, activation_bits),
            false => node.op.unsigned_bits(activation_bits),
        }
    }

    /// `base`, lengthened until no tensor or node has that name.
    pub(crate) fn fresh(&self, base: &str) -> String {
        let taken: BTreeSet<&str> = self
            .nodes
            .iter()
            .flat_map(|n| [n.name.as_str(), n.output.as_str()])
            .chain(self.states.iter().map(|state| state.name.as_str()))
            .chain([self.input.name.as_str()])
            .collect();
        lengthen(base, |name| taken.contains(name))
    }
}

impl Program {
    /// Stores new weights under a name that starts with `base` and returns the name.
    pub(crate) fn store(&mut self, base: &str, tensor: FloatTensor) -> String {
        let name = lengthen(base, |name| self.floats.contains_key(name));
        self.floats.insert(name.clone(), tensor);
        name
    }
}

/// `base` with as many primes as it takes to be free.
fn lengthen(base: &str, taken: impl Fn(&str) -> bool) -> String {
    let mut name = base.to_owned();
    while taken(&name) {
        name.push('\'');
    }
    name
}
