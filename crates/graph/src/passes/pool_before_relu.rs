//! `MaxPool(Relu(x))` becomes `Relu(MaxPool(x))`: the same values, with the
//! expensive comparison on the pooled tensor (FALCON, section on max pooling).

use crate::Result;
use crate::source::ops::{MaxPool, Relu};
use crate::source::{Program, Source};

pub(super) fn run(mut program: Program) -> Result<Program> {
    while let Some((relu, pool)) = candidate(&program.source) {
        swap(&mut program.source, relu, pool);
    }
    Ok(program)
}

/// A max pool that is the only reader of a ReLU.
fn candidate(source: &Source) -> Option<(usize, usize)> {
    let nodes = source.nodes.iter().enumerate();
    let mut pools = nodes.filter(|(_, node)| node.op.is::<MaxPool>());
    pools.find_map(|(pool, node)| {
        let relu = source.producer(&node.inputs[0])?;
        let is_relu = source.nodes[relu].op.is::<Relu>();
        (is_relu && source.uses(&node.inputs[0]) == 1).then_some((relu, pool))
    })
}

/// The ReLU takes over the pool's output name, whose values do not change.
fn swap(source: &mut Source, relu: usize, pool: usize) {
    let between = source.fresh(&format!("{}.before-relu", source.nodes[pool].output));
    let input = source.nodes[relu].inputs[0].clone();
    let output = std::mem::replace(&mut source.nodes[pool].output, between.clone());
    source.nodes[pool].inputs[0] = input;
    source.nodes[relu].inputs[0] = between;
    source.nodes[relu].output = output;
    source.nodes.swap(relu, pool);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{max_pool, node, program, relu};
    use super::*;
    use crate::source::Floats;
    use crate::source::ops::Add;

    #[test]
    fn the_relu_moves_past_every_pool_and_takes_the_name() {
        let nodes = vec![
            node(&["x"], "a", relu()),
            node(&["a"], "b", max_pool()),
            node(&["b"], "y", max_pool()),
        ];
        let after = run(program(&[1, 4, 4], nodes, Floats::new())).unwrap();
        let [first, second, last] = &after.source.nodes[..] else { unreachable!("three nodes") };
        assert!(first.op.is::<MaxPool>());
        assert!(second.op.is::<MaxPool>());
        assert!(last.op.is::<Relu>());
        assert_eq!(last.output, "y");
        assert_eq!(after.shapes().unwrap()["y"], [1, 1, 1]);
    }

    #[test]
    fn a_relu_with_another_reader_stays() {
        let nodes = vec![
            node(&["x"], "a", relu()),
            node(&["a"], "b", max_pool()),
            node(&["a"], "c", max_pool()),
            node(&["b", "c"], "y", Add {}.into()),
        ];
        let before = program(&[1, 4, 4], nodes, Floats::new());
        assert_eq!(run(before.clone()).unwrap(), before);
    }
}
