//! Takes factors and constants of layer norms over into what reads them: a dense 1x1
//! convolution multiplies its weights by them; a sum with such a convolution's result
//! becomes one convolution of both inputs, which holds the factors on a diagonal. What else
//! reads a norm reads a depthwise convolution of the bare one.

use super::affine::{self, Affine};
use crate::Result;
use crate::source::ops::{Add, Join, LayerNorm};
use crate::source::{FloatTensor, Program, SourceNode};

/// A norm without factors, and what was taken off it.
struct Bare {
    /// What the norm computed before.
    full: String,
    /// What it computes now.
    bare: String,
    affine: Affine,
}

pub(super) fn run(mut program: Program) -> Result<Program> {
    let mut index = 0;
    while index < program.source.nodes.len() {
        if let Some(bare) = strip(&mut program, index)? {
            while take_over(&mut program, &bare)? {}
        }
        index += 1;
    }
    Ok(program)
}

/// Moves the factors of a norm of an image to a depthwise convolution behind it.
fn strip(program: &mut Program, index: usize) -> Result<Option<Bare>> {
    let node = program.source.nodes[index].clone();
    let Some(LayerNorm { scale, bias, epsilon, rms }) = node.op.get() else { return Ok(None) };
    let shapes = program.inferred()?;
    let [channels, _, _] = shapes[&node.output][..] else { return Ok(None) };
    if scale.is_none() && bias.is_none() {
        return Ok(None);
    }
    let values = |name: &Option<String>, absent: f64| match name {
        Some(name) => program.floats[name].data.iter().map(|v| f64::from(*v)).collect(),
        None => vec![absent; channels],
    };
    let affine = Affine { factor: values(scale, 1.0), offset: values(bias, 0.0) };
    let bare = program.source.fresh(&format!("{}.bare", node.output));
    let (epsilon, rms) = (*epsilon, *rms);
    let op = affine.to_convolution(program, &node.name);
    let nodes = &mut program.source.nodes;
    nodes[index].output.clone_from(&bare);
    nodes[index].op = LayerNorm { epsilon, scale: None, bias: None, rms }.into();
    let name = format!("{}.affine", node.name);
    let full = node.output;
    nodes.insert(
        index + 1,
        SourceNode { name, inputs: vec![bare.clone()], output: full.clone(), op },
    );
    Ok(Some(Bare { full, bare, affine }))
}

/// Lets one reader do without the factors; false when none is left that could.
fn take_over(program: &mut Program, norm: &Bare) -> Result<bool> {
    let readers = program.source.nodes.iter().enumerate();
    let readers = readers.filter(|(_, node)| node.inputs.contains(&norm.full));
    let readers: Vec<usize> = readers.map(|(index, _)| index).collect();
    for index in readers {
        let node = &program.source.nodes[index];
        if is_dense(program, node) {
            fold(program, index, norm);
            return Ok(true);
        }
        if let (Some(Add {}), [a, b]) = (node.op.get(), &node.inputs[..]) {
            let other = if *a == norm.full { b } else { a };
            let linear = program.source.single_use_linear(other).filter(|_| a != b);
            if let Some(linear) = linear
                && is_dense(program, &program.source.nodes[linear])
            {
                join(program, [linear, index], norm)?;
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether `node` multiplies each position by one matrix, and reads no join.
fn is_dense(program: &Program, node: &SourceNode) -> bool {
    let producer = program.source.producer(&node.inputs[0]);
    affine::is_dense(node)
        && !producer.is_some_and(|producer| program.source.nodes[producer].op.is::<Join>())
}

fn fold(program: &mut Program, index: usize, norm: &Bare) {
    norm.affine.fold_into_reader(program, index);
    let inputs = &mut program.source.nodes[index].inputs;
    inputs.iter_mut().for_each(|input| input.clone_from(&norm.bare));
}

/// `W*u + f*x + o` as one matrix times both.
fn join(program: &mut Program, [linear, sum]: [usize; 2], norm: &Bare) -> Result<()> {
    let (weight, bias) = affine::weights(program, linear);
    let outputs = bias.len();
    let inner = weight.data.len() / outputs;
    let mut data = Vec::with_capacity(weight.data.len() + outputs * outputs);
    for (channel, row) in weight.data.chunks_exact(inner).enumerate() {
        data.extend_from_slice(row);
        let factor =
            |other: usize| if other == channel { norm.affine.factor[channel] } else { 0.0 };
        data.extend((0..outputs).map(|other| factor(other) as f32));
    }
    let both = FloatTensor { shape: vec![outputs, inner + outputs, 1, 1], data };
    let moved = bias.iter().zip(&norm.affine.offset).map(|(b, o)| (b + o) as f32).collect();
    affine::store(program, linear, both, moved);
    let output = program.source.nodes[sum].output.clone();
    let joined = program.source.fresh(&format!("{output}.joined"));
    let mut product = program.source.nodes.remove(linear);
    let name = format!("{}.join", product.name);
    let inputs = vec![product.inputs[0].clone(), norm.bare.clone()];
    product.inputs = vec![joined.clone()];
    product.output = output;
    let join = SourceNode { name, inputs, output: joined, op: Join { balanced: false }.into() };
    // The product stood before the sum.
    program.source.nodes.splice(sum - 1..sum, [join, product]);
    program.inferred().map(drop)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{conv, floats, node, program};
    use super::*;
    use crate::source::ops::{Conv, Gelu, Multiply};

    /// A norm whose result a convolution, a sum with a convolution's result, and something
    /// else read.
    #[test]
    fn readers_take_factors_over() {
        let weights = floats(&[
            ("w", &[2, 2, 1, 1], &[1.0, 2.0, 3.0, 4.0]),
            ("f", &[2], &[10.0, 0.5]),
            ("o", &[2], &[1.0, -1.0]),
        ]);
        let norm =
            LayerNorm { epsilon: 0.0, scale: Some("f".into()), bias: Some("o".into()), rms: false };
        let nodes = vec![
            node(&["x"], "n", norm.into()),
            node(&["n"], "a", conv("w")),
            node(&["a"], "g", Gelu {}.into()),
            node(&["g"], "b", conv("w")),
            node(&["b", "n"], "c", Add {}.into()),
            node(&["c", "n"], "y", Multiply {}.into()),
        ];
        let after = run(program(&[2, 3, 1], nodes, weights)).unwrap();
        after.shapes().unwrap();
        let by =
            |output: &str| after.source.nodes.iter().find(|node| node.output == output).unwrap();
        assert_eq!(by("a").inputs, ["n.bare"]);
        let held = |output: &str| {
            let conv: &Conv = by(output).op.get().unwrap();
            let bias = conv.bias.as_ref().unwrap();
            (after.floats[&conv.weight].data.clone(), after.floats[bias].data.clone())
        };
        assert_eq!(held("a"), (vec![10.0, 1.0, 30.0, 2.0], vec![-1.0, -1.0]));
        assert_eq!(by("c.joined").inputs, ["g", "n.bare"]);
        let both = vec![1.0, 2.0, 10.0, 0.0, 3.0, 4.0, 0.0, 0.5];
        assert_eq!(held("c"), (both, vec![1.0, -1.0]));
        assert_eq!(held("n"), (vec![10.0, 0.5], vec![1.0, -1.0]));
        assert_eq!(by("y").inputs, ["c", "n"]);
    }
}
