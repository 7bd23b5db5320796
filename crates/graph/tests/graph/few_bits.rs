//! Networks whose weights and activations have few bits: rounded here, or trained so.

use crate::float;
use crate::lowering::{compile, inputs};
use crate::models::{self, Builder};
use crate::numbers::Numbers;
use crate::{exact, lowering::is_too_wide};
use proptest::prelude::*;
use tacit_graph::ops::{Extend, Linear, Relu, Requantize, Sum, Winograd};
use tacit_graph::source::ops::{Add, Conv, QuantisedConv};
use tacit_graph::source::{self, Program};
use tacit_graph::{Error, FloatTensor, Model, Op, Options, Ranges, Switch, interpret, trace};

/// Options of a suite whose products are transfers.
pub(crate) fn options(weight_bits: u32, activation_bits: u32) -> Options {
    Options {
        suite: "ufo".into(),
        ot_products: true,
        weight_bits,
        activation_bits,
        ..Options::default()
    }
}

/// Two residual blocks behind a convolution, the second at half the size, and a classifier.
/// What is added to the second takes every other pixel, as it is or by a projection.
fn residual(seed: u64, projects: bool) -> Program {
    let mut builder = Builder::new(seed, &[2, 6, 6]);
    let relu = |builder: &mut Builder| {
        builder.same_shape(source::ops::Relu { maximum: None, bits: None });
        builder.last().0
    };
    conv(&mut builder, "x", [2, 3], (3, 1));
    let skip = relu(&mut builder);
    conv(&mut builder, &skip, [3, 3], (3, 1));
    let inner = relu(&mut builder);
    let outer = conv(&mut builder, &inner, [3, 3], (3, 1));
    builder.push(&[&outer, &skip], Add {}, vec![3, 6, 6]);
    let skip = relu(&mut builder);
    conv(&mut builder, &skip, [3, 4], (3, 2));
    let inner = relu(&mut builder);
    let outer = conv(&mut builder, &inner, [4, 4], (3, 1));
    let short = match projects {
        true => conv(&mut builder, &skip, [3, 4], (1, 2)),
        false => {
            let data = (0..12).map(|i| if i / 3 == i % 3 { 1.0 } else { 0.0 }).collect();
            let weight = builder.store(FloatTensor { shape: vec![4, 3, 1, 1], data });
            let (kernel, stride, padding) = ([1, 1], [2, 2], [0; 4]);
            let (dilation, groups, bias) = ([1, 1], 1, None);
            let op = Conv { kernel, stride, padding, dilation, groups, weight, bias };
            builder.push(&[&skip], op, vec![4, 3, 3])
        }
    };
    builder.push(&[&outer, &short], Add {}, vec![4, 3, 3]);
    relu(&mut builder);
    builder.pool(false);
    builder.gemm(3);
    builder.finish()
}

fn conv(
    builder: &mut Builder,
    input: &str,
    [inputs, outputs]: [usize; 2],
    (kernel, stride): (usize, usize),
) -> String {
    let reach = 1.5 / ((inputs * kernel * kernel) as f32).sqrt();
    let weight = builder.weights(&[outputs, inputs, kernel, kernel], -reach, reach);
    let bias = Some(builder.weights(&[outputs], -0.1, 0.1));
    let op = Conv {
        kernel: [kernel; 2],
        stride: [stride; 2],
        padding: [kernel / 2; 4],
        dilation: [1, 1],
        groups: 1,
        weight,
        bias,
    };
    let side = builder.tensors.iter().find(|(name, _)| name == input).unwrap().1[1];
    builder.push(&[input], op, vec![outputs, side / stride, side / stride])
}

fn ranges(program: &Program, seed: u64) -> (Vec<Vec<f32>>, Ranges) {
    float::calibrate(program, seed, -1.0)
}

/// The integers of some inputs, which are those of the definition.
fn checked(model: &Model, seed: u64) -> Vec<Vec<Vec<i64>>> {
    let trace = |input: &Vec<i64>| {
        let ours = trace(model, input).unwrap();
        assert_eq!(ours, exact::run(model, input, None));
        exact::run(model, input, Some(&mut Numbers(seed)));
        ours
    };
    inputs(&model.graph, seed).iter().map(trace).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_width_is_ever_exceeded(seed: u64, weight_bits in 2u32..=8, activation_bits in 3u32..=8) {
        let program = models::random(seed);
        let (_, ranges) = float::calibrate(&program, seed, -1.0);
        match compile(&program, &ranges, &options(weight_bits, activation_bits)) {
            Ok(model) => drop(checked(&model, seed)),
            Err(error) => prop_assert!(is_too_wide(&error), "{error}"),
        }
    }
}

fn furthest(model: &Model, program: &Program, inputs: &[Vec<f32>], ranges: &Ranges) -> f64 {
    let (low, high) = ranges[&program.source.output];
    let mut most = 0f64;
    for x in inputs {
        let y = interpret(model, &model.graph.quantize_input(x).unwrap()).unwrap();
        let y = model.graph.dequantize_output(&y);
        for (ours, real) in y.iter().zip(&float::run(program, x)[&program.source.output]) {
            most = most.max((ours - real).abs() / high.max(-low));
        }
    }
    most
}

/// Whether an operator is a ReLU or clip to so many bits.
fn saturates(op: &Op, bits: u32) -> bool {
    op.get().is_some_and(|Relu { saturate, .. }| *saturate == bits)
}

#[test]
fn more_bits_are_nearer_the_floats() {
    let program = residual(5, true);
    let (inputs, ranges) = ranges(&program, 5);
    let error = |bits| {
        let model = compile(&program, &ranges, &options(bits, bits)).unwrap();
        checked(&model, 5);
        furthest(&model, &program, &inputs, &ranges)
    };
    let errors = [3, 5, 8].map(error);
    assert!(errors[2] < 0.05 && errors[2] < errors[1] && errors[1] < errors[0], "{errors:?}");
}

fn count(model: &Model, wanted: fn(&Op) -> bool) -> usize {
    model.graph.nodes.iter().filter(|node| wanted(&node.op)).count()
}

#[test]
fn convolutions_are_those_that_suit_them() {
    let program = residual(5, true);
    let (_, ranges) = ranges(&program, 5);
    let model = compile(&program, &ranges, &options(4, 4)).unwrap();
    let winograd = |op: &Op| op.is::<Winograd>();
    assert_eq!(count(&model, winograd), 4);
    // Those of stride 2, the classifier, and a multiplier for each of the seven layers.
    assert_eq!(count(&model, |op| op.is::<Linear>()), 3 + 7);
    assert_eq!(count(&model, |op| *op == Requantize { drop: 4 }), 2);
    assert_eq!(count(&model, |op| op.is::<Sum>()), 0);
    let eight = |op: &Op| saturates(op, 8);
    assert_eq!(count(&model, eight), 3);
    assert_eq!(count(&model, |op| saturates(op, 4)), 2);
    let plain = Options { disabled: [Switch::Winograd].into(), ..options(4, 4) };
    let plain = compile(&program, &ranges, &plain).unwrap();
    assert_eq!(count(&plain, winograd), 0);
    // What takes pixels as they are needs no multiplier, and is what is added.
    let program = residual(5, false);
    let (_, ranges) = self::ranges(&program, 5);
    let model = compile(&program, &ranges, &options(4, 4)).unwrap();
    assert_eq!(count(&model, |op| op.is::<Linear>()), 3 + 6);
    let added = model.graph.nodes.iter().filter(|node| node.inputs.len() == 2);
    assert!(added.clone().all(|node| node.op.is::<Linear>()) && added.count() == 2);
}

/// The network that [`residual`] becomes when its weights are rounded, as training would
/// hand it over: steps of ReLUs and of what is requantised are said.
fn trained(seed: u64) -> (Program, Ranges) {
    let mut builder = Builder::new(seed, &[2, 5, 5]);
    let quantised = |builder: &mut Builder, input: &str, [inputs, outputs]: [usize; 2]| {
        let numbers = &mut builder.numbers;
        let levels = [-8, -7, -6, -5, 0, 1, 2, 3];
        let weight = (0..outputs * inputs * 16).map(|_| levels[numbers.below(8)] as f32).collect();
        let scale = numbers.reals(outputs, 0.01, 0.03);
        let bias = numbers.reals(outputs, -0.1, 0.3);
        let [weight, scale, bias] = [
            FloatTensor { shape: vec![outputs, inputs, 4, 4], data: weight },
            FloatTensor::vector(scale),
            FloatTensor::vector(bias),
        ]
        .map(|tensor| builder.store(tensor));
        let op = QuantisedConv {
            kernel: [3, 3],
            stride: [1, 1],
            padding: [1; 4],
            dilation: [1, 1],
            groups: 1,
            winograd: true,
            weight,
            importance: vec![1, 2, -8],
            offset: 0,
            scale,
            bias,
        };
        builder.push(&[input], op, vec![outputs, 5, 5])
    };
    let shape = vec![3, 5, 5];
    let relu = |bits| source::ops::Relu { maximum: None, bits };
    let first = quantised(&mut builder, "x", [2, 3]);
    let skip = builder.push(&[&first], relu(Some(8)), shape.clone());
    let few = builder.push(&[&skip], source::ops::Requantize { bits: 6 }, shape.clone());
    let inner = quantised(&mut builder, &few, [3, 3]);
    let inner = builder.push(&[&inner], relu(None), shape.clone());
    let outer = quantised(&mut builder, &inner, [3, 3]);
    let sum = builder.push(&[&outer, &skip], Add {}, shape.clone());
    builder.push(&[&sum], relu(Some(8)), shape);
    builder.gemm(3);
    let program = builder.finish();
    let (_, ranges) = ranges(&program, seed);
    (program, ranges)
}

#[test]
fn trained_networks_stay_what_they_are() {
    let (program, ranges) = trained(3);
    let model = compile(&program, &ranges, &options(8, 6)).unwrap();
    checked(&model, 3);
    assert_eq!(count(&model, |op| op.is::<Winograd>()), 3);
    assert_eq!(count(&model, |op| *op == Requantize { drop: 2 }), 1);
    assert_eq!(count(&model, |op| saturates(op, 6)), 1);
    assert_eq!(count(&model, |op| saturates(op, 8)), 2);
    assert_eq!(model.graph.activation_bits, 6);
    let (inputs, _) = float::calibrate(&program, 3, -1.0);
    let error = furthest(&model, &program, &inputs, &ranges);
    assert!(error < 0.05, "{error}");
}

#[test]
fn what_training_fixed_is_not_left_out_and_other_suites_refuse_it() {
    let (program, ranges) = trained(3);
    let refused = |options: &Options| match compile(&program, &ranges, options) {
        Err(Error::Unsupported { instead, .. }) => instead,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&Options::default()), "compile for suite ufo");
    for (switch, name) in [(Switch::Winograd, "winograd"), (Switch::Reweighting, "reweighting")] {
        let options = Options { disabled: [switch].into(), ..options(8, 6) };
        assert!(refused(&options).contains(name));
    }
}

/// What is left out changes how, not what is computed.
#[test]
fn graphs_without_optimisations_compute_the_same_integers() {
    use Switch::{Fusion, Residual, Sign};
    let rounded = [true, false].map(|projects| {
        let program = residual(5, projects);
        let (_, seen) = ranges(&program, 5);
        (program, seen, 4)
    });
    let (trained, known) = trained(3);
    for (program, ranges, bits) in rounded.into_iter().chain([(trained, known, 6)]) {
        let compiled = |disabled: &[Switch]| {
            let disabled = disabled.iter().copied().collect();
            compile(&program, &ranges, &Options { disabled, ..options(4, bits) }).unwrap()
        };
        let fused = compiled(&[]);
        let outputs = |model: &Model| -> Vec<Vec<i64>> {
            checked(model, 5).into_iter().map(|t| t[model.graph.output].clone()).collect()
        };
        let want = outputs(&fused);
        let conversions = |op: &Op| op.is::<Requantize>() || op.is::<Extend>();
        let alone: [&[Switch]; 4] = [&[Fusion], &[Residual], &[Sign], &[Fusion, Residual, Sign]];
        for disabled in alone {
            let model = compiled(disabled);
            assert_eq!(outputs(&model), want, "{disabled:?}");
            if disabled.len() != 1 || disabled[0] != Sign {
                assert!(count(&model, conversions) > count(&fused, conversions), "{disabled:?}");
            }
            let known = |model: &Model| model.graph.tensors.iter().any(|t| !t.format.signed);
            assert_eq!(known(&model), !disabled.contains(&Sign), "{disabled:?}");
        }
        let sums = |op: &Op| op.is::<Sum>();
        let aligned = compiled(&[Residual]);
        assert!(count(&aligned, sums) > count(&fused, sums));
        for node in aligned.graph.nodes.iter().filter(|node| sums(&node.op)) {
            let main = aligned.graph.input_of(node, 0).format.bits;
            let writer = aligned.graph.nodes.iter().find(|n| n.output == node.inputs[0]).unwrap();
            assert!(aligned.graph.input_of(writer, 0).format.bits < main, "{}", node.name);
        }
        let stages = |op: &Op| op.get().is_some_and(|layer: &Winograd| layer.stage_bits.is_some());
        assert_eq!(count(&fused, stages), 0);
        assert!(count(&compiled(&[Fusion]), stages) > 0);
    }
}
