//! Nodes that have the same ways to run: a planner prices those of one for all. Blocks of a transformer are
//! alike.

use std::fmt::Write;

use graph::{Graph, MatMul, Node, Tensor, ops};

use super::siblings::Siblings;
use super::{BUILT_IN, appended, operators};

/// What tells the nodes of one graph apart.
pub(crate) struct Likeness<'a> {
    graph: &'a Graph,
    siblings: &'a Siblings,
    known: Vec<bool>,
    /// Whether all protocols are of this version: others may depend on anything.
    told: bool,
}

/// Whether the protocols of an operator are those of integers, whatever they stand for.
fn without_scale(node: &Node) -> bool {
    let op = &node.op;
    let linear = op.is::<graph::Linear>() || op.is::<MatMul>() || op.is::<ops::Product>();
    let others = op.is::<ops::Relu>() || op.is::<ops::Extend>() || op.is::<ops::Lookup>();
    linear || others || op.is::<ops::Sum>() || op.is::<ops::Requantize>()
}

impl<'a> Likeness<'a> {
    pub(crate) fn new(graph: &'a Graph, siblings: &'a Siblings) -> Self {
        let told = BUILT_IN.iter().any(|suite| suite.name == graph.suite);
        Self { graph, siblings, known: graph.known(), told }
    }

    /// A text that is the same for nodes with the same ways to run; `None` for a node of which that is not
    /// known.
    pub(crate) fn of(&self, index: usize) -> Option<String> {
        let node = self.graph.nodes.get(index)?;
        let own = operators::BUILT_IN.iter().any(|(kind, _)| *kind == node.op.kind());
        if !self.told || !own || self.siblings.host(index).is_some() {
            return None;
        }
        let scaled = !without_scale(node);
        let mut text = format!("{:?}", node.op);
        let mut tensor = |tensor: &Tensor| {
            let format = tensor.format;
            let scale = if scaled { format.scale } else { 0.0 };
            write!(text, " {:?} {} {} {scale:e}", tensor.shape, format.bits, format.signed)
        };
        for input in node.inputs.iter().filter_map(|input| self.graph.tensors.get(*input)) {
            tensor(input).ok()?;
        }
        tensor(self.graph.output_of(node)).ok()?;
        for other in self.siblings.with(self.graph, index) {
            tensor(self.graph.output_of(other)).ok()?;
        }
        let behind = self.siblings.behind(self.graph, index);
        let behind = behind.map(|node| self.graph.output_of(node).format.bits);
        let known: Vec<bool> =
            node.inputs.iter().filter_map(|input| self.known.get(*input).copied()).collect();
        let same: Vec<bool> =
            node.inputs.iter().map(|input| node.inputs.first() == Some(input)).collect();
        let grows = appended::grows(self.graph, node);
        write!(text, " {behind:?} {known:?} {same:?} {grows}").ok()?;
        Some(text)
    }
}
