//! A node for which steps are being chosen, with everything that the choice depends on.

use graph::ops::Operator;
use graph::{Graph, Node, Tensor};
use mpc::compare::Radix;
use wire::{Error, Result};

use super::functions_by::digits_of;
use crate::plan::options::StepOptions;
use crate::step::Action;

/// Chooses what runs a node.
pub type PlanOperator = fn(&NodeContext<'_>) -> Result<Action>;

/// A node that is being planned.
#[derive(Clone, Copy, Debug)]
pub struct NodeContext<'a> {
    /// The graph, which was verified.
    pub graph: &'a Graph,
    /// The node, one of the graph's.
    pub node: &'a Node,
    /// Inputs of one run.
    pub batch: usize,
    /// The options that were chosen for the node's step.
    pub options: StepOptions,
    /// Elements of one input of other nodes whose function of each element runs with this one's.
    pub joined: usize,
    /// The width of the results where a node that extends them runs with this one, or wider extensions
    /// do.
    pub extended: Option<u32>,
}

impl<'a> NodeContext<'a> {
    /// A node in runs of one input, where nothing was chosen.
    pub fn plain(graph: &'a Graph, node: &'a Node) -> Self {
        Self { graph, node, batch: 1, options: StepOptions::default(), joined: 0, extended: None }
    }

    /// Returns the node's operator.
    ///
    /// # Errors
    /// [`Error::Internal`] where it is no `T`.
    pub fn operator<T: Operator>(&self) -> Result<&'a T> {
        let other =
            || Error::internal(format!("a protocol of another operator for `{}`", self.node.name));
        self.node.op.get().ok_or_else(other)
    }

    /// Returns the first tensor that the node reads.
    pub fn input(&self) -> &'a Tensor {
        self.graph.input_of(self.node, 0)
    }

    /// Returns the tensor that the node writes.
    pub fn output(&self) -> &'a Tensor {
        self.graph.output_of(self.node)
    }

    /// Returns the width of the shares of the first tensor that the node reads, in bits.
    pub fn bits(&self) -> u32 {
        self.input().format.bits
    }

    /// Returns the width of the shares that the node writes, in bits.
    pub fn out_bits(&self) -> u32 {
        self.output().format.bits
    }

    /// Returns the number of elements that one run writes, those of nodes that run with this one
    /// included.
    pub fn count(&self) -> usize {
        (self.output().len() + self.joined) * self.batch
    }

    /// Digits of comparisons, where the options choose some.
    pub fn digits(&self) -> Option<Radix> {
        digits_of(self.options)
    }

    /// Returns the chosen digits of comparisons, or the fastest for so many comparisons of so many
    /// bits.
    pub fn radix(&self, count: usize, bits: u32) -> Radix {
        self.digits().unwrap_or_else(|| Radix::fastest(count, bits))
    }
}
