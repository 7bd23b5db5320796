//! `Concat(Relu(a), Relu(b))` becomes `Relu(Concat(a, b))`: one comparison for all, and
//! one that a max pool behind it can go before.

use crate::Result;
use crate::source::ops::{Concat, Relu};
use crate::source::{Program, Source, SourceNode};

pub(super) fn run(mut program: Program) -> Result<Program> {
    while let Some(concat) = candidate(&program.source) {
        move_past(&mut program.source, concat);
    }
    Ok(program)
}

/// A concatenation of ReLUs of one maximum that nothing else reads.
fn candidate(source: &Source) -> Option<usize> {
    let nodes = source.nodes.iter().enumerate();
    let mut concats = nodes.filter(|(_, node)| node.op.is::<Concat>());
    let found = concats.find(|(_, concat)| {
        let relu = |input: &String| single_relu(source, input).map(|relu| relu.op.clone());
        let first = concat.inputs.first().and_then(relu);
        first.is_some() && concat.inputs.iter().all(|input| relu(input) == first)
    });
    found.map(|(index, _)| index)
}

/// The ReLU that writes `tensor` for one reader alone.
fn single_relu<'a>(source: &'a Source, tensor: &str) -> Option<&'a SourceNode> {
    let node = &source.nodes[source.producer(tensor)?];
    let is_relu = node.op.is::<Relu>();
    (is_relu && source.uses(tensor) == 1).then_some(node)
}

/// One ReLU takes over the concatenation's name, whose values do not change.
fn move_past(source: &mut Source, concat: usize) {
    let between = source.fresh(&format!("{}.before-relu", source.nodes[concat].output));
    let inputs = std::mem::take(&mut source.nodes[concat].inputs);
    let output = std::mem::replace(&mut source.nodes[concat].output, between.clone());
    let mut relus = Vec::new();
    let mut at = concat;
    for input in inputs {
        if let Some(relu) = source.producer(&input) {
            relus.push(source.nodes.remove(relu));
            at -= 1;
        }
    }
    let sources = relus.iter().map(|relu| relu.inputs[0].clone()).collect();
    source.nodes[at].inputs = sources;
    if let Some(relu) = relus.into_iter().next() {
        source.nodes.insert(at + 1, SourceNode { inputs: vec![between], output, ..relu });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{max_pool, node, program, relu};
    use super::*;
    use crate::source::Floats;
    use crate::source::ops::MaxPool;

    #[test]
    fn one_relu_comes_after_the_concatenation_and_the_pool() {
        let nodes = vec![
            node(&["x"], "a", relu()),
            node(&["x"], "b", relu()),
            node(&["a", "b"], "c", Concat {}.into()),
            node(&["c"], "y", max_pool()),
        ];
        let after = super::super::run(program(&[1, 4, 4], nodes, Floats::new())).unwrap();
        let [concat, pool, last] = &after.source.nodes[..] else { unreachable!("three nodes") };
        assert_eq!((concat.op.is::<Concat>(), concat.inputs.len()), (true, 2));
        assert!(pool.op.is::<MaxPool>());
        assert_eq!((&last.op, last.output.as_str()), (&relu(), "y"));
        assert_eq!(after.shapes().unwrap()["y"], [2, 2, 2]);
    }

    #[test]
    fn other_maxima_and_other_readers_stay() {
        let clip = Relu { maximum: Some(1.0), bits: None };
        let nodes = vec![
            node(&["x"], "a", relu()),
            node(&["x"], "b", clip.into()),
            node(&["a", "b"], "c", Concat {}.into()),
            node(&["x"], "d", relu()),
            node(&["d", "d"], "y", Concat {}.into()),
        ];
        let before = program(&[1, 4, 4], nodes, Floats::new());
        assert_eq!(run(before.clone()).unwrap(), before);
    }
}
