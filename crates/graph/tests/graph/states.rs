//! Tensors that are kept from one input to the next, and the parts of inputs and results.

use tacit_graph::{
    Error, FloatTensor, Floats, Graph, Model, Nonlinear, Options, Part, Ranges, Rounding, Source,
    digest, interpret, interpret_batch, lower, variants, verify_model,
};

/// A running mean: `after = x / 2 + before / 2`, of which the client learns twice.
const MEAN: &str = r#"{"name":"mean","input":{"name":"x","shape":[2]},"output":"y",
  "states":[{"name":"before","shape":[2],"after":"after"}],"nodes":[
  {"name":"half","op":"Gemm","inputs":["x"],"output":"a","weight":"w","bias":null},
  {"name":"kept","op":"Gemm","inputs":["before"],"output":"b","weight":"w","bias":null},
  {"name":"sum","op":"Add","inputs":["a","b"],"output":"after"},
  {"name":"twice","op":"Gemm","inputs":["after"],"output":"y","weight":"v","bias":null}]}"#;

fn floats() -> Floats {
    let matrix =
        |factor: f32| FloatTensor { shape: vec![2, 2], data: vec![factor, 0., 0., factor] };
    Floats::from([("w".into(), matrix(0.5)), ("v".into(), matrix(2.0))])
}

fn ranges() -> Ranges {
    let sides = [("x", 1.0), ("before", 1.0), ("a", 0.5), ("b", 0.5), ("after", 1.0), ("y", 2.0)];
    sides.into_iter().map(|(name, side)| (name.into(), (-side, side))).collect()
}

fn mean(options: &Options) -> Result<Model, Error> {
    lower(Source::from_json(MEAN).unwrap(), floats(), &ranges().into(), options)
}

/// A state of the last two results of a clipped layer, the newest one last; the result is that of
/// all three.
const LAST: &str = r#"{"name":"last","input":{"name":"x","shape":[2]},"output":"y",
  "states":[{"name":"before","shape":[4],"after":"after"}],"nodes":[
  {"name":"half","op":"Gemm","inputs":["x"],"output":"a","weight":"w","bias":null},
  {"name":"clip","op":"Clip","minimum":null,"maximum":null,"inputs":["a"],"output":"new"},
  {"name":"join","op":"Concat","inputs":["before","new"],"output":"all"},
  {"name":"view","op":"View","shape":[4],"start":2,"strides":[1],"inputs":["all"],"output":"after"},
  {"name":"sum","op":"Gemm","inputs":["all"],"output":"y","weight":"s","bias":null}]}"#;

#[test]
fn what_a_state_only_remembers_is_neither_rescaled_nor_clipped() {
    let sum = FloatTensor { shape: vec![1, 6], data: vec![1.0; 6] };
    let floats = floats().into_iter().chain([("s".into(), sum)]).collect();
    // Further below zero than above: the state has the range of the clip.
    let near = ["a", "new", "before", "all", "after"].map(|name| (name, (-0.5, 0.25)));
    let ranges = near.into_iter().chain([("x", (-1.0, 0.5)), ("y", (-3.0, 1.5))]);
    let ranges: Ranges = ranges.map(|(name, range)| (name.into(), range)).collect();
    let options = Options { rounding: Rounding::Exact, ..Options::default() };
    let model = lower(Source::from_json(LAST).unwrap(), floats, &ranges.into(), &options).unwrap();
    let [state] = &model.graph.states[..] else { panic!("one state") };
    let writer = model.graph.nodes.iter().find(|node| node.output == state.after).unwrap();
    assert_eq!(writer.op.kind(), "view");
    let values = [[-1.0, 0.5], [0.25, -0.5], [0.0, -0.75], [0.5, 0.125]];
    let inputs: Vec<Vec<i64>> =
        values.iter().map(|x| model.graph.quantize_input(x).unwrap()).collect();
    let outputs = interpret_batch(&model, &inputs).unwrap();
    for (place, output) in outputs.iter().enumerate() {
        let last = &values[place.saturating_sub(2)..=place];
        let want: f32 = last.iter().flatten().sum::<f32>() / 2.0;
        let got = model.graph.dequantize_output(output);
        assert!((got[0] - f64::from(want)).abs() < 0.04, "{got:?} for {want} at {place}");
    }
}

#[test]
fn results_follow_the_float_recurrence() {
    let model = mean(&Options::default()).unwrap();
    let real: Vec<Vec<f32>> =
        (0..8).map(|i: i32| vec![(i as f32 * 0.7).sin(), (i as f32).cos()]).collect();
    let inputs: Vec<Vec<i64>> =
        real.iter().map(|x| model.graph.quantize_input(x).unwrap()).collect();
    let outputs = interpret_batch(&model, &inputs).unwrap();
    let mut state = [0.0f64; 2];
    for (x, output) in real.iter().zip(&outputs) {
        let got = model.graph.dequantize_output(output);
        for place in 0..2 {
            state[place] = (state[place] + f64::from(x[place])) / 2.0;
            assert!((got[place] - 2.0 * state[place]).abs() < 0.06, "{got:?} for {state:?}");
        }
    }
    // The first result is that of zeros before it, and so is that of a single input.
    assert_eq!(interpret(&model, &inputs[0]).unwrap(), outputs[0]);
    assert_ne!(interpret(&model, &inputs[7]).unwrap(), outputs[7]);
}

#[test]
fn a_state_that_the_next_result_shows_rounds_exactly() {
    let rounding = |shown: &str| {
        let source = format!(
            r#"{{"name":"last","input":{{"name":"x","shape":[2]}},"output":"y",
            "states":[{{"name":"before","shape":[2],"after":"a"}}],"nodes":[
            {{"name":"half","op":"Gemm","inputs":["x"],"output":"a","weight":"w","bias":null}},
            {shown}]}}"#
        );
        let source = Source::from_json(&source).unwrap();
        let model = lower(source, floats(), &ranges().into(), &Options::default()).unwrap();
        let half = model.graph.nodes.iter().find(|node| node.name == "half").unwrap();
        half.op.accumulator().unwrap().rounding
    };
    let plain = r#"{"name":"show","op":"Relu","inputs":["before"],"output":"y","maximum":null}"#;
    assert_eq!(rounding(plain), Rounding::Exact);
    // A product between them hides how the last places were rounded.
    let product =
        r#"{"name":"show","op":"Gemm","inputs":["before"],"output":"y","weight":"v","bias":null}"#;
    assert_eq!(rounding(product), Rounding::Stochastic);
}

#[test]
fn all_choices_of_widths_keep_the_state() {
    let model = mean(&Options::default()).unwrap();
    for graph in variants(&model) {
        let [state] = &graph.states[..] else { panic!("one state") };
        let bits = [state.before, state.after].map(|tensor| graph.tensors[tensor].format.bits);
        assert_eq!(bits[0], bits[1]);
        assert_eq!(digest(&graph), digest(&model.graph));
    }
    let mut model = model;
    model.graph.states[0].range = [-1, 1];
    let error = verify_model(&model).unwrap_err();
    assert!(error.to_string().contains("leaves its range"), "{error}");
}

#[test]
fn suites_without_states_refuse_them() {
    let circuits = Options { nonlinear: Nonlinear::Gc, ..Options::default() };
    for options in [
        Options { exact: true, ..Options::default() },
        Options { ot_products: true, ..Options::default() },
        circuits,
    ] {
        let error = mean(&options).unwrap_err();
        assert!(error.to_string().contains("compile for suite auto"), "{error}");
    }
}

#[test]
fn a_state_without_a_next_value_is_refused() {
    for (from, to) in [
        ("\"after\":\"after\"", "\"after\":\"gone\""),
        ("\"before\",\"shape\":[2]", "\"before\",\"shape\":[1]"),
    ] {
        let text = MEAN.replacen(from, to, 1);
        assert_ne!(text, MEAN);
        let (source, floats) = (Source::from_json(&text).unwrap(), floats());
        let error = lower(source, floats, &ranges().into(), &Options::default()).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
    }
}

/// The mean with two inputs of one value each, the second a hundred times larger.
fn in_parts() -> Model {
    let mut source = Source::from_json(MEAN).unwrap();
    let shape = vec![1, 1, 1, 1];
    let part =
        |name: &str, unit| Part { name: name.into(), shape: shape.clone(), unit, units: vec![] };
    source.inputs = vec![part("small", 1.0), part("large", 100.0)];
    source.outputs = vec![part("twice small", 1.0), part("twice large", 100.0)];
    lower(source, floats(), &ranges().into(), &Options::default()).unwrap()
}

#[test]
fn parts_have_units_of_their_own() {
    let (model, plain) = (in_parts(), mean(&Options::default()).unwrap());
    let input = model.graph.quantize_input(&[0.5, 50.0]).unwrap();
    assert_eq!(input, plain.graph.quantize_input(&[0.5, 0.5]).unwrap());
    let output = interpret(&model, &input).unwrap();
    let got = model.graph.dequantize_output(&output);
    assert!((got[0] - 0.5).abs() < 0.02 && (got[1] - 50.0).abs() < 2.0, "{got:?}");
    assert_eq!(model.graph.input_shape(), [2]);
    let text = model.graph.public_json();
    assert_eq!(Graph::from_json(&text).unwrap().inputs, model.graph.inputs);
    assert_ne!(digest(&model.graph), digest(&plain.graph));
}

/// Two values of one input.
fn single(units: &[f64]) -> Part {
    Part { name: "x".into(), shape: vec![1, 2, 1, 1], unit: 1.0, units: units.to_vec() }
}

#[test]
fn values_of_a_part_have_units_of_their_own() {
    let mut model = mean(&Options::default()).unwrap();
    let plain = model.graph.quantize_input(&[0.5, 0.25]).unwrap();
    model.graph.inputs = vec![single(&[8.0, 0.125])];
    verify_model(&model).unwrap();
    assert_eq!(model.graph.quantize_input(&[4.0, 0.03125]).unwrap(), plain);
    let text = model.graph.public_json();
    assert_eq!(Graph::from_json(&text).unwrap().inputs, model.graph.inputs);
}

#[test]
fn one_part_gives_its_shape() {
    let mut model = mean(&Options::default()).unwrap();
    model.graph.inputs = vec![single(&[])];
    assert_eq!(model.graph.input_shape(), [1, 2, 1, 1]);
    assert_eq!(model.graph.output_shape(), [2]);
    verify_model(&model).unwrap();
}

#[test]
fn parts_that_cannot_be_are_refused() {
    let changes: [&dyn Fn(&mut Part); 8] = [
        &|part| part.units = vec![0.0],
        &|part| part.units = vec![1.0; 2],
        &|part| part.unit = 0.0,
        &|part| part.unit = f64::NAN,
        &|part| part.shape = vec![2],
        &|part| part.shape = vec![usize::MAX, usize::MAX],
        &|part| part.shape = vec![1; 17],
        &|part| part.name = "large".into(),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut model = in_parts();
        change(&mut model.graph.inputs[0]);
        let error = verify_model(&model).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{index}: {error}");
    }
}
