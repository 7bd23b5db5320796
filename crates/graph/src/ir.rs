//! The integer graph that the protocols run and the interpreter defines.
//!
//! [`Graph`] is public: operators, shapes, widths, shifts. [`NodeWeights`] is
//! the server's secret. Images are channel-major: `[channels, height, width]`;
//! no tensor has a batch axis.

use crate::link::Link;
use crate::ops::{Concat, Encoding, Site};
pub use crate::ops::{Conv, Embedding, Linear, MatMul, Op, Rounding, View, Window};
pub use crate::tensor::{Format, NodeWeights, Part, Tensor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the graph's JSON that this crate writes and reads.
pub const VERSION: u32 = 1;

/// What comparisons, rescales and pools run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Nonlinear {
    /// Oblivious transfer.
    #[default]
    Ot,
    /// Garbled circuits.
    Gc,
}

impl Nonlinear {
    fn is_ot(&self) -> bool {
        *self == Self::Ot
    }
}

/// One node of the graph. Indices point into [`Graph::tensors`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Name in the imported model; unique in the graph.
    pub name: String,
    /// What to compute.
    pub op: Op,
    /// Indices of the tensors that the node reads, in order.
    pub inputs: Vec<usize>,
    /// Index of the tensor that the node writes.
    pub output: usize,
}

/// How a client packs its input for a graph that is evaluated under encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    /// In one message.
    Dense,
    /// One message for each tap of the first kernel.
    Convolution,
    /// One message for each element.
    Sparse,
}

/// Two tensors of one shape and format: what the second is after an input, the first is before
/// the next input of the same session, as shares that no party opens. It is 0 before the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Index of the tensor that nodes read; no node writes it.
    pub before: usize,
    /// Index of the tensor that a node writes.
    pub after: usize,
    /// Smallest and largest integer of both, with 0 between them.
    pub range: [i64; 2],
}

/// Marks a graph of integers that are never rescaled. Tensors and accumulators have the width
/// [`Unscaled::WIDTH`], which says nothing: values between input and output may be of any size,
/// since they are known modulo more than twice the largest output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unscaled {
    /// Signed width of the outputs, 2 to 62: by the worst case of the real weights, or by
    /// calibration with a margin.
    pub output_bits: u32,
    /// How the input is packed; the cheapest way when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packing: Option<Packing>,
}

impl Unscaled {
    /// Width of all tensors and accumulators.
    pub const WIDTH: u32 = 60;
}

/// The public part of a model, in topological order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// Version of the format, always [`VERSION`].
    pub version: u32,
    /// Name of the model.
    pub name: String,
    /// Choice of protocols it was compiled for, e.g. `auto`.
    pub suite: String,
    /// Protocols of what is not linear, where the suite leaves a choice.
    #[serde(default, skip_serializing_if = "Nonlinear::is_ot")]
    pub nonlinear: Nonlinear,
    /// Width of quantised activations, e.g. 8.
    pub activation_bits: u32,
    /// Smallest and largest integer of the input; values outside are clipped to it.
    pub input_range: [i64; 2],
    /// Smallest and largest integer at each place on the input's outermost axis where they
    /// differ, else nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_rows: Vec<[i64; 2]>,
    /// What a graph of integers that are never rescaled says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<Unscaled>,
    /// What is kept from one input of a session to the next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<State>,
    /// All tensors, each written by one node, kept as a state, or provided by the client.
    pub tensors: Vec<Tensor>,
    /// All nodes in topological order.
    pub nodes: Vec<Node>,
    /// Tensor that the client provides.
    pub input: usize,
    /// The inputs that the client's tensor is made of, where it is more than one tensor in the
    /// imported model, or has another shape there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Part>,
    /// Tensor that the client learns.
    pub output: usize,
    /// The results that the learnt tensor is made of, as [`Graph::inputs`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Part>,
    /// Name of each output element, or empty.
    pub labels: Vec<String>,
    /// What clients may make of the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
}

impl Graph {
    /// Returns the tensor that a node writes.
    pub fn output_of(&self, node: &Node) -> &Tensor {
        &self.tensors[node.output]
    }

    /// Returns the shape of one input as the client has it; several inputs lie flattened one after
    /// another.
    pub fn input_shape(&self) -> &[usize] {
        shape_of(&self.inputs, self.tensors.get(self.input))
    }

    /// Returns the shape of one result, as [`Graph::input_shape`].
    pub fn output_shape(&self) -> &[usize] {
        shape_of(&self.outputs, self.tensors.get(self.output))
    }

    /// Returns how clients prepare the input: what one of the operators asks for.
    pub fn encoding(&self) -> Encoding {
        let mut asked = self.nodes.iter().map(|node| node.op.encoding());
        asked.find(|encoding| *encoding != Encoding::Scaled).unwrap_or_default()
    }

    /// For each tensor whether the client knows its values: the input, and what it shows
    /// in another order or one behind another.
    pub fn known(&self) -> Vec<bool> {
        let mut known = vec![false; self.tensors.len()];
        if let Some(input) = known.get_mut(self.input) {
            *input = true;
        }
        for node in &self.nodes {
            let local = node.op.rearranges() || node.op.is::<Concat>();
            let of = |input: &usize| known.get(*input).copied() == Some(true);
            let all = local && node.inputs.iter().all(of);
            if let Some(output) = known.get_mut(node.output) {
                *output = all;
            }
        }
        known
    }

    /// Returns the tensors around a node, whose indices are in range.
    pub fn site<'a>(&'a self, node: &'a Node) -> Site<'a> {
        let inputs = node.inputs.iter().map(|input| &self.tensors[*input]).collect();
        Site { inputs, output: self.output_of(node), indices: &node.inputs, weights: None }
    }

    /// For each element of the output of an operator that only rearranges, the element of the
    /// input that it shows; `None` for a zero. Empty for every other operator.
    pub fn arrangement(&self, node: &Node) -> Vec<Option<usize>> {
        node.op.arrangement(&self.site(node)).unwrap_or_default()
    }

    /// Returns the `index`-th tensor that a node reads.
    pub fn input_of(&self, node: &Node, index: usize) -> &Tensor {
        &self.tensors[node.inputs[index]]
    }
}

fn shape_of<'a>(parts: &'a [Part], tensor: Option<&'a Tensor>) -> &'a [usize] {
    match (parts, tensor) {
        ([only], _) => &only.shape,
        (_, Some(tensor)) => &tensor.shape,
        (_, None) => &[],
    }
}

/// A graph with its weights: what the server holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The public part.
    pub graph: Graph,
    /// The private part, by index of the linear node.
    pub weights: BTreeMap<usize, NodeWeights>,
}

impl Model {
    /// Returns the tensors around a node, whose indices are in range, and its weights.
    pub fn site(&self, index: usize) -> Site<'_> {
        Site { weights: self.weights.get(&index), ..self.graph.site(&self.graph.nodes[index]) }
    }
}
