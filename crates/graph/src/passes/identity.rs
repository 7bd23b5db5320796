//! Removes identities: their readers read what the identity read.

use crate::Result;
use crate::source::Program;
use crate::source::ops::Identity;

pub(super) fn run(mut program: Program) -> Result<Program> {
    let source = &mut program.source;
    while let Some(index) = source.nodes.iter().position(|n| n.op.is::<Identity>()) {
        let removed = source.nodes.remove(index);
        let readers = source.nodes.iter_mut().flat_map(|n| &mut n.inputs);
        let states = source.states.iter_mut().map(|state| &mut state.after);
        let readers = readers.chain(states).chain([&mut source.output]);
        for name in readers.filter(|name| **name == removed.output) {
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
    use crate::source::ops::Add;

    #[test]
    fn chains_and_the_output_are_rewired() {
        let nodes = vec![
            node(&["x"], "a", Identity {}.into()),
            node(&["a"], "b", Identity {}.into()),
            node(&["b", "a"], "c", Add {}.into()),
            node(&["c"], "d", relu()),
            node(&["d"], "y", Identity {}.into()),
        ];
        let after = run(program(&[4], nodes, Floats::new())).unwrap();
        assert_eq!(after.source.output, "d");
        assert_eq!(after.source.nodes[0].inputs, ["x", "x"]);
        assert_eq!(after.source.nodes.len(), 2);
        assert!(after.shapes().is_ok());
    }
}
