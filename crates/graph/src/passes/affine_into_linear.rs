//! Factors and offsets of channels before a layer that multiplies all of them by one matrix
//! become part of its weights, as those of a scaler before a linear model. Offsets alone stay:
//! adding them takes no message. Factors that would make columns of weights uneven stay too: a row
//! has one step, which leaves few for its small columns.

use super::affine::{self, Affine, is_dense};
use crate::Result;
use crate::source::ops::BatchNormalization;
use crate::source::{Program, SourceNode};

/// By how much the largest column of weights may exceed the median one, unless it did before.
const EVEN: f64 = 4.0;

pub(super) fn run(program: Program) -> Result<Program> {
    let mut program = affine::merge(program)?;
    let shapes = program.inferred()?;
    // From the last to the first, which keeps the places of those that are still to come.
    for index in (0..program.source.nodes.len()).rev() {
        let node = &program.source.nodes[index];
        let found = Affine::of(&program, node, &shapes[&node.output]);
        let Some(affine) = found.filter(|_| node.op.is::<BatchNormalization>()) else { continue };
        let nodes = program.source.nodes.iter().enumerate();
        let readers = nodes.filter(|(_, reader)| reader.inputs.contains(&node.output));
        let readers: Vec<usize> = readers.map(|(reader, _)| reader).collect();
        let channels = affine.factor.len();
        let takes = |reader: &usize| reads_all(&program, &program.source.nodes[*reader], channels);
        let stays = program.source.is_kept(&node.output) || !readers.iter().all(takes);
        if stays || !readers.iter().all(|reader| stays_even(&program, *reader, &affine)) {
            continue;
        }
        let input = node.inputs[0].clone();
        for reader in readers {
            affine.fold_into_reader(&mut program, reader);
            program.source.nodes[reader].inputs[0].clone_from(&input);
        }
        program.source.nodes.remove(index);
    }
    Ok(program)
}

/// Whether factors leave the columns of weights of a node as even as they must be, or were.
fn stays_even(program: &Program, reader: usize, affine: &Affine) -> bool {
    let (weight, _) = affine::weights(program, reader);
    let mut columns = vec![0.0f64; affine.factor.len()];
    for row in weight.data.chunks_exact(affine.factor.len()) {
        for (most, w) in columns.iter_mut().zip(row) {
            *most = most.max(f64::from(w.abs()));
        }
    }
    let scaled = columns.iter().zip(&affine.factor).map(|(column, factor)| column * factor.abs());
    spread(scaled.collect()) <= spread(columns).max(EVEN)
}

/// The largest of some sizes in the median one.
fn spread(mut sizes: Vec<f64>) -> f64 {
    sizes.sort_by(f64::total_cmp);
    let (median, largest) = (sizes.get(sizes.len().saturating_sub(1) / 2), sizes.last());
    median.zip(largest).map_or(1.0, |(median, largest)| largest / median.max(f64::MIN_POSITIVE))
}

/// Whether a node multiplies all `channels` of what it reads by one matrix.
fn reads_all(program: &Program, node: &SourceNode, channels: usize) -> bool {
    let linear = node.op.linear().filter(|_| is_dense(node));
    linear.is_some_and(|linear| program.floats[linear.weight()].shape.get(1) == Some(&channels))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{floats, node, program, relu};
    use super::*;
    use crate::source::FloatTensor;
    use crate::source::ops::{AddConstant, Gemm};

    /// A scaler of two features, and what reads it.
    fn scaled(readers: Vec<SourceNode>) -> Program {
        let [scale, bias, mean, variance] = ["s", "z", "z", "one"].map(String::from);
        let norm = BatchNormalization { scale, bias, mean, variance, epsilon: 0.0 };
        let mut nodes = vec![
            node(&["x"], "centred", AddConstant { constant: "c".into() }.into()),
            node(&["centred"], "even", norm.into()),
        ];
        nodes.extend(readers);
        let weights = [
            ("s", &[2][..], &[0.5, 1.0][..]),
            ("z", &[2], &[0.0, 0.0]),
            ("one", &[2], &[1.0, 1.0]),
            ("c", &[2], &[-3.0, 1.0]),
            ("w", &[1, 2], &[2.0, 1.0]),
            ("b", &[1], &[10.0]),
        ];
        program(&[2], nodes, floats(&weights))
    }

    fn gemm() -> SourceNode {
        node(&["even"], "y", Gemm { weight: "w".into(), bias: Some("b".into()) }.into())
    }

    #[test]
    fn a_layer_takes_scalers_over() {
        let after = run(scaled(vec![gemm()])).unwrap();
        let [_, only] = &after.source.nodes[..] else { unreachable!("the offset and the layer") };
        assert_eq!(only.inputs, ["centred"]);
        let Some(Gemm { weight, bias: Some(bias) }) = only.op.get() else { unreachable!("a Gemm") };
        assert_eq!(after.floats[weight].data, [1.0, 1.0]);
        assert_eq!(after.floats[bias].data, [10.0]);
    }

    #[test]
    fn what_something_else_reads_stays() {
        let mut before = scaled(vec![gemm(), node(&["even"], "r", relu())]);
        let outputs = |program: Program| -> Vec<String> {
            program.source.nodes.into_iter().map(|node| node.output).collect()
        };
        assert_eq!(outputs(run(before).unwrap()), ["centred", "even", "y", "r"]);
        before = scaled(vec![]);
        before.source.output = "even".into();
        assert_eq!(outputs(run(before).unwrap()), ["centred", "even"]);
    }

    #[test]
    fn factors_that_differ_much_stay() {
        let mut before = scaled(vec![gemm()]);
        before.floats.insert("s".into(), FloatTensor::vector(vec![0.5, 50.0]));
        assert_eq!(run(before.clone()).unwrap(), before);
    }

    #[test]
    fn factors_that_make_up_for_others_are_taken_over() {
        let mut before = scaled(vec![gemm()]);
        before.floats.insert("s".into(), FloatTensor::vector(vec![0.5, 50.0]));
        let [scale, bias, mean, variance] = ["t", "z", "z", "one"].map(String::from);
        before.floats.insert("t".into(), FloatTensor::vector(vec![2.0, 0.02]));
        let units = BatchNormalization { scale, bias, mean, variance, epsilon: 0.0 };
        before.source.nodes.insert(0, node(&["x"], "given", units.into()));
        before.source.nodes[1].inputs = vec!["given".into()];
        let after = run(before).unwrap();
        let [only] = &after.source.nodes[..] else { unreachable!("one node is left") };
        let Some(Gemm { weight, bias: Some(bias) }) = only.op.get() else { unreachable!("a Gemm") };
        assert_eq!(after.floats[weight].data, [2.0, 1.0]);
        assert_eq!(after.floats[bias].data, [10.0 - 3.0 + 50.0]);
        assert_eq!(only.inputs, ["x"]);
    }
}
