//! A ReLU whose only reader is a ReLU: one that stops at the smaller maximum.

use crate::Result;
use crate::source::ops::Relu;
use crate::source::{Program, Source, SourceOp};

pub(super) fn run(mut program: Program) -> Result<Program> {
    while let Some((first, second)) = candidate(&program.source) {
        let removed = program.source.nodes.remove(first);
        let kept = &mut program.source.nodes[second - 1];
        if let (Some(Relu { maximum: a, .. }), Some(Relu { maximum: b, .. })) =
            (removed.op.get(), kept.op.get_mut())
        {
            *b = match (*a, *b) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        kept.inputs = removed.inputs;
    }
    Ok(program)
}

fn candidate(source: &Source) -> Option<(usize, usize)> {
    let bits = |op: &SourceOp| op.get().map(|relu: &Relu| relu.bits);
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
    use crate::source::ops::Add;

    #[test]
    fn the_smaller_maximum_stays() {
        let clip = |maximum| Relu { maximum: Some(maximum), bits: None }.into();
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
            node(&["a", "b"], "y", Add {}.into()),
        ];
        let before = program(&[4], nodes, Floats::new());
        assert_eq!(run(before.clone()).unwrap(), before);
    }
}
