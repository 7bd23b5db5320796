//! A small encoder: its integers near its floats, and within every width.

use crate::exact;
use crate::numbers::Numbers;
use tacit_graph::ops::{Concat, LayerNorm, Linear, MatMul};
use tacit_graph::source::Program;
use tacit_graph::testing::{Sizes, calibrate, encoder, evaluate, smooth_encoder, tokens};
use tacit_graph::{Model, Op, Options, lower, trace};

pub(crate) const SIZES: Sizes =
    Sizes { vocabulary: 23, length: 6, hidden: 16, heads: 2, layers: 2 };

pub(crate) fn compiled(seed: u64) -> (Model, Vec<Vec<f32>>) {
    compiled_from(encoder(SIZES, seed), false)
}

pub(crate) fn compiled_from(program: Program, newton: bool) -> (Model, Vec<Vec<f32>>) {
    let inputs: Vec<Vec<f32>> = (0..24).map(|i| tokens(SIZES, 2 + i % 5, i as u64)).collect();
    let calibration = calibrate(&program, &inputs);
    let options = Options { newton, ..Options::default() };
    let model = lower(program.source, program.floats, &calibration, &options);
    (model.unwrap(), inputs)
}

#[test]
fn integers_are_near_floats() {
    near(&encoder(SIZES, 3), false);
}

#[test]
fn integers_of_smooth_maxima_are_near_floats() {
    near(&smooth_encoder(SIZES, 3), true);
}

fn near(program: &Program, newton: bool) {
    let (model, inputs) = compiled_from(program.clone(), newton);
    for x in &inputs {
        let want = &evaluate(program, x)[&program.source.output];
        let got = trace(&model, &model.graph.quantize_input(x).unwrap()).unwrap();
        let got = model.graph.dequantize_output(&got[model.graph.output]);
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let cosine = product(want, &got) / (product(want, want) * product(&got, &got)).sqrt();
        assert!(cosine > 0.99, "{cosine}: {got:?} for {want:?}");
    }
}

#[test]
fn nothing_leaves_its_width() {
    for (model, inputs) in [compiled(5), compiled_from(smooth_encoder(SIZES, 5), true)] {
        within_widths(&model, &inputs);
    }
}

fn within_widths(model: &Model, inputs: &[Vec<f32>]) {
    for x in inputs {
        let input = model.graph.quantize_input(x).unwrap();
        let ours = trace(model, &input).unwrap();
        assert_eq!(ours, exact::run(model, &input, None));
        exact::run(model, &input, Some(&mut Numbers(7)));
    }
}

#[test]
fn norms_are_folded_and_hidden_products_are_shared() {
    let (model, _) = compiled(5);
    let count =
        |wanted: fn(&Op) -> bool| model.graph.nodes.iter().filter(|n| wanted(&n.op)).count();
    assert_eq!(count(|op| op.is::<LayerNorm>()), 5);
    assert_eq!(count(|op| op.is::<MatMul>()), 5);
    // Queries, keys and values together, three more a layer, and the last norm's factors.
    assert_eq!(count(|op| op.is::<Linear>()), 9);
    assert_eq!(count(|op| op.is::<Concat>()), 4);
    assert_eq!(model.graph.input_rows, [[0, 22], [0, 1]]);
}
