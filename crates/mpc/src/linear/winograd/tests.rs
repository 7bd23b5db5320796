//! Against the interpreter, on shares.

use std::collections::BTreeMap;

use graph::{Conv, NodeWeights, Rounding, WeightBits, Winograd};
use proptest::prelude::*;
use ring::Random;
use ring::word::{mask, signed};

use super::*;
use crate::correlations::Demand;
use crate::linear::ot_matmul::{Layer, PreprocessedClient, PreprocessedServer, Source};
use crate::linear::transport::Worker;
use crate::share::Share;
use crate::testing::{both, split};

const BITS: u32 = 30;

fn conv([in_channels, out_channels]: [usize; 2], [height, width]: [usize; 2], pad: usize) -> Conv {
    Conv {
        in_channels,
        in_height: height,
        in_width: width,
        out_channels,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [pad; 4],
        dilation: [1, 1],
        groups: 1,
    }
}

/// Both parties, prepared on a mask; `images` in one run.
fn run(layer: &Layer, choice: &WeightBits, weights: &[i32], x: &[i64], seed: u64) -> Vec<i64> {
    let mut rng = Random::seeded(seed);
    let (ours, theirs) = split(&mut rng, x, BITS + 2);
    let weights = layer.weights(weights, choice).unwrap();
    let demand: Demand = layer.demands().into_iter().sum();
    let mut own = rng.child();
    let (client, server) = both(
        &mut rng,
        &demand,
        |ch, mut ots| {
            let role = ch.role();
            let mut worker = Worker { rng: &mut own, threads: 2 };
            let feed = &mut |_: &mut wire::Channel, demand: &Demand| ots.split(role, demand);
            let preprocessed =
                PreprocessedClient::prepare(ch, layer, Source::Correlations(feed), &mut worker)
                    .unwrap();
            layer.results(&preprocessed.run(ch, layer, &ours).unwrap()).unwrap()
        },
        |ch, mut ots| {
            let role = ch.role();
            let feed = &mut |_: &mut wire::Channel, demand: &Demand| ots.split(role, demand);
            let preprocessed =
                PreprocessedServer::prepare(ch, layer, &weights, Source::Correlations(feed), 1)
                    .unwrap();
            layer.results(&preprocessed.run(ch, layer, &weights, &theirs, 2).unwrap()).unwrap()
        },
    );
    let costs = layer.preprocess_costs().into_iter().flatten().chain([layer.cost()]);
    assert_eq!(client.cost, costs.collect());
    Share::reconstruct(&client.value, &server.value)
}

fn random(rng: &mut Random, count: usize, bits: u32) -> Vec<i64> {
    rng.uniform(count, bits).iter().map(|word| signed(*word, bits)).collect()
}

fn node(conv: &Conv, tile: usize, choice: &WeightBits) -> Winograd {
    Winograd {
        conv: conv.clone(),
        tile,
        product_bits: BITS,
        headroom: false,
        stage_bits: None,
        accumulator_bits: BITS,
        choice: choice.clone(),
        shift: 0,
        rounding: Rounding::Exact,
        addend: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn tiles_give_what_the_interpreter_gives(
        seed: u64,
        channels in prop::array::uniform2(1usize..4),
        sides in prop::array::uniform2(3usize..9),
        pad in 0usize..3,
        four: bool,
        images in 1usize..3,
    ) {
        let mut rng = Random::seeded(seed);
        let (conv, tile) = (conv(channels, sides, pad), if four { 4 } else { 2 });
        let choice = WeightBits::twos_complement(3);
        let node = node(&conv, tile, &choice);
        let count = channels[0] * channels[1] * node.places();
        let weights: Vec<i32> = random(&mut rng, count, 3).iter().map(|w| *w as i32).collect();
        let pixels = channels[0] * sides[0] * sides[1];
        let x = random(&mut rng, images * pixels, 6);
        let layer = Layer::tiles(&conv, tile, BITS, &choice, images).unwrap();
        let got = run(&layer, &choice, &weights, &x, seed);
        let wanted = x.chunks_exact(pixels).flat_map(|x| {
            let sums = products(&node, &weights, &node.features(x));
            node.outputs(&sums)
        });
        prop_assert_eq!(got, wanted.collect::<Vec<_>>());
    }

    #[test]
    fn positions_give_what_the_interpreter_gives(
        seed: u64,
        groups in 1usize..4,
        each in prop::array::uniform2(1usize..3),
        sides in prop::array::uniform2(4usize..9),
        kernel in prop::array::uniform2(1usize..4),
        stride in prop::array::uniform2(1usize..3),
        padding in prop::array::uniform4(0usize..3),
        dilation in prop::array::uniform2(1usize..3),
        images in 1usize..3,
    ) {
        let mut rng = Random::seeded(seed);
        let within = |at: usize| padding[at].min(kernel[at % 2] - 1);
        let padding = [0, 1, 2, 3].map(within);
        let conv = Conv {
            kernel, stride, padding, dilation, groups,
            ..conv(each.map(|n| n * groups), sides, 0)
        };
        prop_assume!(conv.out_height() * conv.out_width() > 0);
        let choice = WeightBits { importance: vec![1, 2, -8], offset: -1 };
        let count = conv.out_channels * conv.group_channels() * kernel[0] * kernel[1];
        let all = choice.weights();
        let weights: Vec<i32> =
            rng.uniform(count, 3).iter().map(|at| all[*at as usize] as i32).collect();
        let pixels = conv.in_channels * sides[0] * sides[1];
        let x = random(&mut rng, images * pixels, 6);
        let layer = Layer::positions(&conv, BITS, &choice, images).unwrap();
        let got = run(&layer, &choice, &weights, &x, seed);
        let model = model(&conv, &choice, weights);
        let wanted = x.chunks_exact(pixels).flat_map(|x| graph::interpret(&model, x).unwrap());
        prop_assert_eq!(got, wanted.collect::<Vec<_>>());
    }
}

fn products(node: &Winograd, weights: &[i32], features: &[i64]) -> Vec<i64> {
    let (places, columns) = (node.places(), node.columns());
    let [inputs, outputs] = [node.conv.in_channels, node.conv.out_channels];
    let sum = |at: usize| {
        let (place, output, column) =
            (at / (outputs * columns), at / columns % outputs, at % columns);
        let term = |i: usize| {
            let weight = i64::from(weights[(output * inputs + i) * places + place]);
            weight * features[(place * inputs + i) * columns + column]
        };
        (0..inputs).map(term).sum()
    };
    (0..places * outputs * columns).map(sum).collect()
}

/// A model of one layer.
fn model(conv: &Conv, choice: &WeightBits, weight: Vec<i32>) -> graph::Model {
    use graph::{Format, Graph, Linear, Model, Node, Op, Tensor};
    let tensor = |name: &str, shape: [usize; 3]| Tensor {
        name: name.into(),
        shape: shape.into(),
        format: Format { bits: BITS, scale: 1.0, signed: true },
    };
    let linear = Linear {
        conv: conv.clone(),
        accumulator_bits: BITS,
        weight_bits: 8,
        shift: 0,
        rounding: Rounding::Exact,
        addend: None,
        choice: Some(choice.clone()),
        square_bits: None,
    };
    let graph = Graph {
        version: graph::VERSION,
        name: "one".into(),
        suite: "ufo".into(),
        nonlinear: graph::Nonlinear::Ot,
        activation_bits: 6,
        input_range: [-32, 31],
        input_rows: vec![],
        exact: None,
        states: vec![],
        inputs: vec![],
        outputs: vec![],
        tensors: vec![
            tensor("x", [conv.in_channels, conv.in_height, conv.in_width]),
            tensor("y", [conv.out_channels, conv.out_height(), conv.out_width()]),
        ],
        nodes: vec![Node { name: "n".into(), op: Op::from(linear), inputs: vec![0], output: 1 }],
        input: 0,
        output: 1,
        labels: vec![],
        link: None,
    };
    let weights = NodeWeights { weight, bias: vec![0; conv.out_channels] };
    Model { graph, weights: BTreeMap::from([(0, weights)]) }
}

#[test]
fn other_kernels_have_no_tiles() {
    let dense = conv([2, 2], [5, 5], 1);
    assert!(Tiles::new(&dense, 2).is_some() && Tiles::new(&dense, 4).is_some());
    let strided = Conv { stride: [2, 2], ..dense.clone() };
    let larger = Conv { kernel: [5, 5], ..dense.clone() };
    let grouped = Conv { groups: 2, ..dense.clone() };
    assert!([strided, larger, grouped].iter().all(|conv| Tiles::new(conv, 2).is_none()));
    assert!(Tiles::new(&dense, 3).is_none());
    let transformed = Tiles::new(&dense, 2).unwrap().spread(&[1; 50]);
    assert!(transformed.iter().all(|word| word & mask(8) < 8 || *word > u64::MAX - 8));
}
