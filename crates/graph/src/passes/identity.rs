//! Removes identities: their readers read what the identity read.

use crate::Result;
use crate::source::{Program, SourceOp};

pub(super) fn run(mut program: Program) -> Result<Program> {
    let source = &mut program.source;
    let is_identity = |op: &SourceOp| matches!(op, SourceOp::Identity {});
    while let Some(index) = source.nodes.iter().position(|n| is_identity(&n.op)) {
        let removed = source.nodes.remove(index);
        let readers = source.nodes.iter_mut().flat_map(|n| &mut n.inputs);
        for name in readers.chain([&mut source.output]).filter(|name| **name == removed.output) {
            name.clone_from(&removed.inputs[0]);
        }
    }
    Ok(program)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{node, program, relu};
    use super::*;
    use crate::source::Floats;

    #[test]
    fn chains_and_the_output_are_rewired() {
        let nodes = vec![
            node(&["x"], "a", SourceOp::Identity {}),
            node(&["a"], "b", SourceOp::Identity {}),
            node(&["b", "a"], "c", SourceOp::Add {}),
            node(&["c"], "d", relu()),
            node(&["d"], "y", SourceOp::Identity {}),
        ];
        let after = run(program(&[4], nodes, Floats::new())).unwrap();
        assert_eq!(after.source.output, "d");
        assert_eq!(after.source.nodes[0].inputs, ["x", "x"]);
        assert_eq!(after.source.nodes.len(), 2);
        assert!(after.shapes().is_ok());
    }
}
