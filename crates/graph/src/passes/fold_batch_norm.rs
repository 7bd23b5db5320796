//! Folds batch normalisation into the linear node before it.

use super::affine;
use crate::Result;
use crate::source::Program;
use crate::source::ops::BatchNormalization;

pub(super) fn run(program: Program) -> Result<Program> {
    affine::fold(program, |op| op.is::<BatchNormalization>())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{conv, floats, node, program};
    use super::*;
    use crate::source::ops::{Add, AddConstant, Conv};
    use crate::source::{Floats, SourceOp};

    fn norm() -> SourceOp {
        let [scale, bias, mean, variance] = ["s", "b", "m", "v"].map(String::from);
        BatchNormalization { scale, bias, mean, variance, epsilon: 1.0 }.into()
    }

    fn weights() -> Floats {
        floats(&[
            ("w", &[2, 1, 1, 1], &[1.0, -3.0]),
            ("s", &[2], &[4.0, 6.0]),
            ("b", &[2], &[0.5, 0.0]),
            ("m", &[2], &[1.0, -1.0]),
            ("v", &[2], &[3.0, 8.0]),
        ])
    }

    #[test]
    fn weights_and_bias_take_it_over() {
        let nodes = vec![node(&["x"], "a", conv("w")), node(&["a"], "y", norm())];
        let after = run(program(&[1, 1, 2], nodes, weights())).unwrap();
        let [only] = &after.source.nodes[..] else { unreachable!("one node is left") };
        let Some(Conv { weight, bias: Some(bias), .. }) = only.op.get() else {
            unreachable!("a convolution with a bias")
        };
        assert_eq!(after.floats[weight].data, [2.0, -6.0]);
        assert_eq!(after.floats[bias].data, [0.5 - 2.0, 2.0]);
        assert_eq!(only.output, "y");
        assert_eq!(after.floats["w"].data, [1.0, -3.0]);
    }

    #[test]
    fn two_normalised_uses_of_one_convolution_are_left_to_depthwise() {
        let nodes = vec![
            node(&["x"], "a", conv("w")),
            node(&["a"], "b", norm()),
            node(&["b", "a"], "y", Add {}.into()),
        ];
        let before = program(&[1, 1, 2], nodes, weights());
        assert_eq!(run(before.clone()).unwrap(), before);
        let after = super::super::run(before).unwrap();
        assert_eq!(after.source.nodes[1].op.get().map(|conv: &Conv| conv.groups), Some(2));
    }

    #[test]
    fn on_a_flat_input_it_becomes_a_depthwise_convolution() {
        let after = super::super::run(program(&[2], vec![node(&["x"], "y", norm())], weights()));
        let after = after.unwrap();
        let [_, conv, _] = &after.source.nodes[..] else { unreachable!("reshape, conv, reshape") };
        let Some(Conv { weight, groups: 2, .. }) = conv.op.get() else { unreachable!("depthwise") };
        assert_eq!(after.floats[weight].data, [2.0, 2.0]);
        assert_eq!(after.shapes().unwrap()["y"], [2]);
    }

    #[test]
    fn a_chain_without_a_convolution_becomes_one() {
        let nodes = vec![
            node(&["x"], "a", norm()),
            node(&["a"], "b", norm()),
            node(&["b"], "y", AddConstant { constant: "b".into() }.into()),
        ];
        let after = super::super::run(program(&[2, 1, 1], nodes, weights())).unwrap();
        let [only] = &after.source.nodes[..] else { unreachable!("one node is left") };
        let Some(Conv { weight, bias: Some(bias), .. }) = only.op.get() else {
            unreachable!("a convolution with a bias")
        };
        assert_eq!(after.floats[weight].data, [4.0, 4.0]);
        // 2x - 1.5, twice, plus 0.5; 2x + 2, twice.
        assert_eq!(after.floats[bias].data, [-4.0, 6.0]);
    }
}
