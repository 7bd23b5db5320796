//! The interpreter on one small convolution.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use criterion::{Criterion, Throughput};
use tacit_graph::{
    Conv, Format, Graph, Linear, Model, Node, NodeWeights, Nonlinear, Op, Rounding, Tensor,
    VERSION, interpret,
};

/// Channels in and out, and rows and columns of the image.
const CHANNELS: usize = 16;
const SIDE: usize = 16;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let model = model();
    let input: Vec<i64> = (0..CHANNELS * SIDE * SIDE).map(|i| i as i64 % 255 - 127).collect();
    let mut group = criterion.benchmark_group("interpret");
    group.throughput(Throughput::Elements((input.len() * CHANNELS * 9) as u64));
    group.bench_function("conv 16x16x16, 3x3", |bench| {
        bench.iter(|| interpret(&model, &input).unwrap());
    });
    group.finish();
    criterion.final_summary();
}

fn model() -> Model {
    let conv = Conv {
        in_channels: CHANNELS,
        in_height: SIDE,
        in_width: SIDE,
        out_channels: CHANNELS,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1; 4],
        dilation: [1, 1],
        groups: 1,
    };
    let weight = (0..CHANNELS * CHANNELS * 9).map(|i| i as i32 % 15 - 7).collect();
    let weights = NodeWeights { weight, bias: vec![3; CHANNELS] };
    let linear = Linear {
        conv,
        accumulator_bits: 24,
        weight_bits: 4,
        shift: 8,
        rounding: Rounding::Exact,
        addend: None,
        choice: None,
        square_bits: None,
    };
    let node = Node { name: "conv".into(), op: Op::from(linear), inputs: vec![0], output: 1 };
    let graph = Graph {
        version: VERSION,
        name: "bench".into(),
        suite: "auto".into(),
        nonlinear: Nonlinear::Ot,
        activation_bits: 8,
        input_range: [-127, 127],
        input_rows: vec![],
        exact: None,
        states: vec![],
        inputs: vec![],
        outputs: vec![],
        tensors: vec![tensor("input", 24), tensor("output", 16)],
        nodes: vec![node],
        input: 0,
        output: 1,
        labels: Vec::new(),
        link: None,
    };
    Model { graph, weights: BTreeMap::from([(0, weights)]) }
}

fn tensor(name: &str, bits: u32) -> Tensor {
    let format = Format { bits, scale: 1.0, signed: true };
    Tensor { name: name.into(), shape: vec![CHANNELS, SIDE, SIDE], format }
}
