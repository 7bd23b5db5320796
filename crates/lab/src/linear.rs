//! A linear layer on its own: geometry from the operation, weights from a seed, widths
//! from the worst case of these weights.

use std::collections::BTreeMap;

use graph::{Conv, Format, Graph, Linear, Model, Node, NodeWeights, Op, Rounding, Tensor};
use ring::word::signed;
use ring::{Prg, Seed};
use wire::{Error, Result};

use crate::operation::Operation;

/// Most weights; beyond it a bench would not fit into memory anyway.
const MOST_WEIGHTS: usize = 1 << 28;

/// Geometry and widths of a layer.
pub(crate) struct Shape {
    pub(crate) conv: Conv,
    pub(crate) weight_bits: u32,
    pub(crate) activation_bits: u32,
    pub(crate) rounding: Rounding,
    pub(crate) suite: String,
    pub(crate) folded: Option<usize>,
}

impl Shape {
    /// Weights of one output channel.
    fn taps(&self) -> Result<usize> {
        let Conv { in_channels, out_channels, kernel: [rows, columns], groups, .. } = self.conv;
        let even = |channels: usize| channels.checked_rem(groups) == Some(0);
        let taps =
            [rows, columns].iter().try_fold(self.conv.group_channels(), |n, k| n.checked_mul(*k));
        let fits = |taps: &usize| {
            *taps > 0 && taps.checked_mul(out_channels).is_some_and(|n| n <= MOST_WEIGHTS)
        };
        if !even(in_channels) || !even(out_channels) {
            return Err(Error::misuse("groups that do not divide the channels"));
        }
        taps.filter(fits).ok_or_else(|| Error::misuse("a layer of this size"))
    }

    /// Bits dropped so that typical results have about `activation_bits` again.
    fn shift(&self, taps: usize) -> u32 {
        self.weight_bits - 1 + taps.ilog2() / 2
    }
}

/// The geometry and widths of a linear `operation`.
///
/// # Errors
/// [`Error::Misuse`] for an operation that is not linear.
pub(crate) fn shape(operation: &Operation) -> Result<Shape> {
    let name = |suite: &Option<String>| suite.clone().unwrap_or_else(|| "auto".into());
    match *operation {
        Operation::Conv {
            height,
            width,
            input,
            output,
            kernel,
            stride,
            padding,
            dilation,
            groups,
            weight_bits,
            activation_bits,
            rounding,
            ref suite,
            folded,
            ..
        } => {
            let conv = Conv {
                in_channels: input,
                in_height: height,
                in_width: width,
                out_channels: output,
                kernel: [kernel; 2],
                stride: [stride; 2],
                padding: [padding; 4],
                dilation: [dilation; 2],
                groups,
            };
            let suite = name(suite);
            Ok(Shape { conv, weight_bits, activation_bits, rounding, suite, folded })
        }
        Operation::Matmul {
            rows,
            inner,
            cols,
            weight_bits,
            activation_bits,
            rounding,
            ref suite,
            folded,
        } => {
            let conv = Conv { in_height: rows, ..Conv::fully_connected(inner, cols) };
            let suite = name(suite);
            Ok(Shape { conv, weight_bits, activation_bits, rounding, suite, folded })
        }
        _ => Err(Error::misuse("an operation that is not linear")),
    }
}

/// A model of this one layer; its weights follow from `seed`.
pub(crate) fn model(name: &str, shape: Shape, seed: &Seed) -> Result<Model> {
    let in_range = |bits| (2..=12).contains(&bits);
    if !in_range(shape.weight_bits) || !in_range(shape.activation_bits) {
        return Err(Error::misuse("weights and activations have 2 to 12 bits"));
    }
    runtime::check_suite(&shape.suite)?;
    let taps = shape.taps()?;
    let weights = weights(&shape, taps, seed);
    let (shift, half) = (shape.shift(taps), 1u64 << (shape.activation_bits - 1));
    let heaviest = weights.weight.chunks_exact(taps).map(magnitude).max().unwrap_or(0);
    let largest = heaviest * half + (1 << shift);
    // A sign bit, and one that keeps the noise of stochastic rounding off the wrap.
    let accumulator_bits = largest.ilog2() + 3;
    let mut graph = graph(name, &shape, accumulator_bits, shift);
    if let (Some(_), Some(linear)) =
        (shape.folded, graph.nodes.first_mut().and_then(|node| node.op.get_mut::<Linear>()))
    {
        // What compiled models say of their weights, by which noise of unfolding is bounded.
        let squares = Linear::bits_of_squares(&weights.weight, shape.conv.out_channels);
        linear.square_bits = Some(squares);
    }
    let model = Model { graph, weights: BTreeMap::from([(0, weights)]) };
    graph::verify(&exact(&model).graph).map_err(|e| Error::misuse(e.to_string()))?;
    Ok(model)
}

/// The same layer rounding exactly: what the interpreter computes either way. A
/// network never opens what rounds stochastically; a bench does, on random data, to
/// check the result.
pub(crate) fn exact(model: &Model) -> Model {
    let mut model = model.clone();
    for node in &mut model.graph.nodes {
        if let Some(linear) = node.op.get_mut::<Linear>() {
            linear.rounding = Rounding::Exact;
        }
    }
    model
}

fn weights(shape: &Shape, taps: usize, seed: &Seed) -> NodeWeights {
    let outputs = shape.conv.out_channels;
    let words = Prg::new(seed, 0).uniform(taps * outputs, shape.weight_bits);
    let least = 1 - (1i64 << (shape.weight_bits - 1));
    let weight = words.iter().map(|word| signed(*word, shape.weight_bits).max(least) as i32);
    let weight = weight.collect();
    NodeWeights { weight, bias: vec![0; outputs] }
}

fn magnitude(row: &[i32]) -> u64 {
    row.iter().map(|w| u64::from(w.unsigned_abs())).sum()
}

fn graph(name: &str, shape: &Shape, accumulator_bits: u32, shift: u32) -> Graph {
    let conv = &shape.conv;
    let bound = 1i64 << (shape.activation_bits - 1);
    let tensor = |name: &str, shape: [usize; 3], bits| Tensor {
        name: name.into(),
        shape: shape.into(),
        format: Format { bits, scale: 1.0, signed: true },
    };
    let sides = [conv.in_channels, conv.in_height, conv.in_width];
    let results = [conv.out_channels, conv.out_height(), conv.out_width()];
    let linear = Linear {
        conv: conv.clone(),
        accumulator_bits,
        weight_bits: shape.weight_bits,
        shift,
        rounding: if runtime::rounds_exactly(&shape.suite) {
            Rounding::Exact
        } else {
            shape.rounding
        },
        addend: None,
        choice: None,
        square_bits: None,
    };
    Graph {
        version: graph::VERSION,
        name: name.into(),
        suite: shape.suite.clone(),
        nonlinear: graph::Nonlinear::Ot,
        activation_bits: shape.activation_bits,
        input_range: [-bound, bound - 1],
        input_rows: vec![],
        exact: None,
        states: vec![],
        inputs: vec![],
        outputs: vec![],
        tensors: vec![
            tensor("input", sides, accumulator_bits),
            tensor("output", results, accumulator_bits - shift),
        ],
        nodes: vec![Node { name: name.into(), op: Op::from(linear), inputs: vec![0], output: 1 }],
        input: 0,
        output: 1,
        labels: Vec::new(),
        link: None,
    }
}
