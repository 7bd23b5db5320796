//! A ReLU whose only reader is a ReLU: one that stops at the smaller maximum.

use crate::Result;
use crate::source::{Program, Source, SourceOp};

pub(super) fn run(mut program: Program) -> Result<Program> {
    while let Some((first, second)) = candidate(&program.source) {
        let removed = program.source.nodes.remove(first);
        let kept = &mut program.source.nodes[second - 1];
        if let (SourceOp::Relu { maximum: a, .. }, SourceOp::Relu { maximum: b, .. }) =
            (removed.op, &mut kept.op)
        {
            *b = match (a, *b) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        kept.inputs = removed.inputs;
    }
    Ok(program)
}

fn candidate(source: &Source) -> Option<(usize, usize)> {
    let bits = |op: &SourceOp| match op {
        SourceOp::Relu { bits, .. } => Some(*bits),
        _ => None,
    };
    let is_relu = |op: &SourceOp| bits(op).is_some();
    let mut relus = source.nodes.iter().enumerate().filter(|(_, node)| is_relu(&node.op));
    relus.find_map(|(second, node)| {
        let first = source.producer(&node.inputs[0])?;
        let single =
            bits(&source.nodes[first].op) == bits(&node.op) && source.uses(&node.inputs[0]) == 1;
        single.then_some((first, second))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{node, program, relu};
    use super::*;
    use crate::source::Floats;

    #[test]
    fn the_smaller_maximum_stays() {
        let clip = |maximum| SourceOp::Relu { maximum: Some(maximum), bits: None };
        let nodes = vec![
            node(&["x"], "a", clip(6.0)),
            node(&["a"], "b", relu()),
            node(&["b"], "y", clip(8.0)),
        ];
        let after = run(program(&[4], nodes, Floats::new())).unwrap();
        assert_eq!(after.source.nodes, [node(&["x"], "y", clip(6.0))]);
    }

    #[test]
    fn a_second_reader_keeps_both() {
        let nodes = vec![
            node(&["x"], "a", relu()),
            node(&["a"], "b", relu()),
            node(&["a", "b"], "y", SourceOp::Add {}),
        ];
        let before = program(&[4], nodes, Floats::new());
        assert_eq!(run(before.clone()).unwrap(), before);
    }
}
