//! Moves per-channel constants that follow a linear node into its bias.

use super::affine;
use crate::Result;
use crate::source::Program;
use crate::source::ops::AddConstant;

pub(super) fn run(program: Program) -> Result<Program> {
    affine::fold(program, |op| op.is::<AddConstant>())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{conv, floats, node, program, relu};
    use super::*;
    use crate::source::SourceOp;
    use crate::source::ops::{Add, Conv};

    fn constant(name: &str) -> SourceOp {
        AddConstant { constant: name.into() }.into()
    }

    #[test]
    fn constants_add_up_in_the_bias_and_keep_the_last_name() {
        let weights = floats(&[
            ("w", &[2, 1, 1, 1], &[1.0, 2.0]),
            ("b", &[2, 1, 1], &[3.0, 4.0]),
            ("full", &[2, 1, 2], &[10.0, 10.0, 20.0, 20.0]),
            ("one", &[], &[100.0]),
        ]);
        let nodes = vec![
            node(&["x"], "a", conv("w")),
            node(&["a"], "b", constant("b")),
            node(&["b"], "c", constant("full")),
            node(&["c"], "y", constant("one")),
        ];
        let after = run(program(&[1, 1, 2], nodes, weights)).unwrap();
        let [only] = &after.source.nodes[..] else { unreachable!("one node is left") };
        let Some(Conv { bias: Some(bias), .. }) = only.op.get() else { unreachable!("a bias") };
        assert_eq!(after.floats[bias].data, [113.0, 124.0]);
        assert_eq!(only.output, "y");
    }

    #[test]
    fn a_second_reader_of_the_convolution_keeps_its_value() {
        let weights = floats(&[("w", &[1, 1, 1, 1], &[1.0]), ("b", &[1], &[3.0])]);
        let nodes = vec![
            node(&["x"], "a", conv("w")),
            node(&["a"], "b", constant("b")),
            node(&["a", "b"], "y", Add {}.into()),
        ];
        let before = program(&[1, 1, 2], nodes, weights);
        assert_eq!(run(before.clone()).unwrap(), before);
        let after = super::super::run(before).unwrap();
        assert!(after.source.nodes[1].op.is::<AddConstant>());
    }

    #[test]
    fn a_constant_per_element_stays() {
        let weights = floats(&[("b", &[1, 1, 2], &[3.0, 4.0])]);
        let nodes = vec![node(&["x"], "a", relu()), node(&["a"], "y", constant("b"))];
        let after = super::super::run(program(&[1, 1, 2], nodes, weights)).unwrap();
        assert_eq!(after.source.nodes[1], node(&["a"], "y", constant("b")));
    }
}
