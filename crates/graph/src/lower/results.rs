//! Results that have a scale of their own, beside that of the operators which read them too.

use super::split::Split;
use crate::error::Result;
use crate::source::ops::Mask;
use crate::source::{Calibration, Program};
use std::collections::BTreeSet;

/// Gives results finer steps than what else reads them asks for.
///
/// A softmax, and a sum or a concatenation with something large, want coarse steps, which the
/// client would see where such an operator reads a result. They read the result rescaled then.
/// Only results with fewer steps than an activation are changed, and only where that helps.
pub(super) fn apart(
    mut program: Program,
    calibration: &Calibration,
    activation_bits: u32,
) -> Result<Program> {
    let (shown, nodes) = shown(&program);
    for tensor in shown {
        let writer = program.source.producer(&tensor).map(|index| &program.source.nodes[index]);
        if writer.is_none_or(|node| node.op.is::<Mask>()) {
            continue;
        }
        let bits = activation_bits - 1;
        let split = Split { coarse: &tensor, bits, read: &tensor, kept: &nodes };
        program = split.apart(program, calibration, activation_bits)?;
    }
    Ok(program)
}

/// The tensors that have the output's scale up to a factor because the output shows them, and the
/// names of the nodes by which it does.
fn shown(program: &Program) -> (Vec<String>, BTreeSet<String>) {
    let source = &program.source;
    let (mut tensors, mut nodes) = (vec![source.output.clone()], BTreeSet::new());
    let mut next = 0;
    while let Some(tensor) = tensors.get(next) {
        next += 1;
        let Some(index) = source.producer(tensor) else { continue };
        let node = &source.nodes[index];
        if node.op.ratio().is_some() && nodes.insert(node.name.clone()) {
            let tied = node.inputs.iter().take(node.op.tied_inputs());
            tensors.extend(tied.cloned().collect::<Vec<_>>());
        }
    }
    (tensors, nodes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::scale::Scales;
    use super::*;
    use crate::passes::tests::{conv, floats, node, program, relu};
    use crate::source::Ranges;
    use crate::source::ops::{Concat, Reshape, Scale, Softmax};

    const BITS: u32 = 8;

    /// Scores `a` of two rows, which the result shows beside their softmax.
    fn shown_and_read() -> (Program, Calibration) {
        let nodes = vec![
            node(&["x"], "a", conv("w")),
            node(&["a"], "flat", Reshape { shape: vec![6] }.into()),
            node(&["a"], "scores", Scale { factor: 0.5 }.into()),
            node(&["scores"], "weights", Softmax {}.into()),
            node(&["weights"], "b", relu()),
            node(&["b"], "other", Reshape { shape: vec![6] }.into()),
            node(&["flat", "other"], "y", Concat {}.into()),
        ];
        let weight: [f32; 4] = [1.0, 0.0, 0.0, 1.0];
        let made = program(&[2, 1, 3], nodes, floats(&[("w", &[2, 2, 1, 1], &weight)]));
        let names = ["x", "a", "flat", "scores", "weights", "b", "other", "y"];
        let ranges: Ranges = names.iter().map(|name| ((*name).to_owned(), (-1.0, 1.0))).collect();
        (made, ranges.into())
    }

    #[test]
    fn a_softmax_reads_a_result_rescaled() {
        let (before, calibration) = shown_and_read();
        let scale = |program: &Program, tensor| {
            Scales::new(program, &calibration.ranges, BITS).unwrap().of(tensor).unwrap()
        };
        let coarse = scale(&before, "scores");
        let after = apart(before, &calibration, BITS).unwrap();
        assert_eq!(after.source.nodes[1].inputs, ["a"]);
        let scores = after.source.nodes.iter().find(|node| node.output == "scores").unwrap();
        assert_eq!(scores.inputs, ["a.rescaled"]);
        assert_eq!(scale(&after, "scores"), coarse);
        assert!(scale(&after, "a") < coarse / 8.0);
        assert!(after.shapes().is_ok());
    }

    #[test]
    fn what_is_fine_enough_stays() {
        let (mut before, calibration) = shown_and_read();
        before.source.nodes.retain(|node| node.output != "weights");
        for node in &mut before.source.nodes {
            let softmax = node.inputs.iter_mut().filter(|input| *input == "weights");
            softmax.for_each(|input| "scores".clone_into(input));
        }
        assert_eq!(apart(before.clone(), &calibration, BITS).unwrap(), before);
    }
}
