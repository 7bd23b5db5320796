//! Source graphs in JSON: every operator has the name and the fields that importers write.

use crate::models;
use serde_json::{Value, json};
use tacit_graph::Source;

/// Every operator with its fields.
fn operators() -> Vec<Value> {
    let conv = json!({
        "kernel": [3, 3], "stride": [1, 1], "padding": [1, 1, 1, 1], "dilation": [1, 1],
        "groups": 1, "weight": "w",
    });
    let window = json!({"kernel": [2, 2], "stride": [2, 2], "padding": [0, 0, 0, 0]});
    let with = |base: &Value, more: Value| {
        let mut all = base.clone();
        let fields = all.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        all
    };
    vec![
        with(&conv, json!({"op": "Conv", "bias": null})),
        json!({"op": "Gemm", "weight": "w", "bias": "b"}),
        json!({
            "op": "BatchNormalization", "scale": "s", "bias": "b", "mean": "m",
            "variance": "v", "epsilon": 0.5,
        }),
        with(
            &conv,
            json!({
                "op": "QuantisedConv", "winograd": true, "importance": [1, 2, -4], "offset": 0,
                "scale": "s", "bias": "b",
            }),
        ),
        json!({"op": "Requantize", "bits": 4}),
        json!({"op": "Rescale"}),
        json!({"op": "Relu", "maximum": 6.0, "bits": 5}),
        with(&window, json!({"op": "MaxPool"})),
        with(&window, json!({"op": "AveragePool", "count_include_pad": true})),
        json!({"op": "Add"}),
        json!({"op": "AddConstant", "constant": "c"}),
        json!({"op": "Identity"}),
        json!({"op": "Clip", "minimum": -1.0, "maximum": null}),
        json!({"op": "Combinations", "factors": [[1.0, 0.5], [0.25, -1.0]]}),
        json!({"op": "Concat"}),
        json!({"op": "View", "shape": [2, 2], "start": 1, "strides": [2, 1]}),
        json!({"op": "Pad", "before": [0, 1], "after": [1, 0]}),
        json!({"op": "Multiply"}),
        json!({"op": "Gate"}),
        json!({"op": "Scale", "factor": 0.5}),
        json!({"op": "Table", "function": "Elu", "alpha": 1.0, "beta": 0.0}),
        json!({"op": "Embedding", "weight": "w"}),
        json!({"op": "MatMul"}),
        json!({"op": "Softmax"}),
        json!({"op": "Gelu"}),
        json!({"op": "Smu", "slope": 0.25, "smoothness": 1.0}),
        json!({"op": "ReluSoftmax", "smoothness": 0.5, "epsilon": 0.25}),
        json!({"op": "LayerNorm", "epsilon": 0.5, "scale": "s", "bias": null}),
        json!({"op": "Mask"}),
        json!({"op": "Join", "balanced": true}),
        json!({"op": "Reshape", "shape": [4]}),
    ]
}

/// A graph of that one operator.
fn graph(mut operator: Value) -> Value {
    operator["name"] = json!("n");
    operator["inputs"] = json!(["x"]);
    operator["output"] = json!("y");
    let input = json!({"name": "x", "shape": [4]});
    json!({"name": "one", "input": input, "output": "y", "nodes": [operator]})
}

fn refusal(operator: Value) -> String {
    Source::from_json(&graph(operator).to_string()).unwrap_err().to_string()
}

#[test]
fn operators_are_written_as_they_are_read() {
    for operator in operators() {
        let text = graph(operator.clone());
        let source = Source::from_json(&text.to_string()).unwrap();
        assert_eq!(source.nodes[0].op.kind(), operator["op"]);
        assert_eq!(serde_json::to_value(&source).unwrap(), text);
    }
    for seed in 0..20 {
        let source = models::random(seed).source;
        let text = serde_json::to_string(&source).unwrap();
        assert_eq!(Source::from_json(&text).unwrap(), source);
    }
}

#[test]
fn these_are_all_operators() {
    let named =
        operators().into_iter().map(|operator| format!("`{}`", operator["op"].as_str().unwrap()));
    let all = format!("expected one of {}", named.collect::<Vec<_>>().join(", "));
    let unknown = refusal(json!({"op": "Nothing"}));
    assert!(unknown.contains(&all), "{unknown}");
}

#[test]
fn fields_that_are_missing_or_unknown_are_refused_by_name() {
    for operator in operators() {
        let mut extra = operator.clone();
        extra["extra"] = json!(1);
        let why = refusal(extra);
        assert!(why.contains("unknown field `extra`"), "{why}");
        let optional = ["bias", "maximum", "minimum", "bits", "alpha", "beta", "scale"];
        let fields = operator.as_object().unwrap().iter();
        for (name, _) in fields.filter(|(name, _)| !optional.contains(&name.as_str())) {
            let mut less = operator.clone();
            less.as_object_mut().unwrap().remove(name);
            let why = refusal(less);
            assert!(why.contains(&format!("missing field `{name}`")), "{why}");
        }
    }
}
