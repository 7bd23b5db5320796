//! Tensors that have more bits than activations.

use tacit_graph::ops::Relu;
use tacit_graph::{FloatTensor, Floats, Model, Options, Ranges, Source, lower, verify_model};

/// A product of two dense layers between a clip that only says where to round and another layer.
fn compiled(activation_bits: u32, extra: &str) -> Model {
    let source = format!(
        r#"{{"name":"gated","input":{{"name":"x","shape":[2]}},"output":"y","extra_bits":{{{extra}}},"nodes":[
          {{"name":"a","op":"Gemm","inputs":["x"],"output":"a","weight":"w","bias":null}},
          {{"name":"b","op":"Gemm","inputs":["x"],"output":"b","weight":"w","bias":null}},
          {{"name":"p","op":"Multiply","inputs":["a","b"],"output":"p"}},
          {{"name":"c","op":"Clip","inputs":["p"],"output":"c","minimum":-1e30,"maximum":1e30}},
          {{"name":"y","op":"Gemm","inputs":["c"],"output":"y","weight":"w","bias":null}}]}}"#
    );
    let weight = FloatTensor { shape: vec![2, 2], data: vec![1.0, -0.5, 0.25, 1.0] };
    let floats = Floats::from([("w".into(), weight)]);
    let ranges: Ranges = [("x", 1.0), ("a", 2.0), ("b", 2.0), ("p", 4.0), ("c", 4.0), ("y", 6.0)]
        .map(|(name, side)| (name.to_string(), (-side, side)))
        .into();
    let options = Options { activation_bits, ..Options::default() };
    let model =
        lower(Source::from_json(&source).unwrap(), floats, &ranges.into(), &options).unwrap();
    verify_model(&model).unwrap();
    model
}

/// Bits that the clips of a model have, in order.
fn clips(model: &Model) -> Vec<u32> {
    let clips = model.graph.nodes.iter().filter_map(|node| node.op.get::<Relu>());
    clips.map(|clip| clip.saturate).collect()
}

#[test]
fn nodes_that_need_more_bits_have_them_up_to_twelve() {
    assert_eq!(clips(&compiled(8, "")), [8, 8, 8]);
    assert_eq!(clips(&compiled(8, r#""c":2"#)), [8, 8, 10]);
    // Factors have the bits of their product.
    assert_eq!(clips(&compiled(8, r#""p":2,"c":3"#)), [10, 10, 11]);
    assert_eq!(clips(&compiled(11, r#""p":1,"c":4294967295"#)), [12, 12, 12]);
}

#[test]
fn sources_without_them_read_as_before() {
    let text = r#"{"name":"n","input":{"name":"x","shape":[2]},"output":"y","nodes":[]}"#;
    let source = Source::from_json(text).unwrap();
    assert!(source.extra_bits.is_empty());
    assert!(!serde_json::to_string(&source).unwrap().contains("extra_bits"));
}
