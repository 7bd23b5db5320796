//! A small transformer encoder as an importer hands it over, for tests.

use crate::source::ops::{
    Add, AddConstant, Conv, Embedding, Gelu, LayerNorm, Mask, MatMul, ReluSoftmax, Reshape, Scale,
    Smu, Softmax, View,
};
use crate::source::{
    Calibration, FloatTensor, Floats, Program, Ranges, Source, SourceInput, SourceNode, SourceOp,
};
use std::collections::BTreeMap;

/// Sizes of an encoder.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Rows of the embedding.
    pub vocabulary: usize,
    /// Tokens.
    pub length: usize,
    /// Values of a token; a multiple of `heads`.
    pub hidden: usize,
    /// Attention heads.
    pub heads: usize,
    /// Layers.
    pub layers: usize,
}

/// Repeatable numbers in -1..1, more of them near 0.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f32 {
        let mut uniform = || {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 40) as f32 / (1u64 << 24) as f32 - 0.5
        };
        uniform() + uniform()
    }
}

/// What a mask adds where it is 0.
const MASKED: f64 = -1e4;

struct Builder {
    numbers: Numbers,
    nodes: Vec<SourceNode>,
    floats: Floats,
}

impl Builder {
    fn weight(&mut self, shape: &[usize], size: f32, middle: f32) -> String {
        let name = format!("w{}", self.floats.len());
        let count = shape.iter().product();
        let data = (0..count).map(|_| middle + size * self.numbers.next()).collect();
        self.floats.insert(name.clone(), FloatTensor { shape: shape.to_vec(), data });
        name
    }

    fn node(&mut self, inputs: &[&str], op: impl Into<SourceOp>) -> String {
        let output = format!("t{}", self.nodes.len());
        let inputs = inputs.iter().map(|name| (*name).to_owned()).collect();
        let name = format!("node{}", self.nodes.len());
        self.nodes.push(SourceNode { name, inputs, output: output.clone(), op: op.into() });
        output
    }

    fn dense(&mut self, x: &str, inputs: usize, outputs: usize) -> String {
        let size = 2.0 / (inputs as f32).sqrt();
        let weight = self.weight(&[outputs, inputs, 1, 1], size, 0.0);
        let bias = Some(self.weight(&[outputs], 0.2, 0.0));
        let (kernel, stride) = ([1, 1], [1, 1]);
        let (padding, dilation, groups) = ([0; 4], [1, 1], 1);
        self.node(&[x], Conv { kernel, stride, padding, dilation, groups, weight, bias })
    }

    fn norm(&mut self, x: &str, hidden: usize) -> String {
        let scale = Some(self.weight(&[hidden], 0.3, 1.0));
        let bias = Some(self.weight(&[hidden], 0.3, 0.0));
        self.node(&[x], LayerNorm { epsilon: 1e-12, scale, bias, rms: false })
    }

    fn view(&mut self, x: &str, shape: &[usize], start: usize, strides: &[usize]) -> String {
        let (shape, strides) = (shape.to_vec(), strides.to_vec());
        self.node(&[x], View { shape, start, strides })
    }

    fn reshape(&mut self, x: &str, shape: &[usize]) -> String {
        self.node(&[x], Reshape { shape: shape.to_vec() })
    }

    fn layer(&mut self, n: &str, sizes: Sizes) -> String {
        let Sizes { length, hidden, heads, .. } = sizes;
        let each = hidden / heads;
        let [q, k, v] = [(); 3].map(|()| {
            let y = self.dense(n, hidden, hidden);
            self.reshape(&y, &[heads, each, length])
        });
        let q = self.node(&[&q], Scale { factor: 1.0 / (each as f64).sqrt() });
        let across = [each * length, 1, length];
        let q = self.view(&q, &[heads, length, each], 0, &across);
        let v = self.view(&v, &[heads, length, each], 0, &across);
        let scores = self.node(&[&q, &k], MatMul { mask: false });
        let mask = self.view("x", &[heads, length, length], length, &[0, 0, 1]);
        let masked = self.node(&[&scores, &mask], Mask {});
        let weights = self.node(&[&masked], Softmax {});
        let context = self.node(&[&weights, &v], MatMul { mask: false });
        let turned = self.view(&context, &[heads, each, length], 0, &[each * length, 1, each]);
        let context = self.reshape(&turned, &[hidden, length, 1]);
        let out = self.dense(&context, hidden, hidden);
        let sum = self.node(&[&out, n], Add {});
        let n = self.norm(&sum, hidden);
        let inner = self.dense(&n, hidden, 2 * hidden);
        let inner = self.node(&[&inner], Gelu {});
        let out = self.dense(&inner, 2 * hidden, hidden);
        let sum = self.node(&[&n, &out], Add {});
        self.norm(&sum, hidden)
    }
}

/// Returns an encoder on `[2, length]`, token ids and mask, whose output `[hidden]` is the sum over
/// the tokens that count.
pub fn encoder(sizes: Sizes, seed: u64) -> Program {
    let Sizes { vocabulary, length, hidden, layers, .. } = sizes;
    let mut builder = Builder { numbers: Numbers(seed), nodes: vec![], floats: Floats::new() };
    let ids = builder.view("x", &[length], 0, &[1]);
    let weight = builder.weight(&[vocabulary, hidden], 1.0, 0.0);
    let rows = builder.node(&[&ids], Embedding { weight });
    let constant = builder.weight(&[length, hidden], 0.5, 0.0);
    let rows = builder.node(&[&rows], AddConstant { constant });
    let image = builder.view(&rows, &[hidden, length, 1], 0, &[1, hidden, 1]);
    let mut n = builder.norm(&image, hidden);
    for _ in 0..layers {
        n = builder.layer(&n, sizes);
    }
    let rows = builder.view(&n, &[length, hidden], 0, &[1, length]);
    let mask = builder.view("x", &[1, length], length, &[length, 1]);
    let sum = builder.node(&[&mask, &rows], MatMul { mask: true });
    let output = builder.reshape(&sum, &[hidden]);
    let input = SourceInput { name: "x".into(), shape: vec![2, length] };
    let name = "encoder".into();
    let source = Source {
        name,
        input,
        inputs: vec![],
        outputs: vec![],
        states: vec![],
        output,
        nodes: builder.nodes,
        extra_bits: BTreeMap::new(),
    };
    Program { source, floats: builder.floats }
}

/// Returns the encoder with smooth maxima: no GELU and no exponential.
pub fn smooth_encoder(sizes: Sizes, seed: u64) -> Program {
    let mut program = encoder(sizes, seed);
    for node in &mut program.source.nodes {
        if node.op.is::<Gelu>() {
            node.op = Smu { slope: 0.05, smoothness: 0.8 }.into();
        } else if node.op.is::<Softmax>() {
            node.op = ReluSoftmax { smoothness: 0.5, epsilon: 0.1 }.into();
        }
    }
    program
}

/// Returns an input with `kept` tokens.
pub fn tokens(sizes: Sizes, kept: usize, seed: u64) -> Vec<f32> {
    let mut numbers = Numbers(seed);
    let mut id = |place: usize| match place < kept {
        true => ((numbers.next() + 1.0) / 2.0 * sizes.vocabulary as f32).floor(),
        false => 0.0,
    };
    let ids: Vec<f32> = (0..sizes.length).map(&mut id).collect();
    let mask = (0..sizes.length).map(|place| if place < kept { 1.0 } else { 0.0 });
    ids.into_iter().chain(mask).collect()
}

/// Every tensor of an encoder, in floating point.
pub fn evaluate(program: &Program, x: &[f32]) -> std::collections::BTreeMap<String, Vec<f64>> {
    let shapes = program.shapes().unwrap_or_default();
    let mut values = std::collections::BTreeMap::new();
    values.insert("x".to_owned(), x.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>());
    for node in &program.source.nodes {
        let inputs: Vec<&[f64]> = node.inputs.iter().map(|name| values[name].as_slice()).collect();
        let from: Vec<&[usize]> = node.inputs.iter().map(|name| shapes[name].as_slice()).collect();
        let y = apply(program, &node.op, &inputs, &from, &shapes[&node.output]);
        values.insert(node.output.clone(), y);
    }
    values
}

/// Ranges of every tensor over some inputs.
pub fn calibrate(program: &Program, inputs: &[Vec<f32>]) -> Calibration {
    let mut ranges = Ranges::new();
    for (name, values) in inputs.iter().flat_map(|x| evaluate(program, x)) {
        let range = ranges.entry(name).or_insert((f64::MAX, f64::MIN));
        for v in values {
            *range = (range.0.min(v), range.1.max(v));
        }
    }
    ranges.into()
}

fn apply(
    program: &Program,
    op: &SourceOp,
    inputs: &[&[f64]],
    from: &[&[usize]],
    to: &[usize],
) -> Vec<f64> {
    let floats = |name: &String| -> Vec<f64> {
        program.floats[name].data.iter().map(|v| f64::from(*v)).collect()
    };
    let x = inputs[0];
    if let Some(Embedding { weight }) = op.get() {
        let table = floats(weight);
        x.iter().flat_map(|id| table[*id as usize * to[1]..][..to[1]].to_vec()).collect()
    } else if let Some(AddConstant { constant }) = op.get() {
        x.iter().zip(floats(constant)).map(|(a, b)| a + b).collect()
    } else if let Some(Conv { weight, bias, .. }) = op.get() {
        let (weight, positions) = (floats(weight), from[0][1] * from[0][2]);
        let bias = bias.as_ref().map_or(vec![0.0; to[0]], floats);
        let sum = |out: usize, at: usize| {
            let row = weight[out * from[0][0]..].iter().take(from[0][0]);
            bias[out] + row.enumerate().map(|(i, w)| w * x[i * positions + at]).sum::<f64>()
        };
        (0..to[0] * positions).map(|i| sum(i / positions, i % positions)).collect()
    } else if let Some(LayerNorm { epsilon, scale, bias, rms }) = op.get() {
        let (columns, rows) = (to[0], x.len() / to[0]);
        let one = |i: usize| {
            let row: Vec<f64> = x.iter().skip(i % rows).step_by(rows).copied().collect();
            let mean = if *rms { 0.0 } else { row.iter().sum::<f64>() / columns as f64 };
            let squares = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
            let unit = (x[i] - mean) / (squares / columns as f64 + epsilon).sqrt();
            let of = |name: &Option<String>, none| {
                name.as_ref().map_or(none, |name| floats(name)[i / rows])
            };
            unit * of(scale, 1.0) + of(bias, 0.0)
        };
        (0..x.len()).map(one).collect()
    } else if let Some(MatMul { .. }) = op.get() {
        let (inner, columns) = (from[0][from[0].len() - 1], to[to.len() - 1]);
        let height = to[to.len() - 2];
        let one = |i: usize| {
            let (row, column) = (i / columns, i % columns);
            let b = &inputs[1][row / height * inner * columns..];
            (0..inner).map(|k| x[row * inner + k] * b[k * columns + column]).sum()
        };
        (0..to.iter().product()).map(one).collect()
    } else if let Some(Mask {}) = op.get() {
        let kept = x.iter().zip(inputs[1]);
        kept.map(|(v, mask)| if *mask > 0.5 { *v } else { v + MASKED }).collect()
    } else if let Some(Softmax {}) = op.get() {
        let rows = x.chunks(to[to.len() - 1]);
        let powers = rows.flat_map(|row| {
            let largest = row.iter().copied().fold(f64::MIN, f64::max);
            let powers: Vec<f64> = row.iter().map(|v| (v - largest).exp()).collect();
            let sum = powers.iter().sum::<f64>();
            powers.into_iter().map(move |power| power / sum)
        });
        powers.collect()
    } else if let Some(Gelu {}) = op.get() {
        x.iter().map(|v| if *v < 0.0 { v * tail(-v) } else { v * (1.0 - tail(*v)) }).collect()
    } else if let Some(Smu { slope, smoothness }) = op.get() {
        x.iter().map(|v| smooth_maximum(*v, *slope, *smoothness)).collect()
    } else if let Some(ReluSoftmax { smoothness, epsilon }) = op.get() {
        let rows = x.chunks(to[to.len() - 1]);
        let weights = rows.flat_map(|row| {
            let parts = row.iter().map(|v| match *v > MASKED / 2.0 {
                true => smooth_maximum(*v, 0.0, *smoothness),
                false => 0.0,
            });
            let parts: Vec<f64> = parts.collect();
            let sum = parts.iter().sum::<f64>() + epsilon;
            parts.into_iter().map(move |part| part / sum)
        });
        weights.collect()
    } else if let Some(Scale { factor }) = op.get() {
        x.iter().map(|v| v * factor).collect()
    } else if let Some(Add {}) = op.get() {
        x.iter().zip(inputs[1]).map(|(a, b)| a + b).collect()
    } else if let Some(View { start, strides, .. }) = op.get() {
        let place = |i: usize| {
            let (mut rest, mut at) = (i, *start);
            for (side, stride) in to.iter().zip(strides).rev() {
                at += rest % side * stride;
                rest /= side;
            }
            x[at]
        };
        (0..to.iter().product()).map(place).collect()
    } else {
        x.to_vec()
    }
}

fn smooth_maximum(x: f64, slope: f64, smoothness: f64) -> f64 {
    ((1.0 + slope) * x + ((1.0 - slope) * x).hypot(smoothness)) / 2.0
}

/// The normal distribution above `x`, at least 0, by Simpson's rule.
fn tail(x: f64) -> f64 {
    let density = |t: f64| (-t * t / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let step = x / 200.0;
    let weight = |i: u32| if i == 0 || i == 200 { 1.0 } else { f64::from(2 + i % 2 * 2) };
    let sum = (0..=200).map(|i| weight(i) * density(f64::from(i) * step)).sum::<f64>();
    (0.5 - sum * step / 3.0).max(0.0)
}
