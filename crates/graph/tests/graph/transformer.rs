//! A small encoder: its integers near its floats, and within every width.

use crate::exact;
use crate::numbers::Numbers;
use tacit_graph::testing::{Sizes, calibrate, encoder, evaluate, tokens};
use tacit_graph::{Model, Op, Options, lower, trace};

const SIZES: Sizes = Sizes { vocabulary: 23, length: 6, hidden: 16, heads: 2, layers: 2 };

fn compiled(seed: u64) -> (Model, Vec<Vec<f32>>) {
    let program = encoder(SIZES, seed);
    let inputs: Vec<Vec<f32>> = (0..24).map(|i| tokens(SIZES, 2 + i % 5, i as u64)).collect();
    let calibration = calibrate(&program, &inputs);
    let model = lower(program.source, program.floats, &calibration, &Options::default());
    (model.unwrap(), inputs)
}

#[test]
fn integers_are_near_floats() {
    let program = encoder(SIZES, 3);
    let (model, inputs) = compiled(3);
    for x in &inputs {
        let want = &evaluate(&program, x)[&program.source.output];
        let got = trace(&model, &model.graph.quantize_input(x).unwrap()).unwrap();
        let got = model.graph.dequantize_output(&got[model.graph.output]);
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let cosine = product(want, &got) / (product(want, want) * product(&got, &got)).sqrt();
        assert!(cosine > 0.99, "{cosine}: {got:?} for {want:?}");
    }
}

#[test]
fn nothing_leaves_its_width() {
    let (model, inputs) = compiled(5);
    for x in &inputs {
        let input = model.graph.quantize_input(x).unwrap();
        let ours = trace(&model, &input).unwrap();
        assert_eq!(ours, exact::run(&model, &input, None));
        exact::run(&model, &input, Some(&mut Numbers(7)));
    }
}

#[test]
fn norms_are_folded_and_hidden_products_are_shared() {
    let (model, _) = compiled(5);
    let count =
        |wanted: fn(&Op) -> bool| model.graph.nodes.iter().filter(|n| wanted(&n.op)).count();
    assert_eq!(count(|op| matches!(op, Op::LayerNorm { .. })), 5);
    assert_eq!(count(|op| matches!(op, Op::MatMul(_))), 5);
    // Queries, keys and values together, three more a layer, and the last norm's factors.
    assert_eq!(count(|op| matches!(op, Op::Linear(_))), 9);
    assert_eq!(count(|op| matches!(op, Op::Concat)), 4);
    assert_eq!(model.graph.input_rows, [[0, 22], [0, 1]]);
}
