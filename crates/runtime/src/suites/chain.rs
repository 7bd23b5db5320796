//! Chains of nodes that are one garbled circuit, and the operators that can be part of one.

use graph::{Op, View, ops};
use mpc::garbled::Function;

/// Whether an operator is a ReLU, and no clip to another window.
pub(super) fn is_relu(op: &Op) -> bool {
    op.get().is_some_and(|ops::Relu { low, .. }| *low == 0)
}

/// Whether the results of an operator are its inputs in other places or added up, in any ring.
pub(super) fn keeps_ring(op: &Op) -> bool {
    op.is::<ops::Reshape>() || op.is::<View>() || op.is::<ops::Pad>() || op.is::<ops::SumPool>()
}

/// What a circuit does, as far as it was put together.
pub(super) struct Chain {
    /// Positions of each window whose maximum is taken, where there are windows.
    pub(super) windows: Option<Vec<Vec<usize>>>,
    /// The function that the circuit computes so far.
    pub(super) function: Function,
    /// The nodes in it.
    pub(super) nodes: Vec<usize>,
    /// The tensor that it writes.
    pub(super) end: usize,
}

impl Chain {
    /// An empty chain on the tensor `end`, of a circuit that computes `function`.
    pub(super) fn of(end: usize, function: Function) -> Self {
        Self { windows: None, function, nodes: Vec::new(), end }
    }
}
