//! Per-channel `factor * x + offset`: folded into the linear node before it; factors
//! become a depthwise 1x1 convolution when there is none.

use crate::source::ops::{AddConstant, BatchNormalization, Conv, Gemm, Reshape};
use crate::source::{FloatTensor, Program, SourceNode, SourceOp};
use crate::{Error, Result};

/// One factor and one offset per channel.
pub(super) struct Affine {
    pub(super) factor: Vec<f64>,
    pub(super) offset: Vec<f64>,
}

impl Affine {
    /// What `node` does to a tensor of `shape`; `None` for any other operator
    /// and for constants that vary inside a channel.
    pub(super) fn of(program: &Program, node: &SourceNode, shape: &[usize]) -> Option<Self> {
        let channels = *shape.first()?;
        if let Some(AddConstant { constant }) = node.op.get() {
            let offset = per_channel(&program.floats[constant].data, channels)?;
            return Some(Self { factor: vec![1.0; channels], offset });
        }
        let BatchNormalization { scale, bias, mean, variance, epsilon } = node.op.get()?;
        let values = |name: &String| program.floats[name].data.iter().map(|v| f64::from(*v));
        let factor: Vec<f64> = values(scale)
            .zip(values(variance))
            .map(|(scale, variance)| scale / (variance + epsilon).sqrt())
            .collect();
        let shift = values(bias).zip(values(mean)).zip(&factor);
        let offset = shift.map(|((bias, mean), factor)| bias - mean * factor).collect();
        Some(Self { factor, offset })
    }

    /// `after(self(x))`.
    fn then(&self, after: &Self) -> Self {
        let factors = self.factor.iter().zip(&after.factor);
        let offsets = self.offset.iter().zip(&after.factor).zip(&after.offset);
        Self {
            factor: factors.map(|(factor, next)| factor * next).collect(),
            offset: offsets.map(|((offset, factor), next)| offset * factor + next).collect(),
        }
    }

    /// Makes the linear node `index` compute `affine(linear(x))`, leaving the
    /// original weights, which another node may read.
    pub(super) fn fold_into(&self, program: &mut Program, index: usize) {
        let Some(linear) = program.source.nodes[index].op.linear() else { return };
        let mut scaled = program.floats[linear.weight()].clone();
        let per_channel = scaled.data.len() / self.factor.len();
        for (row, factor) in scaled.data.chunks_exact_mut(per_channel).zip(&self.factor) {
            row.iter_mut().for_each(|w| *w = (f64::from(*w) * factor) as f32);
        }
        let old = linear.bias().map(|name| program.floats[name].data.clone());
        let old = old.unwrap_or_else(|| vec![0.0; self.factor.len()]);
        let terms = old.iter().zip(&self.factor).zip(&self.offset);
        let moved = terms.map(|((b, factor), offset)| (f64::from(*b) * factor + offset) as f32);
        let moved = FloatTensor::vector(moved.collect());

        let base = program.source.nodes[index].name.clone();
        let new_weight = program.store(&format!("{base}.weight"), scaled);
        let new_bias = program.store(&format!("{base}.bias"), moved);
        if let Some(linear) = program.source.nodes[index].op.linear_mut() {
            linear.set_weights(new_weight, new_bias);
        }
    }

    /// Makes the linear node `index`, which reads channels where [`is_dense`] says so, compute
    /// `linear(affine(x))`: `W*(f*x + o) + b = (W*f)*x + (b + W*o)`.
    pub(super) fn fold_into_reader(&self, program: &mut Program, index: usize) {
        let (weight, bias) = weights(program, index);
        let channels = self.factor.len();
        let rows = weight.data.chunks_exact(channels);
        let moved = rows.zip(&bias).map(|(row, bias)| {
            let terms = row.iter().zip(&self.offset);
            (bias + terms.map(|(w, o)| f64::from(*w) * o).sum::<f64>()) as f32
        });
        let moved = moved.collect();
        let mut scaled = weight.clone();
        for row in scaled.data.chunks_exact_mut(channels) {
            let pairs = row.iter_mut().zip(&self.factor);
            pairs.for_each(|(w, factor)| *w = (f64::from(*w) * factor) as f32);
        }
        store(program, index, scaled, moved);
    }

    /// A batch normalisation that does it.
    fn to_norm(&self, program: &mut Program, base: &str) -> SourceOp {
        let narrow = |values: &[f64]| values.iter().map(|v| *v as f32).collect::<Vec<_>>();
        let mut store = |role: &str, values| {
            program.store(&format!("{base}.{role}"), FloatTensor::vector(values))
        };
        let channels = self.factor.len();
        SourceOp::from(BatchNormalization {
            scale: store("factor", narrow(&self.factor)),
            bias: store("offset", narrow(&self.offset)),
            mean: store("mean", vec![0.0; channels]),
            variance: store("variance", vec![1.0; channels]),
            epsilon: 0.0,
        })
    }

    /// A depthwise convolution that does it.
    pub(super) fn to_convolution(&self, program: &mut Program, base: &str) -> SourceOp {
        let narrow = |values: &[f64]| values.iter().map(|v| *v as f32).collect::<Vec<_>>();
        let weight =
            FloatTensor { shape: vec![self.factor.len(), 1, 1, 1], data: narrow(&self.factor) };
        let bias = FloatTensor::vector(narrow(&self.offset));
        SourceOp::from(Conv {
            kernel: [1, 1],
            stride: [1, 1],
            padding: [0; 4],
            dilation: [1, 1],
            groups: self.factor.len(),
            weight: program.store(&format!("{base}.weight"), weight),
            bias: Some(program.store(&format!("{base}.bias"), bias)),
        })
    }
}

/// Whether `node` multiplies all channels of each position by one matrix.
pub(super) fn is_dense(node: &SourceNode) -> bool {
    let Some(Conv { kernel, stride, padding, groups, .. }) = node.op.get() else {
        return node.op.is::<Gemm>();
    };
    (*kernel, *stride, *padding, *groups) == ([1, 1], [1, 1], [0; 4], 1)
}

/// The weights of a linear node, and its constants, 0 where it has none.
pub(super) fn weights(program: &Program, index: usize) -> (FloatTensor, Vec<f64>) {
    let Some(linear) = program.source.nodes[index].op.linear() else {
        return (FloatTensor::vector(vec![]), vec![]);
    };
    let weight = program.floats[linear.weight()].clone();
    let bias = linear.bias().map(|name| &program.floats[name].data);
    let zeros = || vec![0.0; weight.shape[0]];
    let bias = bias.map_or_else(zeros, |b| b.iter().map(|v| f64::from(*v)).collect());
    (weight, bias)
}

/// Gives a linear node other weights and constants.
pub(super) fn store(program: &mut Program, index: usize, new: FloatTensor, constant: Vec<f32>) {
    let base = program.source.nodes[index].name.clone();
    let new_weight = program.store(&format!("{base}.weight"), new);
    let new_bias = program.store(&format!("{base}.bias"), FloatTensor::vector(constant));
    if let Some(linear) = program.source.nodes[index].op.linear_mut() {
        linear.set_weights(new_weight, new_bias);
    }
}

/// One value per channel out of one value, one per channel or one per element;
/// `None` when a channel's elements differ.
fn per_channel(constant: &[f32], channels: usize) -> Option<Vec<f64>> {
    if let [value] = constant {
        return Some(vec![f64::from(*value); channels]);
    }
    let rows = constant.chunks_exact(constant.len() / channels);
    rows.map(|row| row.iter().all(|v| *v == row[0]).then(|| f64::from(row[0]))).collect()
}

/// Folds every affine node of `wanted` kind into the linear node before it
/// where that node has no other reader.
pub(super) fn fold(mut program: Program, wanted: fn(&SourceOp) -> bool) -> Result<Program> {
    let shapes = program.inferred()?;
    let mut index = 0;
    while index < program.source.nodes.len() {
        let node = &program.source.nodes[index];
        let linear = match node.inputs.first() {
            Some(input) if wanted(&node.op) => program.source.single_use_linear(input),
            _ => None,
        };
        let affine = Affine::of(&program, node, &shapes[&node.output]);
        if let (Some(linear), Some(affine)) = (linear, affine) {
            affine.fold_into(&mut program, linear);
            let removed = program.source.nodes.remove(index);
            program.source.nodes[linear].output = removed.output;
        } else {
            index += 1;
        }
    }
    Ok(program)
}

/// Turns the factors that are left into depthwise convolutions, which then take over
/// the affine nodes behind them. Constants that are left are added without a product.
pub(super) fn run(mut program: Program) -> Result<Program> {
    let is_affine = |op: &SourceOp| op.is::<BatchNormalization>() || op.is::<AddConstant>();
    loop {
        program = fold(program, is_affine)?;
        match program.source.nodes.iter().position(|node| node.op.is::<BatchNormalization>()) {
            Some(index) => convert(&mut program, index)?,
            None => return Ok(program),
        }
    }
}

fn convert(program: &mut Program, index: usize) -> Result<()> {
    let shapes = program.inferred()?;
    let node = program.source.nodes[index].clone();
    let shape = &shapes[&node.output];
    let Some(affine) = Affine::of(program, &node, shape) else {
        return Err(Error::invalid("affine-to-convolution", &node.name, "is not affine"));
    };
    let op = affine.to_convolution(program, &node.name);
    program.source.nodes.splice(index..=index, as_image(SourceNode { op, ..node }, shape));
    Ok(())
}

/// Makes one node of each chain of factors and offsets that begins with factors, and that nothing
/// else reads in between. An offset before factors stays: rounding these then changes less.
pub(super) fn merge(mut program: Program) -> Result<Program> {
    let shapes = program.inferred()?;
    let mut index = 0;
    while index < program.source.nodes.len() {
        let node = program.source.nodes[index].clone();
        let SourceNode { output, name, op, .. } = &node;
        let shape = &shapes[output];
        let first = Affine::of(&program, &node, shape);
        if let Some(first) = first.filter(|_| op.is::<BatchNormalization>()) {
            let (merged, last) = with_readers(&mut program, first, output, shape);
            if last != *output {
                let op = merged.to_norm(&mut program, name);
                let node = &mut program.source.nodes[index];
                (node.op, node.output) = (op, last);
            }
        }
        index += 1;
    }
    Ok(program)
}

/// An affine node that writes `output` with those behind it, which are removed, and what the last
/// of them wrote.
fn with_readers(
    program: &mut Program,
    mut affine: Affine,
    output: &str,
    shape: &[usize],
) -> (Affine, String) {
    let mut output = output.to_owned();
    while !program.source.is_kept(&output) {
        let nodes = program.source.nodes.iter().enumerate();
        let mut readers = nodes.filter(|(_, node)| node.inputs.contains(&output));
        let (Some((reader, node)), None) = (readers.next(), readers.next()) else { break };
        let Some(next) = Affine::of(program, node, shape) else { break };
        affine = affine.then(&next);
        output = program.source.nodes.remove(reader).output;
    }
    (affine, output)
}

/// Wraps a convolution on a flat tensor into two reshapes.
fn as_image(node: SourceNode, shape: &[usize]) -> Vec<SourceNode> {
    let [length] = *shape else { return vec![node] };
    let between = |step: &str| format!("{}.{step}", node.output);
    let reshape = |step: &str, input: &str, output: &str, shape: Vec<usize>| SourceNode {
        name: format!("{}.{step}", node.name),
        inputs: vec![input.to_owned()],
        output: output.to_owned(),
        op: Reshape { shape }.into(),
    };
    let (image, result) = (between("image"), between("result"));
    vec![
        reshape("image", &node.inputs[0], &image, vec![length, 1, 1]),
        SourceNode { inputs: vec![image], output: result.clone(), ..node.clone() },
        reshape("result", &result, &node.output, vec![length]),
    ]
}
