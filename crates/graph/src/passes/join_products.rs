//! The sum of two fully connected layers of two vectors, as one layer of both vectors.

use crate::Result;
use crate::source::ops::{Add, Gemm, Join};
use crate::source::{FloatTensor, Program, SourceNode};

/// Joins the gates of a recurrent layer that takes one step, `W*x + R*h`, and what else adds two
/// such products: one layer of n by m+m values is cheaper than two of n by m. The vectors
/// are multiplied by powers of two that let the weights of both have like sizes.
pub(super) fn run(program: Program) -> Result<Program> {
    for index in 0..program.source.nodes.len() {
        let Some([a, b]) = products(&program, index) else { continue };
        let joined = joined(&program, index, [a, b]);
        // A layer may be too large for one.
        if joined.inferred().is_ok() {
            return run(joined);
        }
    }
    Ok(program)
}

/// The places of the two products that only a sum reads, the earlier one first.
fn products(program: &Program, sum: usize) -> Option<[usize; 2]> {
    let (source, floats) = (&program.source, &program.floats);
    let node = source.nodes.get(sum).filter(|node| node.op.is::<Add>())?;
    let [a, b] = &node.inputs[..] else { return None };
    let mut places = [source.single_use_linear(a)?, source.single_use_linear(b)?];
    places.sort_unstable();
    let [first, second] = places.map(|place| &source.nodes[place]);
    let plain = |node: &SourceNode| {
        let producer = source.producer(&node.inputs[0]).map(|place| &source.nodes[place]);
        node.op.get::<Gemm>().is_some_and(|gemm| floats.contains_key(&gemm.weight))
            && !producer.is_some_and(|producer| producer.op.is::<Join>())
    };
    let apart = first.inputs != second.inputs && first.output != second.output;
    (plain(first) && plain(second) && apart).then_some(places)
}

/// The program in which one product takes the place of two and of their sum.
fn joined(program: &Program, sum: usize, products: [usize; 2]) -> Program {
    let mut changed = program.clone();
    let nodes = products.map(|place| &program.source.nodes[place]);
    let inputs: Vec<String> = nodes.iter().map(|node| node.inputs[0].clone()).collect();
    let gemms: Vec<&Gemm> = nodes.iter().filter_map(|node| node.op.get::<Gemm>()).collect();
    let weights: Vec<&FloatTensor> =
        gemms.iter().map(|gemm| &program.floats[&gemm.weight]).collect();
    let outputs = weights[0].shape[0];
    let lengths: Vec<usize> = weights.iter().map(|weight| weight.shape[1]).collect();
    let rows = (0..outputs).flat_map(|row| {
        let parts = weights.iter().zip(&lengths);
        parts.flat_map(move |(weight, length)| &weight.data[row * length..(row + 1) * length])
    });
    let both =
        FloatTensor { shape: vec![outputs, lengths.iter().sum()], data: rows.copied().collect() };
    let biases: Vec<&FloatTensor> =
        gemms.iter().filter_map(|gemm| Some(&program.floats[gemm.bias.as_ref()?])).collect();
    let bias = (!biases.is_empty()).then(|| {
        let total = |row: usize| biases.iter().map(|bias| bias.data[row]).sum::<f32>();
        FloatTensor::vector((0..outputs).map(total).collect())
    });
    let SourceNode { name, output, .. } = &program.source.nodes[sum];
    let weight = changed.store(&format!("{name}.joined.weight"), both);
    let bias = bias.map(|bias| changed.store(&format!("{name}.joined.bias"), bias));
    let tensor = program.source.fresh(&format!("{output}.joined"));
    let join = SourceNode {
        name: tensor.clone(),
        inputs,
        output: tensor.clone(),
        op: Join { balanced: true }.into(),
    };
    let product = SourceNode {
        name: name.clone(),
        inputs: vec![tensor],
        output: output.clone(),
        op: Gemm { weight, bias }.into(),
    };
    changed.source.nodes.splice(sum..=sum, [join, product]);
    let [first, second] = products;
    changed.source.nodes.remove(second);
    changed.source.nodes.remove(first);
    changed
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{floats, node, program, relu};
    use super::*;
    use crate::source::SourceOp;

    fn gemm(weight: &str, bias: Option<&str>) -> SourceOp {
        Gemm { weight: weight.into(), bias: bias.map(str::to_owned) }.into()
    }

    /// `w*x + b + r*h` of two values each, `h` being a ReLU of `x`.
    fn step() -> Program {
        let weights = floats(&[
            ("w", &[2, 2], &[1.0, 2.0, 3.0, 4.0]),
            ("r", &[2, 2], &[5.0, 6.0, 7.0, 8.0]),
            ("b", &[2], &[0.5, -0.5]),
        ]);
        let nodes = vec![
            node(&["x"], "h", relu()),
            node(&["x"], "a", gemm("w", Some("b"))),
            node(&["h"], "c", gemm("r", None)),
            node(&["c", "a"], "y", Add {}.into()),
        ];
        program(&[2], nodes, weights)
    }

    #[test]
    fn two_products_and_their_sum_become_one() {
        let after = run(step()).unwrap();
        let [_, join, product] = &after.source.nodes[..] else { unreachable!("three nodes") };
        assert_eq!((&join.inputs[..], join.op.is::<Join>()), (&["x".into(), "h".into()][..], true));
        assert_eq!((product.output.as_str(), &product.inputs[0]), ("y", &join.output));
        let gemm = product.op.get::<Gemm>().unwrap();
        let both = &after.floats[&gemm.weight];
        assert_eq!(both.shape, [2, 4]);
        assert_eq!(both.data, [1.0, 2.0, 5.0, 6.0, 3.0, 4.0, 7.0, 8.0]);
        assert_eq!(after.floats[gemm.bias.as_ref().unwrap()].data, [0.5, -0.5]);
        assert!(after.shapes().is_ok());
    }

    #[test]
    fn products_that_something_else_reads_stay() {
        let mut before = step();
        before.source.nodes.push(node(&["y", "a"], "z", Add {}.into()));
        before.source.output = "z".into();
        assert_eq!(run(before.clone()).unwrap(), before);
    }

    #[test]
    fn products_of_one_vector_stay() {
        let mut before = step();
        before.source.nodes[2].inputs = vec!["x".into()];
        assert_eq!(run(before.clone()).unwrap(), before);
    }
}
