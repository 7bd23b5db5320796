//! Suite ufo.

use graph::ops::{Extend, Relu, Requantize, Reshape};
use graph::{Conv, Format, Graph, Linear, Node, NodeWeights, Op, Tensor, WeightBits, Winograd};

use super::*;

/// Widths, operators and weights of a network with everything that the suite runs.
struct Builder<'a> {
    rng: &'a mut Random,
    tensors: Vec<Tensor>,
    nodes: Vec<Node>,
    weights: BTreeMap<usize, NodeWeights>,
}

impl Builder<'_> {
    fn push(&mut self, op: Op, inputs: Vec<usize>, shape: &[usize], bits: u32, signed: bool) {
        let name = format!("t{}", self.tensors.len());
        let format = Format { bits, scale: 1.0, signed };
        self.tensors.push(Tensor { name: name.clone(), shape: shape.to_vec(), format });
        let output = self.tensors.len() - 1;
        self.nodes.push(Node { name: format!("n{output}"), op, inputs, output });
    }

    /// Weights of the next node.
    fn weigh(&mut self, choice: &WeightBits, count: usize, outputs: usize) {
        let chosen = self.rng.uniform(count, choice.importance.len() as u32);
        let weight = chosen.iter().map(|chosen| choice.weight(*chosen as u32) as i32).collect();
        let bias = self.rng.uniform(outputs, 4).iter().map(|bias| *bias as i64 - 8).collect();
        self.weights.insert(self.nodes.len(), NodeWeights { weight, bias });
    }
}

fn conv(channels: [usize; 2], side: usize, kernel: usize, stride: usize, groups: usize) -> Conv {
    Conv {
        in_channels: channels[0],
        in_height: side,
        in_width: side,
        out_channels: channels[1],
        kernel: [kernel; 2],
        stride: [stride; 2],
        padding: [kernel / 2; 4],
        dilation: [1, 1],
        groups,
    }
}

/// Tiles of both sizes, with and without extensions, a residual, changes of width, a
/// depthwise layer, ternary and binary weights.
fn everything(rng: &mut Random, rounding: Rounding) -> Model {
    let tensor = Tensor {
        name: "x".into(),
        shape: vec![2, 8, 8],
        format: Format { bits: 24, scale: 1.0 / 128.0, signed: true },
    };
    let (tensors, nodes, weights) = (vec![tensor], vec![], BTreeMap::new());
    let mut builder = Builder { rng, tensors, nodes, weights };
    let exact = Rounding::Exact;
    let tiles = |conv: Conv, tile, [product_bits, accumulator_bits, shift]: [u32; 3], choice| {
        let (headroom, addend) = (tile == 4, (accumulator_bits > product_bits).then_some(3));
        let headroom = headroom && product_bits < accumulator_bits;
        let stage_bits = addend.map(|_| product_bits + 2);
        let rounding = exact;
        Op::from(Winograd {
            conv,
            tile,
            product_bits,
            headroom,
            stage_bits,
            accumulator_bits,
            choice,
            shift,
            rounding,
            addend,
        })
    };
    let linear = |conv, accumulator_bits, shift, rounding, choice| {
        let (weight_bits, addend) = (9, None);
        Op::from(Linear {
            conv,
            accumulator_bits,
            weight_bits,
            shift,
            rounding,
            addend,
            choice: Some(choice),
            square_bits: None,
        })
    };
    let choice = WeightBits::reweighted(3);
    builder.weigh(&choice, 2 * 4 * 16, 4);
    let first = tiles(conv([2, 4], 8, 3, 1, 1), 2, [24, 24, 6], choice);
    builder.push(first, vec![0], &[4, 8, 8], 18, true);
    builder.push(Op::from(Relu { saturate: 6, low: 0 }), vec![1], &[4, 8, 8], 24, false);
    let choice = WeightBits::twos_complement(3);
    builder.weigh(&choice, 4 * 4 * 16, 4);
    let second = tiles(conv([4, 4], 8, 3, 1, 1), 2, [13, 24, 5], choice);
    builder.push(second, vec![2, 2], &[4, 8, 8], 19, true);
    builder.push(Op::from(Relu { saturate: 5, low: 0 }), vec![3], &[4, 8, 8], 24, false);
    let choice = WeightBits { importance: vec![2], offset: -1 };
    builder.weigh(&choice, 4 * 4 * 36, 4);
    let third = tiles(conv([4, 4], 8, 3, 1, 1), 4, [18, 24, 9], choice);
    builder.push(third, vec![4, 2], &[4, 8, 8], 15, true);
    builder.push(Op::from(Relu { saturate: 7, low: 0 }), vec![5], &[4, 8, 8], 12, false);
    builder.push(Op::from(Requantize { drop: 2 }), vec![6], &[4, 8, 8], 14, false);
    let choice = WeightBits::twos_complement(8);
    builder.weigh(&choice, 4, 4);
    let depthwise = linear(conv([4, 4], 8, 1, 1, 4), 14, 0, exact, choice);
    builder.push(depthwise, vec![7], &[4, 8, 8], 14, true);
    builder.push(Op::from(Requantize { drop: 0 }), vec![8], &[4, 8, 8], 20, true);
    let choice = WeightBits { importance: vec![1, -1], offset: 0 };
    builder.weigh(&choice, 3 * 4 * 9, 3);
    let strided = linear(conv([4, 3], 8, 3, 2, 1), 20, 3, rounding, choice);
    builder.push(strided, vec![9], &[3, 4, 4], 17, true);
    builder.push(Op::from(Extend), vec![10], &[3, 4, 4], 26, true);
    builder.push(Op::from(Reshape), vec![11], &[48], 26, true);
    let choice = WeightBits::twos_complement(4);
    builder.weigh(&choice, 48 * 5, 5);
    let last = linear(Conv::fully_connected(48, 5), 26, 4, exact, choice);
    builder.push(last, vec![12], &[5], 22, true);
    let Builder { tensors, nodes, weights, .. } = builder;
    let output = tensors.len() - 1;
    let graph = Graph {
        version: graph::VERSION,
        name: "everything".into(),
        suite: "ufo".into(),
        nonlinear: graph::Nonlinear::Ot,
        activation_bits: 8,
        input_range: [-128, 127],
        input_rows: vec![],
        exact: None,
        states: vec![],
        inputs: vec![],
        outputs: vec![],
        tensors,
        nodes,
        input: 0,
        output,
        labels: vec![],
        link: None,
    };
    let model = Model { graph, weights };
    graph::verify_model(&model).unwrap();
    model
}

fn values(rng: &mut Random, count: usize) -> Vec<f32> {
    rng.uniform(count * 128, 8).iter().map(|word| *word as f32 / 128.0 - 1.0).collect()
}

#[test]
fn transfers_give_what_the_interpreter_gives_at_the_cost_that_was_planned() {
    let mut rng = Random::seeded(61);
    let model = everything(&mut rng, Rounding::Exact);
    let values = values(&mut rng, 3);
    let logits = clear(&model, &values);
    for (offline, batch) in [(None, None), (NonZeroU32::new(2), None), (None, NonZeroU32::new(2))] {
        let settings = Settings { offline, batch, ..Settings::default() };
        let (answer, server) = run_with(&model, settings, &values);
        assert_eq!(answer.results, logits, "{offline:?} {batch:?}");
        costs_as_planned(&answer, &server.unwrap(), 3);
    }
    let labels: Vec<_> = logits.iter().map(|row| vec![graph::argmax(row) as i64]).collect();
    let (answer, server) = run(&model, Reveal::Label, &values);
    assert_eq!(answer.results, labels);
    costs_as_planned(&answer, &server.unwrap(), 3);
}

#[test]
fn stochastic_rounding_stays_within_a_unit_of_what_is_rounded() {
    let mut rng = Random::seeded(62);
    let model = everything(&mut rng, Rounding::Stochastic);
    let values = values(&mut rng, 2);
    let (answer, server) = run(&model, Reveal::Output, &values);
    costs_as_planned(&answer, &server.unwrap(), 2);
    let pairs = answer.results.iter().flatten().zip(clear(&model, &values).into_iter().flatten());
    // 48 inputs, each off by at most one, times weights of at most 8, by 16.
    assert!(pairs.into_iter().all(|(got, want)| got.abs_diff(want) <= 25));
}

#[test]
fn online_the_client_says_no_more_than_its_masked_shares() {
    let mut rng = Random::seeded(63);
    let plan = Plan::new(everything(&mut rng, Rounding::Exact).graph, Settings::default()).unwrap();
    let report = Report::predicted(&plan, 1);
    let first = |phase| {
        let row = report.layers.iter().find(|row| row.name == "n1" && row.phase == phase).unwrap();
        row.usage.bytes.client_to_server
    };
    // 128 values, 24 bits; the exact rescale of 6 bits is a comparison for each of 256.
    assert!(first("online") < 5 + 128 * 3 + 256 * 12, "{}", first("online"));
    assert!(first("offline") > 16 * 8 * 3 * 16 * 20 / 8, "{}", first("offline"));
}

#[test]
fn a_default_model_runs_by_transfers_too() {
    let mut rng = Random::seeded(64);
    let mut model = network(&mut rng, Rounding::Exact);
    model.graph.suite = "ufo".into();
    let values = inputs(&mut rng, 2);
    let (answer, server) = run(&model, Reveal::Output, &values);
    assert_eq!(answer.results, clear(&model, &values));
    costs_as_planned(&answer, &server.unwrap(), 2);
}

/// The small network with weights of few bits, in the Winograd domain where that fits.
fn few_bits(weight_bits: u32, disabled: &[graph::Switch]) -> Model {
    let options = graph::Options {
        suite: "ufo".into(),
        ot_products: true,
        rounding: Rounding::Exact,
        weight_bits,
        activation_bits: 5,
        disabled: disabled.iter().copied().collect(),
        ..graph::Options::default()
    };
    lowered(&mut Random::seeded(65), &options)
}

#[test]
fn networks_of_few_bits_run_with_and_without_what_saves_bytes() {
    use graph::Switch::{Fusion, Residual, Reweighting, Sign, Winograd};
    let mut rng = Random::seeded(66);
    let values = inputs(&mut rng, 2);
    for disabled in [&[][..], &[Winograd], &[Fusion], &[Residual], &[Sign], &[Reweighting]] {
        for weight_bits in [2, 3, 6] {
            let model = few_bits(weight_bits, disabled);
            let (answer, server) = run(&model, Reveal::Output, &values);
            assert_eq!(answer.results, clear(&model, &values), "{disabled:?} {weight_bits}");
            costs_as_planned(&answer, &server.unwrap(), 2);
        }
    }
}

#[test]
fn a_plan_cannot_make_a_client_price_transfers_without_bound() {
    for (channels, side, kernel, accepted) in [
        (16, 8, 3, true),
        (2048, 8, 3, true),
        (8192, 1, 1, true),
        (8192, 8, 3, false),
        (1 << 14, 1, 1, false),
        (64, 1 << 12, 3, false),
        (1, 64, 63, true),
    ] {
        let offer = hostile::layer_offer("ufo", channels, side, kernel);
        let began = std::time::Instant::now();
        let priced = Plan::from_offer(&offer).map(|plan| plan.cost(1).bytes());
        assert_eq!(priced.is_ok(), accepted, "{channels} {side} {kernel}: {priced:?}");
        assert!(began.elapsed() < std::time::Duration::from_secs(10), "{channels} {side} {kernel}");
    }
}
