//! Graphs from an untrusted server: whatever parses is accepted or refused,
//! and nothing panics.

use crate::float;
use crate::lowering::{compile, some_models};
use crate::models;
use crate::numbers::Numbers;
use crate::winograd;
use serde_json::{Value, json};
use tacit_graph::testing::{Sizes, calibrate, smooth_encoder, tokens};
use tacit_graph::{Error, Graph, Model, Options, Source, digest, lower, verify, verify_model};

/// Every leaf of a JSON value.
fn leaves(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Array(items) => items.iter_mut().flat_map(leaves).collect(),
        Value::Object(fields) => fields.values_mut().flat_map(leaves).collect(),
        leaf => vec![leaf],
    }
}

#[test]
fn changed_leaves_never_panic() {
    let strange = [
        json!(0),
        json!(1),
        json!(-1),
        json!(7),
        json!(63),
        json!(64),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1u64 << 31),
        json!(1e300),
        json!(null),
        json!("\u{1b}[2J"),
    ];
    let mut numbers = Numbers(1);
    for model in some_models(5).into_iter().chain([winograd::small()]) {
        let clean = serde_json::to_value(&model.graph).unwrap();
        let count = leaves(&mut clean.clone()).len();
        for leaf in 0..count {
            for value in &strange {
                let mut changed = clean.clone();
                *leaves(&mut changed)[leaf] = value.clone();
                let second = numbers.below(4 * count);
                if let Some(other) = leaves(&mut changed).get_mut(second) {
                    **other = value.clone();
                }
                let Ok(graph) = Graph::from_json(&changed.to_string()) else { continue };
                verify(&graph).unwrap();
                assert!(
                    graph.quantize_input(&[0.0]).is_ok() || graph.tensors[graph.input].len() > 1
                );
            }
        }
    }
}

#[test]
fn invariants_are_refused_one_by_one() {
    type Break = (&'static str, fn(&mut Value));
    let breaks: [Break; 23] = [
        ("version", |g| g["version"] = json!(2)),
        ("control characters", |g| g["name"] = json!("\u{1b}[2J")),
        ("long name", |g| g["tensors"][0]["name"] = json!("n".repeat(257))),
        ("shared name", |g| g["tensors"][1]["name"] = g["tensors"][0]["name"].clone()),
        ("input index", |g| g["input"] = json!(1u64 << 40)),
        ("output index", |g| g["output"] = json!(1u64 << 40)),
        ("output is the input", |g| g["output"] = json!(0)),
        ("reads the future", |g| g["nodes"][0]["inputs"] = json!([1])),
        ("too many inputs", |g| g["nodes"][0]["inputs"] = json!([0, 0])),
        ("written twice", |g| g["nodes"][1]["output"] = json!(1)),
        ("no nodes", |g| g["nodes"] = json!([])),
        ("width 0", |g| g["tensors"][0]["format"]["bits"] = json!(0)),
        ("width 64", |g| g["tensors"][0]["format"]["bits"] = json!(64)),
        ("negative scale", |g| g["tensors"][0]["format"]["scale"] = json!(-1.0)),
        ("wrong sign", |g| g["tensors"][0]["format"]["signed"] = json!(true)),
        ("empty shape", |g| g["tensors"][0]["shape"] = json!([])),
        ("huge shape", |g| g["tensors"][0]["shape"] = json!([1u64 << 32, 1u64 << 32])),
        ("input range", |g| g["input_range"] = json!([0, 1i64 << 62])),
        ("labels", |g| g["labels"] = json!(["one"])),
        ("stride", |g| g["nodes"][0]["op"]["linear"]["conv"]["stride"] = json!([0, 1])),
        ("shift", |g| g["nodes"][0]["op"]["linear"]["shift"] = json!(60)),
        ("opened rounding", |g| {
            g["nodes"][2]["op"]["linear"]["rounding"] = json!("stochastic");
        }),
        ("saturate", |g| g["nodes"][1]["op"]["relu"]["saturate"] = json!(17)),
    ];
    let mut builder = models::Builder::new(7, &[3]);
    builder.gemm(2);
    builder.relu();
    builder.gemm(2);
    let program = builder.finish();
    let (_, ranges) = float::calibrate(&program, 1, 0.0);
    let clean = compile(&program, &ranges, &Options::default()).unwrap().graph;
    let clean = serde_json::to_value(clean).unwrap();
    assert!(Graph::from_json(&clean.to_string()).is_ok());
    for (name, apply) in breaks {
        let mut broken = clean.clone();
        apply(&mut broken);
        assert_ne!(broken, clean, "{name}");
        let error = Graph::from_json(&broken.to_string()).unwrap_err();
        assert!(matches!(&error, Error::Invalid { pass, .. } if pass == "load"), "{name}: {error}");
        assert!(!error.to_string().contains('\u{1b}'));
    }
}

#[test]
fn the_digest_covers_the_public_part_only() {
    let model = some_models(1).remove(0);
    let graph = &model.graph;
    let public = Graph::from_json(&graph.public_json()).unwrap();
    for (index, (ours, theirs)) in graph.tensors.iter().zip(&public.tensors).enumerate() {
        let shown = index == graph.input || index == graph.output;
        assert_eq!(theirs.format.scale, if shown { ours.format.scale } else { 1.0 });
    }
    let mut changed = graph.clone();
    let inner = (0..graph.tensors.len()).find(|i| *i != graph.input && *i != graph.output);
    changed.tensors[inner.unwrap()].format.scale *= 2.0;
    assert_eq!(digest(&changed), digest(graph));
    changed.tensors[graph.output].format.scale *= 2.0;
    assert_ne!(digest(&changed), digest(graph));
}

#[test]
fn weights_that_do_not_fit_the_graph_are_refused() {
    let model = some_models(1).remove(0);
    let node = *model.weights.keys().next().unwrap();
    let breaks: [&dyn Fn(&mut Model); 5] = [
        &|m| drop(m.weights.remove(&node)),
        &|m| drop(m.weights.insert(1 << 20, m.weights[&node].clone())),
        &|m| m.weights.get_mut(&node).unwrap().weight.push(0),
        &|m| m.weights.get_mut(&node).unwrap().bias.push(0),
        &|m| m.weights.get_mut(&node).unwrap().bias[0] = i64::MAX,
    ];
    for (index, apply) in breaks.iter().enumerate() {
        let mut broken = model.clone();
        apply(&mut broken);
        assert!(matches!(verify_model(&broken), Err(Error::Invalid { .. })), "break {index}");
    }
}

#[test]
fn parse_errors_are_printable() {
    let error = Graph::from_json("{\"\u{1b}[2J\": 1}").unwrap_err();
    assert!(matches!(&error, Error::Corrupt(why) if !why.contains('\u{1b}')));
    let deep = "[".repeat(100_000);
    assert!(matches!(Graph::from_json(&deep), Err(Error::Corrupt(_))));
}

#[test]
fn source_json_is_strict() {
    let node = |extra: &str| {
        format!(
            r#"{{"name":"m","input":{{"name":"x","shape":[4]}},"output":"y","nodes":
            [{{"name":"r","inputs":["x"],"output":"y","op":"Relu"{extra}}}]}}"#
        )
    };
    let plain = Source::from_json(&node("")).unwrap();
    assert_eq!(Source::from_json(&serde_json::to_string(&plain).unwrap()).unwrap(), plain);
    assert_eq!(Source::from_json(&node(r#","maximum":null"#)).unwrap(), plain);
    assert!(Source::from_json(&node(r#","alpha":1"#)).is_err());
    assert!(Source::from_json(&node("").replace("Relu", "Hardmax")).is_err());
    for op in ["Add", "Identity"] {
        assert!(Source::from_json(&node("").replace("Relu", op)).is_ok());
        assert!(Source::from_json(&node(r#","alpha":1"#).replace("Relu", op)).is_err());
    }
}

#[test]
fn iterations_from_outside_are_tried_before_they_are_believed() {
    let sizes = Sizes { vocabulary: 7, length: 4, hidden: 8, heads: 2, layers: 1 };
    let program = smooth_encoder(sizes, 1);
    let inputs: Vec<Vec<f32>> = (0..6).map(|i| tokens(sizes, 1 + i % 4, i as u64)).collect();
    let calibration = calibrate(&program, &inputs);
    let options = Options { newton: true, ..Options::default() };
    let model = lower(program.source, program.floats, &calibration, &options).unwrap();
    let clean: Value = serde_json::from_str(&model.graph.public_json()).unwrap();
    assert!(Graph::from_json(&clean.to_string()).is_ok());
    let changes = [
        ("newton", "iterations", json!(0)),
        ("newton", "iterations", json!(u32::MAX)),
        ("newton", "ratio", json!(4)),
        ("newton", "precision", json!(u32::MAX)),
        ("newton", "precision", json!(3)),
        ("division", "ratio", json!(0)),
        ("smooth", "bits", json!(u32::MAX)),
        ("smooth", "bits", json!(0)),
        ("smooth", "fraction", json!(u32::MAX)),
        ("smooth", "slope", json!(1.0)),
        ("smooth", "smoothness", json!(-1.0)),
        ("smooth", "smoothness", json!(1e-30)),
        ("smooth", "scale", json!(0.0)),
    ];
    for op in ["smu", "relu-softmax", "layer-norm"] {
        for (part, field, value) in &changes {
            let mut broken = clean.clone();
            let nodes = broken["nodes"].as_array_mut().unwrap();
            let node = nodes.iter_mut().find(|node| !node["op"][op].is_null()).unwrap();
            if node["op"][op][part][field].is_null() {
                continue;
            }
            node["op"][op][part][field] = value.clone();
            let error = Graph::from_json(&broken.to_string());
            assert!(error.is_err(), "{op} {part} {field} {value}");
        }
    }
}
