//! Removes nodes that the output does not depend on.

use crate::Result;
use crate::source::Program;
use std::collections::BTreeSet;

pub(super) fn run(mut program: Program) -> Result<Program> {
    let source = &mut program.source;
    let mut needed = BTreeSet::from([source.output.clone()]);
    needed.extend(source.states.iter().map(|state| state.after.clone()));
    for node in source.nodes.iter().rev() {
        if needed.contains(&node.output) {
            needed.extend(node.inputs.iter().cloned());
        }
    }
    source.nodes.retain(|node| needed.contains(&node.output));
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{node, program, relu};
    use super::*;
    use crate::source::Floats;
    use crate::source::ops::Add;

    #[test]
    fn only_what_the_output_needs_stays() {
        let nodes = vec![
            node(&["x"], "a", relu()),
            node(&["x"], "dead", relu()),
            node(&["dead"], "dead too", relu()),
            node(&["a", "x"], "y", Add {}.into()),
        ];
        let after = run(program(&[4], nodes, Floats::new())).map(|p| p.source);
        let names = after.map(|s| s.nodes.into_iter().map(|n| n.output).collect::<Vec<_>>());
        assert!(matches!(names.as_deref(), Ok([a, y]) if a == "a" && y == "y"));
    }
}
