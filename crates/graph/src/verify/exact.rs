//! Graphs of integers that are never rescaled.

use super::{ensure, invalid};
use crate::Result;
use crate::ir::{Exact, Graph, Linear, Node, Op};
use crate::shapes::Check;

/// Checks what [`Graph::exact`] promises.
pub(super) fn check(graph: &Graph) -> Result<()> {
    let Some(exact) = &graph.exact else { return Ok(()) };
    ensure((2..=62).contains(&exact.output_bits), || "output_bits".into())
        .map_err(|why| invalid("graph", why))?;
    for tensor in &graph.tensors {
        ensure(tensor.format.bits == Exact::WIDTH, || "not the width of an exact graph".into())
            .map_err(|why| invalid(&tensor.name, why))?;
    }
    graph.nodes.iter().try_for_each(|node| operator(node).map_err(|why| invalid(&node.name, why)))
}

fn operator(node: &Node) -> Check<()> {
    let exact = match &node.op {
        Op::Linear(Linear { shift: 0, addend: None, .. }) | Op::SumPool(_) | Op::Reshape => true,
        Op::Sum { shift: 0, .. } | Op::Offset => true,
        Op::Product { .. } => node.inputs.first() == node.inputs.get(1),
        _ => false,
    };
    ensure(exact, || "cannot be computed without rescaling".into())
}
