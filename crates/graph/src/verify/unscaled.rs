//! Graphs of integers that are never rescaled.

use crate::error::{Error, Result};
use crate::ir::{Graph, Unscaled};
use crate::ops::ensure;

/// Checks what [`Graph::exact`] promises.
pub(super) fn check(graph: &Graph) -> Result<()> {
    let Some(exact) = &graph.exact else { return Ok(()) };
    ensure((2..=62).contains(&exact.output_bits), || "output_bits".into())
        .map_err(|why| Error::invalid("verify", "graph", why))?;
    for tensor in &graph.tensors {
        ensure(tensor.format.bits == Unscaled::WIDTH, || "not the width of an exact graph".into())
            .map_err(|why| Error::invalid("verify", &tensor.name, why))?;
    }
    graph.nodes.iter().try_for_each(|node| {
        let exact = node.op.unscaled(&graph.site(node)).is_some();
        ensure(exact, || "cannot be computed without rescaling".into())
            .map_err(|why| Error::invalid("verify", &node.name, why))
    })
}
