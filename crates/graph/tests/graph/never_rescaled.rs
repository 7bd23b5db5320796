//! Graphs of integers that are never rescaled.

use std::collections::BTreeMap;
use tacit_graph::ops::{Linear, Relu};

use tacit_graph::{
    Calibration, Error, FloatTensor, Floats, Graph, Model, Op, Options, Source, Unscaled,
    interpret, lower, verify, verify_model,
};

/// fc 3-2, square, fc 2-1, whose outputs calibration saw up to `seen`.
fn lowered(options: &Options, seen: Option<f64>) -> Result<Model, Error> {
    let source = r#"{"name":"two","input":{"name":"x","shape":[3]},"output":"y","nodes":[
        {"name":"first","op":"Gemm","inputs":["x"],"output":"a","weight":"w1","bias":"b1"},
        {"name":"square","op":"Multiply","inputs":["a","a"],"output":"b"},
        {"name":"last","op":"Gemm","inputs":["b"],"output":"y","weight":"w2"}]}"#;
    let tensor =
        |shape: &[usize], data: &[f32]| FloatTensor { shape: shape.to_vec(), data: data.to_vec() };
    let floats = Floats::from([
        ("w1".to_owned(), tensor(&[2, 3], &[1.0, -0.5, 0.25, 0.0, 1.0, 1.0])),
        ("b1".to_owned(), tensor(&[2], &[0.52, -1.0])),
        ("w2".to_owned(), tensor(&[1, 2], &[1.0, -1.0])),
    ]);
    let mut ranges = BTreeMap::from([("x".to_owned(), (0.0, 1.0))]);
    ranges.extend(seen.map(|high| ("y".to_owned(), (-high, high))));
    lower(Source::from_json(source)?, floats, &Calibration::from(ranges), options)
}

fn options() -> Options {
    Options {
        suite: "lola".into(),
        exact: true,
        activation_bits: 3,
        weight_bits: 4,
        ..Options::default()
    }
}

fn bits(model: &Model) -> u32 {
    model.graph.exact.map_or(0, |exact| exact.output_bits)
}

#[test]
fn integers_are_those_of_the_formula() {
    let model = lowered(&options(), None).unwrap();
    // x = 7, 0, 7 stands for 1, 0, 1; weights are sevenths, biases forty-ninths.
    let first = [7 * 7 + 2 * 7 + 25, 7 * 7 - 49];
    let want = 7 * first[0] * first[0] - 7 * first[1] * first[1];
    assert_eq!(interpret(&model, &[7, 0, 7]).unwrap(), [want]);
    let scale = model.graph.tensors[model.graph.output].format.scale;
    assert!((want as f64 * scale - 1.77f64.powi(2)).abs() < 0.2);
}

#[test]
fn outputs_are_as_wide_as_the_worst_case_or_as_calibration_and_margin() {
    let worst = lowered(&options(), None).unwrap();
    let seen = lowered(&options(), Some(0.1)).unwrap();
    let wider = lowered(&Options { margin_bits: 4, ..options() }, Some(0.1)).unwrap();
    assert_eq!((bits(&wider), bits(&seen) + 2 <= bits(&worst)), (bits(&seen) + 2, true));
    let (small, input) = ([1, 0, 1], [7, 0, 7]);
    assert_eq!(interpret(&wider, &small).unwrap(), interpret(&worst, &small).unwrap());
    let narrow = lowered(&Options { margin_bits: 0, ..options() }, Some(0.5)).unwrap();
    let refused = interpret(&narrow, &input).unwrap_err().to_string();
    assert!(refused.contains("leaves"), "{refused}");
    let wide = Options { weight_bits: 12, activation_bits: 12, ..options() };
    assert!(lowered(&wide, None).is_ok());
}

#[test]
fn layers_have_widths_of_their_own() {
    let model = lowered(&Options { layer_bits: vec![3, 5], ..options() }, None).unwrap();
    let widths: Vec<u32> = (model.graph.nodes.iter())
        .filter_map(|node| node.op.get::<Linear>().map(|linear| linear.weight_bits))
        .collect();
    assert_eq!(widths, [3, 5]);
    assert!(lowered(&Options { layer_bits: vec![13], ..options() }, None).is_err());
}

#[test]
fn what_rescales_or_is_too_wide_is_no_exact_graph() {
    let model = lowered(&options(), None).unwrap();
    let refused = |change: &dyn Fn(&mut Graph)| {
        let mut graph = model.graph.clone();
        change(&mut graph);
        assert!(verify(&graph).is_err());
    };
    refused(&|graph| graph.exact = Some(Unscaled { output_bits: 63, packing: None }));
    refused(&|graph| graph.tensors[1].format.bits = 59);
    refused(&|graph| {
        if let Some(linear) = graph.nodes[0].op.get_mut::<Linear>() {
            linear.shift = 1;
        }
    });
    refused(&|graph| graph.nodes[1].op = Op::from(Relu { saturate: 3, low: 0 }));
    assert!(Graph::from_json(&model.graph.public_json()).is_ok());
    let mut wide = model.clone();
    for weights in wide.weights.values_mut() {
        weights.bias.fill(i64::MAX);
    }
    let refused = verify_model(&wide).unwrap_err().to_string();
    assert!(refused.contains("126 bits"), "{refused}");
}
