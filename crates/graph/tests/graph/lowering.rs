//! Random models: the interpreter equals the integer reference, stays near the
//! float reference, and nothing overflows at the bounds.

use crate::exact;
use crate::float;
use crate::models::{self, Builder};
use crate::numbers::Numbers;
use proptest::prelude::*;
use tacit_graph::ops::{
    Concat, Extend, MaxPool, Pad, Relu, Requantize, Reshape, Sum, SumPool, View,
};
use tacit_graph::source::ops::{Add, AveragePool, Conv, LayerNorm};
use tacit_graph::source::{self, FloatTensor, Program};
use tacit_graph::{
    Error, Graph, Linear, Model, Options, Ranges, Rounding, argmax, digest, interpret,
    interpret_batch, lower, trace, verify_model,
};

pub(crate) fn compile(
    program: &Program,
    ranges: &Ranges,
    options: &Options,
) -> tacit_graph::Result<Model> {
    lower(program.source.clone(), program.floats.clone(), &ranges.clone().into(), options)
}

/// Ends of the input range, random mixtures of them, and random values.
pub(crate) fn inputs(graph: &Graph, seed: u64) -> Vec<Vec<i64>> {
    let (mut numbers, [low, high]) = (Numbers(seed), graph.input_range);
    let length = graph.tensors[graph.input].len();
    let span = (high - low + 1) as usize;
    let mut all = vec![vec![low; length], vec![high; length]];
    for _ in 0..6 {
        all.push((0..length).map(|_| [low, high][numbers.below(2)]).collect());
        all.push((0..length).map(|_| low + numbers.below(span) as i64).collect());
    }
    all
}

/// The smallest and the largest value of each element of a tensor.
type Bounds = Vec<[i128; 2]>;

/// Every reachable end of a linear node's accumulator, whatever computed its input.
fn attack(model: &Model, bounds: &[Bounds]) {
    for (index, node) in model.graph.nodes.iter().enumerate() {
        let Some(linear) = node.op.get::<Linear>() else { continue };
        let output = model.graph.output_of(node);
        for at in 0..output.len() {
            for sign in [1, -1] {
                let x = worst((model, index, linear), at, &bounds[node.inputs[0]], sign);
                let mut sum = exact::accumulate(model, index, linear, &x, at);
                if let (Some(factor), Some(skip)) = (linear.addend, node.inputs.get(1)) {
                    let ends = bounds[*skip][at].map(|end| i128::from(factor) * end * sign);
                    sum += sign * ends[0].max(ends[1]);
                }
                exact::rescale(sum, linear.accumulator_bits, linear.shift, output);
            }
        }
    }
}

/// The input that drives one output as far as it goes: found by asking the
/// reference for each element's weight.
fn worst(
    (model, node, linear): (&Model, usize, &Linear),
    at: usize,
    bounds: &Bounds,
    sign: i128,
) -> Vec<i128> {
    let zero = vec![0; bounds.len()];
    let rest = exact::accumulate(model, node, linear, &zero, at);
    let end = |(i, [low, high]): (usize, &[i128; 2])| {
        let mut unit = zero.clone();
        unit[i] = sign;
        let weight = exact::accumulate(model, node, linear, &unit, at) - rest;
        if weight > 0 { *high } else { *low }
    };
    bounds.iter().enumerate().map(end).collect()
}

/// Bounds of saturated tensors and of what pools and reshapes make of them; for
/// others the ends that were seen. They are by element, because widths are chosen by the ranges of
/// what was concatenated.
fn bounds(model: &Model, traces: &[Vec<Vec<i64>>]) -> Vec<Bounds> {
    let graph = &model.graph;
    let seen = |t: usize| {
        let values = || traces.iter().flat_map(|trace| &trace[t]).map(|v| i128::from(*v));
        vec![[values().min().unwrap(), values().max().unwrap()]; graph.tensors[t].len()]
    };
    let mut bounds: Vec<Bounds> = (0..graph.tensors.len()).map(seen).collect();
    bounds[graph.input].fill(graph.input_range.map(i128::from));
    for node in &graph.nodes {
        let input = bounds[node.inputs[0]].clone();
        let low = input.iter().map(|end| end[0]).min().unwrap();
        let high = input.iter().map(|end| end[1]).max().unwrap();
        let output = &mut bounds[node.output];
        if let Some(Relu { saturate, low }) = node.op.get() {
            let low = i128::from(*low);
            output.fill([low, low + (1 << saturate) - 1]);
        } else if node.op.is::<MaxPool>() {
            output.fill([low, high]);
        } else if node.op.is::<Reshape>() || node.op.is::<Extend>() {
            *output = input;
        } else if node.op.is::<View>() || node.op.is::<Pad>() {
            let shown = |from: Option<usize>| from.map_or([0, 0], |from| input[from]);
            *output = graph.arrangement(node).into_iter().map(shown).collect();
        } else if let Some(SumPool(window)) = node.op.get() {
            output.fill([low, high].map(|end| end * window.size() as i128));
        } else if node.op.is::<Concat>() {
            let parts = node.inputs.iter().flat_map(|i| bounds[*i].clone());
            bounds[node.output] = parts.collect();
        } else if let Some(Requantize { drop }) = node.op.get() {
            let half = if *drop == 0 { 0 } else { 1 << (drop - 1) };
            *output = input.iter().map(|ends| ends.map(|end| (end + half) >> drop)).collect();
        }
    }
    bounds
}

pub(crate) fn is_too_wide(error: &Error) -> bool {
    matches!(error, Error::Unsupported { what, .. } if what.contains("width of")
        || what.contains("far from zero") || what.contains("too large"))
}

fn many() -> ProptestConfig {
    ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn no_width_is_ever_exceeded(seed: u64, signed: bool, bits in 4u32..=8) {
        let program = models::random(seed);
        let (_, ranges) = float::calibrate(&program, seed, if signed { -1.0 } else { 0.0 });
        let options = Options { weight_bits: bits, activation_bits: bits, ..Options::default() };
        let model = match compile(&program, &ranges, &options) {
            Ok(model) => model,
            Err(error) => {
                prop_assert!(is_too_wide(&error), "{error}");
                return Ok(());
            }
        };
        let inputs = inputs(&model.graph, seed);
        let mut traces = vec![];
        for input in &inputs {
            let ours = trace(&model, input).unwrap();
            prop_assert_eq!(&ours, &exact::run(&model, input, None));
            exact::run(&model, input, Some(&mut Numbers(seed)));
            traces.push(ours);
        }
        attack(&model, &bounds(&model, &traces));
        let outputs: Vec<_> = traces.iter().map(|t| t[model.graph.output].clone()).collect();
        prop_assert_eq!(interpret_batch(&model, &inputs).unwrap(), outputs);
        let public = Graph::from_json(&model.graph.public_json()).unwrap();
        prop_assert_eq!(digest(&public), digest(&model.graph));
    }
}

/// Fixed seeds: how near is a property of each model.
#[test]
fn integers_stay_near_the_floats() {
    for (seed, low) in (0..200).flat_map(|seed| [(seed, 0.0), (seed, -1.0)]) {
        let program = models::random(seed);
        let (inputs, ranges) = float::calibrate(&program, seed, low);
        let Ok(model) = compile(&program, &ranges, &Options::default()) else { continue };
        let (low, high) = ranges[&program.source.output];
        for x in inputs.iter().take(4) {
            let y = interpret(&model, &model.graph.quantize_input(x).unwrap()).unwrap();
            let y = model.graph.dequantize_output(&y);
            for (ours, real) in y.iter().zip(&float::run(&program, x)[&program.source.output]) {
                let error = (ours - real).abs() / high.max(-low);
                assert!(error < 0.06, "seed {seed}: {ours} is not {real}: {error}");
            }
        }
    }
}

/// Random models that compile.
pub(crate) fn some_models(count: usize) -> Vec<Model> {
    let compiled = (0..).filter_map(|seed| {
        let program = models::random(seed);
        let (_, ranges) = float::calibrate(&program, seed, 0.0);
        compile(&program, &ranges, &Options::default()).ok()
    });
    compiled.take(count).collect()
}

#[test]
fn most_random_models_compile() {
    let compiles = |seed: &u64| {
        let program = models::random(*seed);
        let (_, ranges) = float::calibrate(&program, *seed, 0.0);
        compile(&program, &ranges, &Options::default()).is_ok()
    };
    let count = (0..300).filter(compiles).count();
    assert!(count > 200, "{count} of 300");
}

/// A single linear layer whose worst case is known: 3 weights on `[0, 255]`.
#[test]
fn the_accumulator_is_as_narrow_as_the_worst_case_allows() {
    let mut builder = Builder::new(7, &[3]);
    builder.gemm(2);
    let program = builder.finish();
    let (_, ranges) = float::calibrate(&program, 1, 0.0);
    let mut model = compile(&program, &ranges, &Options::default()).unwrap();
    verify_model(&model).unwrap();
    let Some(linear) = model.graph.nodes[0].op.get_mut::<Linear>() else { panic!("one Gemm") };
    linear.accumulator_bits -= 1;
    let error = verify_model(&model).unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error}");
}

#[test]
fn narrower_tensors_are_refused() {
    for model in some_models(40) {
        for tensor in 0..model.graph.tensors.len() {
            let mut narrow = model.clone();
            narrow.graph.tensors[tensor].format.bits -= 1;
            assert!(verify_model(&narrow).is_err(), "{:?}", model.graph.tensors[tensor]);
        }
    }
}

fn residual(seed: u64) -> Program {
    let mut builder = Builder::new(seed, &[2, 4, 4]);
    let weight = builder.weights(&[2, 2, 1, 1], -1.0, 1.0);
    let conv = |weight: String| Conv {
        kernel: [1, 1],
        stride: [1, 1],
        padding: [0; 4],
        dilation: [1, 1],
        groups: 1,
        weight,
        bias: None,
    };
    let shape = vec![2, 4, 4];
    let first = builder.push(&["x"], conv(weight), shape.clone());
    let skip =
        builder.push(&[&first], source::ops::Relu { maximum: None, bits: None }, shape.clone());
    let weight = builder.weights(&[2, 2, 1, 1], -1.0, 1.0);
    let second = builder.push(&[&skip], conv(weight), shape.clone());
    builder.push(&[&skip, &second], Add {}, shape);
    builder.relu();
    builder.gemm(3);
    builder.finish()
}

#[test]
fn a_residual_is_added_inside_the_accumulator() {
    let program = residual(3);
    let (inputs, ranges) = float::calibrate(&program, 3, 0.0);
    let model = compile(&program, &ranges, &Options::default()).unwrap();
    let sums = model.graph.nodes.iter().filter(|n| n.op.is::<Sum>()).count();
    let skip = model.graph.nodes.iter().find(|n| n.inputs.len() == 2).unwrap();
    assert_eq!((sums, skip.name.as_str()), (0, "n3"));
    for x in &inputs {
        let y = interpret(&model, &model.graph.quantize_input(x).unwrap()).unwrap();
        exact::run(&model, &model.graph.quantize_input(x).unwrap(), None);
        let real = &float::run(&program, x)[&program.source.output];
        for (ours, real) in model.graph.dequantize_output(&y).iter().zip(real) {
            assert!((ours - real).abs() < 0.05, "{ours} {real}");
        }
    }
}

#[test]
fn only_the_last_linear_layer_is_exact() {
    let program = residual(3);
    let (_, ranges) = float::calibrate(&program, 3, 0.0);
    let model = compile(&program, &ranges, &Options::default()).unwrap();
    let roundings =
        model.graph.nodes.iter().filter_map(|n| n.op.get::<Linear>().map(|linear| linear.rounding));
    let stochastic = Rounding::Stochastic;
    assert_eq!(roundings.collect::<Vec<_>>(), [stochastic, stochastic, Rounding::Exact]);
}

#[test]
fn addends_of_the_opened_sum_are_exact_too() {
    let mut builder = Builder::new(5, &[3]);
    builder.gemm(4);
    let (first, shape) = builder.last();
    builder.relu();
    builder.gemm(4);
    let (second, _) = builder.last();
    builder.push(&[&second, &first], Add {}, shape);
    let program = builder.finish();
    let (_, ranges) = float::calibrate(&program, 5, 0.0);
    let model = compile(&program, &ranges, &Options::default()).unwrap();
    for node in &model.graph.nodes {
        if let Some(linear) = node.op.get::<Linear>() {
            assert_eq!(linear.rounding, Rounding::Exact, "{}", node.name);
        }
    }
}

#[test]
fn options_and_calibration_are_checked() {
    let program = residual(3);
    let (_, ranges) = float::calibrate(&program, 3, 0.0);
    let refuse = |options: Options, ranges: &Ranges| {
        compile(&program, ranges, &options).unwrap_err().to_string()
    };
    let wide = Options { weight_bits: 13, ..Options::default() };
    assert!(refuse(wide, &ranges).contains("weight_bits is 13"));
    let labels = Options { labels: vec!["one".into()], ..Options::default() };
    assert!(refuse(labels, &ranges).contains("1 labels for 3 outputs"));
    let mut without = ranges.clone();
    without.remove("t7");
    assert!(refuse(Options::default(), &without).contains("no range for `t7`"));
    without.insert("t2".into(), (0.0, f64::NAN));
    assert!(refuse(Options::default(), &without).contains("calibrated range of `t2`"));
}

#[test]
fn padded_averages_that_change_the_divisor_are_refused() {
    let mut builder = Builder::new(1, &[1, 4, 4]);
    let op =
        AveragePool { kernel: [2, 2], stride: [2, 2], padding: [1; 4], count_include_pad: false };
    builder.push(&["x"], op, vec![1, 3, 3]);
    builder.gemm(2);
    let program = builder.finish();
    let ranges = Ranges::from([("x".into(), (0.0, 1.0)), ("t3".into(), (-1.0, 1.0))]);
    let error = compile(&program, &ranges, &Options::default()).unwrap_err();
    assert!(matches!(&error, Error::Unsupported { node, .. } if node == "n1"), "{error}");
}

/// Factors of a norm of a vector have no layer to go to, and are not left out.
#[test]
fn factors_of_a_norm_that_nothing_takes_over_are_refused() {
    for factors in [false, true] {
        let mut builder = Builder::new(1, &[6]);
        let scale = FloatTensor { shape: vec![6], data: vec![2.0; 6] };
        let scale = factors.then(|| builder.store(scale));
        builder.push(&["x"], LayerNorm { epsilon: 1e-5, scale, bias: None, rms: false }, vec![6]);
        let program = builder.finish();
        let ranges = Ranges::from([("x".into(), (-1.0, 1.0)), ("t1".into(), (-3.0, 3.0))]);
        let compiled = compile(&program, &ranges, &Options::default());
        let error = compiled.err().map(|error| error.to_string());
        assert_eq!(error.is_some(), factors, "{error:?}");
        assert!(error.is_none_or(|error| error.contains("no layer behind it takes over")));
    }
}

#[test]
fn inputs_are_rounded_clipped_and_checked() {
    let program = residual(3);
    let (_, mut ranges) = float::calibrate(&program, 3, 0.0);
    ranges.insert("x".into(), (0.0, 255.0));
    let graph = compile(&program, &ranges, &Options::default()).unwrap().graph;
    let mut x = vec![0.0f32; 32];
    x[..6].copy_from_slice(&[0.5, 1.49, 2.5, -3.0, 300.0, f32::MAX]);
    assert_eq!(graph.quantize_input(&x).unwrap()[..6], [1, 1, 3, 0, 255, 255]);
    assert!(matches!(graph.quantize_input(&x[1..]), Err(Error::Misuse(_))));
    for wrong in [f32::NAN, f32::INFINITY] {
        x[7] = wrong;
        assert!(matches!(graph.quantize_input(&x), Err(Error::Misuse(_))));
    }
    ranges.insert("x".into(), (-127.0, 3.0));
    let model = compile(&program, &ranges, &Options::default()).unwrap();
    assert_eq!(model.graph.input_range, [-127, 127]);
    x[7] = -0.5;
    assert_eq!(model.graph.quantize_input(&x).unwrap()[..8], [1, 1, 3, -3, 127, 127, 0, -1]);
    assert!(matches!(interpret(&model, &[0; 3]), Err(Error::Misuse(_))));
    assert!(matches!(interpret(&model, &[128; 32]), Err(Error::Misuse(_))));
}

#[test]
fn the_first_maximum_wins() {
    assert_eq!(argmax(&[1, 3, -2, 3]), 1);
    assert_eq!(argmax(&[]), 0);
}
