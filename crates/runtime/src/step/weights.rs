//! The server's weights, as its layers multiply with them.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use graph::{Graph, Model, NodeWeights, Rounding};
use wire::{Error, Result};

/// Weights in the form that one layer multiplies with, of one type or several; only the layer
/// knows what it is.
#[derive(Clone)]
pub struct Encoded(Vec<Arc<dyn Any + Send + Sync>>);

impl Encoded {
    /// Keeps `weights` for the layer that encoded them.
    pub fn new<T: Any + Send + Sync>(weights: T) -> Self {
        Self(vec![Arc::new(weights)])
    }

    /// Keeps weights of another type beside them.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, weights: T) -> Self {
        self.0.push(Arc::new(weights));
        self
    }
}

/// All weights of a server, encoded once for all sessions.
#[derive(Default)]
pub struct Weights {
    /// By node; what belongs to no node is under `None`.
    encoded: BTreeMap<Option<usize>, Encoded>,
    /// Constants of offsets.
    constants: BTreeMap<usize, NodeWeights>,
    /// Weights for runs of several inputs that follow each other.
    pass: Option<Box<Self>>,
}

impl Weights {
    /// Keeps the weights of runs of several inputs that follow each other beside these.
    #[must_use]
    pub(crate) fn with_pass(self, pass: Self) -> Self {
        Self { pass: Some(Box::new(pass)), ..self }
    }

    /// Returns the weights of runs of several inputs that follow each other.
    ///
    /// # Errors
    /// [`Error::Internal`] where there are none.
    pub(crate) fn of_pass(&self) -> Result<&Self> {
        self.pass.as_deref().ok_or_else(no_weights)
    }

    /// Keeps the encoded weights of `node`.
    pub(crate) fn insert(&mut self, node: Option<usize>, encoded: Encoded) {
        self.encoded.insert(node, encoded);
    }

    /// Keeps what layers left of a model's weights.
    pub(crate) fn keep_constants(&mut self, constants: BTreeMap<usize, NodeWeights>) {
        self.constants = constants;
    }

    /// Returns the encoded weights of `node`.
    ///
    /// # Errors
    /// [`Error::Internal`] for a node without weights, or weights of another protocol.
    pub fn of<T: Any>(&self, node: Option<usize>) -> Result<&T> {
        let all = self.encoded.get(&node).into_iter().flat_map(|encoded| &encoded.0);
        let encoded = all.filter_map(|encoded| encoded.downcast_ref()).next();
        encoded.ok_or_else(no_weights)
    }

    /// Returns the encoded weights of `node`, for work that outlives a call.
    ///
    /// # Errors
    /// As [`Weights::of`].
    pub fn shared<T: Any + Send + Sync>(&self, node: Option<usize>) -> Result<Arc<T>> {
        let all = self.encoded.get(&node).into_iter().flat_map(|encoded| &encoded.0);
        let encoded = all.filter_map(|encoded| Arc::clone(encoded).downcast().ok()).next();
        encoded.ok_or_else(no_weights)
    }

    /// Returns the constants of `node`, if it has any.
    pub fn constants(&self, node: Option<usize>) -> Option<&[i64]> {
        node.and_then(|node| self.constants.get(&node)).map(|constants| constants.bias.as_slice())
    }
}

fn no_weights() -> Error {
    Error::internal("a layer without weights; please report it")
}

/// Where a layer takes the weights from that it encodes.
pub struct WeightSource<'a> {
    pub(crate) model: &'a mut Model,
    /// The plan's graph.
    pub graph: &'a Graph,
    /// Node and name of the step.
    pub(crate) node: Option<usize>,
    pub(crate) name: &'a str,
    /// Bytes of transformed weights that the server still keeps; it transforms the rest whenever
    /// they are used.
    pub memory: &'a mut usize,
    /// Whether transforms of all layers do not fit into it: then those are not kept that take little time.
    pub scarce: bool,
    /// Whether sessions preprocess every layer that they can.
    pub preprocesses: bool,
}

impl WeightSource<'_> {
    /// Returns the node that the layer computes.
    ///
    /// # Errors
    /// [`Error::Internal`] for a step without a node.
    pub fn op(&self) -> Result<&graph::Op> {
        let node = self.node.and_then(|node| self.graph.nodes.get(node));
        node.map(|node| &node.op)
            .ok_or_else(|| Error::Internal("a step without its node; please report it".into()))
    }

    /// Takes the weights of the step's node out of the model.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a model without them.
    pub fn take(&mut self) -> Result<NodeWeights> {
        self.take_of(self.node.unwrap_or(usize::MAX))
    }

    /// Takes the weights of `node` out of the model.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a model without them.
    pub fn take_of(&mut self, node: usize) -> Result<NodeWeights> {
        let weights = self.model.weights.remove(&node);
        weights.ok_or_else(|| Error::misuse(format!("node `{}` has no weights", self.name)))
    }
}

/// The half unit that turns an exact floor into rounding. The stochastic rescale rounds by
/// itself.
pub(crate) fn rounding_term(rounding: Rounding, shift: u32) -> i64 {
    match (rounding, shift) {
        (Rounding::Stochastic, _) | (_, 0) => 0,
        (Rounding::Exact, shift) => 1i64 << (shift - 1),
    }
}
