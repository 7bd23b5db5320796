//! Convolutions in the Winograd domain, products by weight bits and changes of width.

use crate::exact;
use crate::numbers::Numbers;
use std::collections::BTreeMap;
use tacit_graph::ops::Requantize;
use tacit_graph::{
    Conv, Error, Format, Graph, Linear, Model, Node, NodeWeights, Nonlinear, Op, Rounding, Tensor,
    VERSION, WeightBits, Winograd, interpret, load, save, trace, verify_model,
};

const FEATURES: [[i128; 4]; 4] = [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]];
const OUTPUTS: [[i128; 4]; 2] = [[1, 1, 1, 0], [0, 1, -1, -1]];

/// `A^T [U (.) (B^T x B)] A + bias` with tiles of two by the definition, one output at a time.
pub(crate) fn accumulate(layer: &Winograd, weights: &NodeWeights, x: &[i128]) -> Vec<i128> {
    let conv = &layer.conv;
    let (height, width) = (conv.out_height(), conv.out_width());
    let mut y = Vec::new();
    for (o, (row, column)) in (0..conv.out_channels)
        .flat_map(|o| (0..height * width).map(move |at| (o, (at / width, at % width))))
    {
        let tile = [row / 2 * 2, column / 2 * 2];
        let mut sum = i128::from(weights.bias[o]);
        for place in 0..16 {
            let factor = OUTPUTS[row % 2][place / 4] * OUTPUTS[column % 2][place % 4];
            let product = product(layer, weights, x, (o, place), tile);
            let narrow = layer.product_bits < layer.accumulator_bits;
            let headroom = if layer.headroom { 2 } else { 1 };
            assert!(!narrow || exact::fits(headroom * product, layer.product_bits));
            sum += factor * product;
        }
        y.push(sum);
    }
    y
}

/// The same of floats, padded by one and without a bias.
pub(crate) fn convolve(
    [inputs, outputs]: [usize; 2],
    [height, width]: [usize; 2],
    weights: &[f64],
    x: &[f64],
) -> Vec<f64> {
    let one = |at: usize| {
        let (o, row, column) = (at / (height * width), at / width % height, at % width);
        let mut sum = 0.0;
        for (place, i) in (0..16).flat_map(|place| (0..inputs).map(move |i| (place, i))) {
            let back = OUTPUTS[row % 2][place / 4] * OUTPUTS[column % 2][place % 4];
            let mut feature = 0.0;
            for pixel in 0..16 {
                let y = (row / 2 * 2 + pixel / 4).wrapping_sub(1);
                let x0 = (column / 2 * 2 + pixel % 4).wrapping_sub(1);
                if y < height && x0 < width {
                    let factor = FEATURES[place / 4][pixel / 4] * FEATURES[place % 4][pixel % 4];
                    feature += factor as f64 * x[(i * height + y) * width + x0];
                }
            }
            sum += back as f64 * weights[(o * inputs + i) * 16 + place] * feature;
        }
        sum
    };
    (0..outputs * height * width).map(one).collect()
}

fn product(
    layer: &Winograd,
    weights: &NodeWeights,
    x: &[i128],
    (o, place): (usize, usize),
    [top, left]: [usize; 2],
) -> i128 {
    let conv = &layer.conv;
    let one = |i: usize| {
        let mut feature = 0;
        for at in 0..16 {
            let row = (top + at / 4).wrapping_sub(conv.padding[0]);
            let column = (left + at % 4).wrapping_sub(conv.padding[1]);
            if row < conv.in_height && column < conv.in_width {
                let factor = FEATURES[place / 4][at / 4] * FEATURES[place % 4][at % 4];
                feature += factor * x[(i * conv.in_height + row) * conv.in_width + column];
            }
        }
        i128::from(weights.weight[(o * conv.in_channels + i) * 16 + place]) * feature
    };
    (0..conv.in_channels).map(one).sum()
}

/// Sizes and widths of [`block`].
#[derive(Clone, Copy, Debug)]
struct Sizes {
    channels: [usize; 2],
    side: usize,
    activation_bits: u32,
    headroom: bool,
    wide: bool,
}

const SMALL: Sizes =
    Sizes { channels: [3, 3], side: 5, activation_bits: 4, headroom: false, wide: false };

/// Widths that are enough whatever the weights.
const ENOUGH: u32 = 24;

fn drawn(numbers: &mut Numbers, choice: &WeightBits, count: usize) -> Vec<i32> {
    let weights = choice.weights();
    (0..count).map(|_| weights[numbers.below(weights.len())] as i32).collect()
}

/// What stands for one convolution: 8-bit activations are requantised and convolved, each
/// channel is multiplied by an integer of its own and the activations are added.
fn block(sizes: Sizes, choice: WeightBits, seed: u64) -> Model {
    let mut numbers = Numbers(seed);
    let Sizes { channels: [inputs, outputs], side, activation_bits, headroom, wide } = sizes;
    let conv = Conv {
        in_channels: inputs,
        in_height: side,
        in_width: side,
        out_channels: outputs,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1; 4],
        dilation: [1, 1],
        groups: 1,
    };
    let each =
        Conv { in_channels: outputs, kernel: [1, 1], padding: [0; 4], groups: outputs, ..conv };
    let tensor = |name: &str, channels, bits, signed| {
        let format = Format { bits, scale: 1.0, signed };
        Tensor { name: name.into(), shape: vec![channels, side, side], format }
    };
    let tensors = vec![
        tensor("x", inputs, 36, false),
        tensor("narrow", inputs, ENOUGH, false),
        tensor("sums", outputs, 36, true),
        tensor("y", outputs, 24, true),
    ];
    let multipliers = WeightBits::twos_complement(8);
    let weights = BTreeMap::from([
        (
            1,
            NodeWeights {
                weight: drawn(&mut numbers, &choice, outputs * inputs * 16),
                bias: vec![0; outputs],
            },
        ),
        (
            2,
            NodeWeights {
                weight: drawn(&mut numbers, &multipliers, outputs),
                bias: (0..outputs).map(|o| o as i64 * 100 - 77).collect(),
            },
        ),
    ]);
    let winograd = Winograd {
        conv: conv.clone(),
        tile: 2,
        product_bits: if wide { 36 } else { ENOUGH },
        headroom,
        stage_bits: None,
        accumulator_bits: 36,
        choice,
        shift: 0,
        rounding: Rounding::Exact,
        addend: None,
    };
    let multiplied = Linear {
        conv: each,
        accumulator_bits: 36,
        weight_bits: 9,
        shift: 5,
        rounding: Rounding::Exact,
        addend: (inputs == outputs).then_some(13),
        choice: Some(multipliers),
        square_bits: None,
    };
    let last = if inputs == outputs { vec![2, 0] } else { vec![2] };
    let node = |name: &str, op, inputs, output| Node { name: name.into(), op, inputs, output };
    let graph = Graph {
        version: VERSION,
        name: "block".into(),
        suite: "ufo".into(),
        nonlinear: Nonlinear::Ot,
        activation_bits,
        input_range: [0, 255],
        input_rows: vec![],
        exact: None,
        states: vec![],
        inputs: vec![],
        outputs: vec![],
        tensors,
        nodes: vec![
            node("requantize", Op::from(Requantize { drop: 8 - activation_bits }), vec![0], 1),
            node("convolve", Op::from(winograd), vec![1], 2),
            node("multiply", Op::from(multiplied), last, 3),
        ],
        input: 0,
        output: 3,
        labels: vec![],
        link: None,
    };
    let mut model = Model { graph, weights };
    if wide {
        model.graph.tensors[1].format.bits = 36;
    }
    model
}

/// One that is accepted.
pub(crate) fn small() -> Model {
    block(SMALL, WeightBits::reweighted(3), 1)
}

fn layer(model: &mut Model) -> &mut Winograd {
    model.graph.nodes[1].op.get_mut().expect("a Winograd layer")
}

/// The narrowest products that are accepted.
fn least_products(model: &Model) -> u32 {
    let accepted = |bits: &u32| {
        let mut model = model.clone();
        layer(&mut model).product_bits = *bits;
        verify_model(&model).is_ok()
    };
    (2..ENOUGH).find(accepted).unwrap()
}

fn choices() -> Vec<WeightBits> {
    let of = |importance: &[i64], offset| WeightBits { importance: importance.into(), offset };
    vec![
        WeightBits::twos_complement(2),
        WeightBits::reweighted(3),
        WeightBits::twos_complement(8),
        of(&[1, -1], 0),
        of(&[2], -1),
        of(&[3, -5, 24], 1),
    ]
}

/// The input that drives one product as far as it goes.
fn attack(model: &Model, output: usize, place: usize, sign: i128) -> i128 {
    let mut model = model.clone();
    let weights = model.weights[&1].clone();
    let top =
        (255 + (1i128 << (7 - model.graph.activation_bits))) >> (8 - model.graph.activation_bits);
    let layer = layer(&mut model);
    let conv = &layer.conv;
    let length = conv.in_channels * conv.in_height * conv.in_width;
    let at = (output, place);
    let driven: Vec<i128> = (0..length)
        .map(|i| {
            let mut unit = vec![0; length];
            unit[i] = sign;
            if product(layer, &weights, &unit, at, [2, 2]) > 0 { top } else { 0 }
        })
        .collect();
    product(layer, &weights, &driven, at, [2, 2])
}

#[test]
fn products_are_as_narrow_as_the_worst_case_allows_and_within_lemma_1() {
    for (seed, choice) in (1..).zip(choices()) {
        let model = block(SMALL, choice.clone(), seed);
        let ends = (0..3).flat_map(|o| (0..16).flat_map(move |p| [(o, p, 1), (o, p, -1)]));
        let worst = ends.map(|(o, p, sign)| attack(&model, o, p, sign).abs()).max().unwrap();
        let least = least_products(&model);
        assert_eq!(least, 129 - worst.unsigned_abs().leading_zeros(), "{choice:?}");
        // Two bits for B on both sides; half of what is requantised may be one more.
        let features = SMALL.activation_bits + 1 + 2;
        let size = choice.range().map(|end| end.unsigned_abs() as u32).into_iter().max().unwrap();
        let sum = (size * SMALL.channels[0] as u32).next_power_of_two().ilog2();
        assert!(least <= features + sum + 1, "{least} {choice:?}");
        let spared = block(Sizes { headroom: true, ..SMALL }, choice, seed);
        assert_eq!(least_products(&spared), least + 1);
    }
}

#[test]
fn integers_are_those_of_the_definition() {
    for (seed, choice) in (1..).zip(choices()) {
        for (channels, wide) in [([3, 3], false), ([2, 4], true), ([5, 1], false)] {
            let model = block(Sizes { channels, wide, ..SMALL }, choice.clone(), seed);
            verify_model(&model).unwrap();
            let mut numbers = Numbers(seed);
            let length = model.graph.tensors[0].len();
            for _ in 0..4 {
                let x: Vec<i64> = (0..length).map(|_| numbers.below(256) as i64).collect();
                assert_eq!(trace(&model, &x).unwrap(), exact::run(&model, &x, None));
            }
        }
    }
}

#[test]
fn files_keep_weight_bits() {
    let model = block(SMALL, WeightBits::reweighted(4), 3);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.tacit");
    save(&model, &path).unwrap();
    let again = load(&path).unwrap();
    assert_eq!(again, model);
    let x = vec![200; 75];
    assert_eq!(interpret(&again, &x).unwrap(), interpret(&model, &x).unwrap());
}

#[test]
fn what_does_not_fit_is_refused() {
    type Break = (&'static str, fn(&mut Model));
    let breaks: [Break; 14] = [
        ("stride", |m| layer(m).conv.stride = [2, 2]),
        ("kernel", |m| layer(m).conv.kernel = [1, 1]),
        ("groups", |m| layer(m).conv.groups = 3),
        ("tile", |m| layer(m).tile = 3),
        ("products wider than the input", |m| layer(m).product_bits = 25),
        ("products wider than the accumulator", |m| layer(m).product_bits = 37),
        ("accumulator", |m| layer(m).accumulator_bits = 61),
        ("a spare bit of nothing", |m| {
            layer(m).headroom = true;
            layer(m).accumulator_bits = ENOUGH;
            m.graph.tensors[2].format.bits = ENOUGH;
        }),
        ("a stage below the products", |m| layer(m).stage_bits = Some(ENOUGH)),
        ("no importance", |m| layer(m).choice.importance.clear()),
        ("importance 0", |m| layer(m).choice.importance[0] = 0),
        ("a weight without bits", |m| m.weights.get_mut(&1).unwrap().weight[7] = 9),
        ("a missing weight", |m| m.weights.get_mut(&1).unwrap().weight.truncate(1)),
        ("drops all", |m| m.graph.nodes[0].op = Op::from(Requantize { drop: 35 })),
    ];
    let clean = small();
    verify_model(&clean).unwrap();
    for (name, apply) in breaks {
        let mut broken = clean.clone();
        apply(&mut broken);
        let error = verify_model(&broken).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{name}");
    }
    // Less may be claimed of a sign than is known, not more.
    let mut cautious = clean.clone();
    cautious.graph.tensors[1].format.signed = true;
    verify_model(&cautious).unwrap();
    cautious.graph.tensors[2].format.signed = false;
    assert!(verify_model(&cautious).is_err());
}
