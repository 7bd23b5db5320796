//! An operator from outside the crate: registered, read, verified, interpreted and saved.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Once;
use tacit_graph::ops::{
    Known, Operator, Range, Registration, Site, ensure, register, same_shape, same_width,
};
use tacit_graph::source::{self, LinearOperator, Lowering, SourceOperator, SourceRegistration};
use tacit_graph::{
    Check, Conv, Error, FloatTensor, Floats, Graph, Model, Op, Options, Ranges, Source, digest,
    interpret, interpret_batch, load, lower, save, verify_model,
};

/// `y = by - x`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mirror {
    by: i64,
}

static MIRROR: Registration = Registration::of::<Mirror>("mirror");

impl Operator for Mirror {
    fn kind(&self) -> &'static str {
        "mirror"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        same_shape(site.input(), site.output)?;
        same_width(site.input(), site.output)?;
        ensure(self.by.unsigned_abs() < 1 << 20, || format!("mirrors by {}", self.by))?;
        Ok(true)
    }

    fn interpret(&self, _site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        Ok(inputs[0].iter().map(|x| self.by.wrapping_sub(*x)).collect())
    }

    fn output(&self, _: &Site<'_>, inputs: &[Known]) -> Known {
        let by = self.by.into();
        inputs[0].times(-1).plus(Range::new(by, by)).into()
    }

    fn reads(&self, _signed: bool, range: Range) -> u32 {
        range.width()
    }

    fn keeps_width(&self) -> bool {
        true
    }
}

/// [`Mirror`] of real numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MirrorAt {
    by: f64,
}

static MIRROR_AT: SourceRegistration = SourceRegistration::of::<MirrorAt>("MirrorAt");

impl SourceOperator for MirrorAt {
    fn kind(&self) -> &'static str {
        "MirrorAt"
    }

    fn shape(&self, inputs: &[&[usize]], _floats: &Floats) -> Check<Vec<usize>> {
        let [input] = inputs else { return Err(format!("mirrors {} tensors", inputs.len())) };
        let finite = self.by.is_finite();
        finite.then(|| input.to_vec()).ok_or("mirrors at no number".into())
    }

    fn ratio(&self) -> Option<f64> {
        Some(1.0)
    }

    fn lower(&self, step: &mut dyn Lowering) -> tacit_graph::Result<()> {
        step.clip(0, 8)?;
        let scale = step.input(0)?.format.scale;
        let by = (self.by / scale).round();
        if by.abs() >= f64::from(1 << 20) {
            return Err(step.refuse("mirrors far away", "calibrate with real inputs"));
        }
        step.write(Box::new(Mirror { by: by as i64 }), scale, true)
    }
}

/// A Gemm without a constant, from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Dense {
    weight: String,
    bias: Option<String>,
}

static DENSE: SourceRegistration = SourceRegistration::of::<Dense>("Dense");

impl SourceOperator for Dense {
    fn kind(&self) -> &'static str {
        "Dense"
    }

    fn floats(&self) -> Vec<&str> {
        [Some(&self.weight), self.bias.as_ref()].into_iter().flatten().map(String::as_str).collect()
    }

    fn shape(&self, inputs: &[&[usize]], floats: &Floats) -> Check<Vec<usize>> {
        let [input] = inputs else { return Err(format!("multiplies {} tensors", inputs.len())) };
        Ok(vec![self.geometry(input, floats)?.out_channels])
    }

    fn linear(&self) -> Option<&dyn LinearOperator> {
        Some(self)
    }

    fn linear_mut(&mut self) -> Option<&mut dyn LinearOperator> {
        Some(self)
    }

    fn lower(&self, step: &mut dyn Lowering) -> tacit_graph::Result<()> {
        step.linear(0)
    }
}

impl LinearOperator for Dense {
    fn weight(&self) -> &str {
        &self.weight
    }

    fn bias(&self) -> Option<&str> {
        self.bias.as_deref()
    }

    fn set_weights(&mut self, weight: String, bias: String) {
        (self.weight, self.bias) = (weight, Some(bias));
    }

    fn geometry(&self, input: &[usize], floats: &Floats) -> Check<Conv> {
        match (input, &floats[&self.weight].shape[..]) {
            ([length], [outputs, inputs]) if length == inputs => {
                Ok(Conv::fully_connected(*inputs, *outputs))
            }
            (input, weight) => Err(format!("multiplies {weight:?} by {input:?}")),
        }
    }
}

fn registered() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        register(&MIRROR).unwrap();
        source::register(&MIRROR_AT).unwrap();
        source::register(&DENSE).unwrap();
    });
}

fn source(op: &str, by: f64) -> String {
    json!({
        "name": "test", "input": {"name": "x", "shape": [3]}, "output": "y",
        "nodes": [
            {"name": "r", "op": "Relu", "inputs": ["x"], "output": "z", "maximum": null},
            {"name": "m", "op": op, "inputs": ["z"], "output": "y", "by": by},
        ],
    })
    .to_string()
}

#[test]
fn a_registered_source_operator_becomes_an_integer_operator() {
    registered();
    let text = source("MirrorAt", 0.5);
    let source = Source::from_json(&text).unwrap();
    let written: Value = serde_json::to_value(&source).unwrap();
    assert_eq!(Source::from_json(&written.to_string()).unwrap(), source);
    assert_eq!(written["nodes"][1], serde_json::from_str::<Value>(&text).unwrap()["nodes"][1]);
    let side = |name: &str| (name.to_owned(), (-1.0, 1.0));
    let ranges = ["x", "z", "y"].map(side).into_iter().collect::<Ranges>();
    let model = lower(source, Floats::new(), &ranges.into(), &Options::default()).unwrap();
    for (x, y) in evaluate(&model) {
        assert!((0.5 - x.max(0.0) - y).abs() < 0.02, "{x} {y}");
    }
    let kinds: Vec<_> = model.graph.nodes.iter().map(|node| node.op.kind()).collect();
    assert_eq!(kinds, ["relu", "mirror"]);
}

#[test]
fn a_registered_source_operator_has_its_input_clipped() {
    registered();
    let mut doubled: Value = serde_json::from_str(&source("MirrorAt", 0.5)).unwrap();
    doubled["nodes"][0] = json!({"name": "d", "op": "Add", "inputs": ["x", "x"], "output": "z"});
    let doubled = Source::from_json(&doubled.to_string()).unwrap();
    let range = |(name, side): (&str, f64)| (name.to_owned(), (-side, side));
    let ranges = [("x", 1.0), ("z", 2.0), ("y", 2.5)].map(range).into_iter().collect::<Ranges>();
    let model = lower(doubled, Floats::new(), &ranges.into(), &Options::default()).unwrap();
    for (x, y) in evaluate(&model) {
        assert!((0.5 - 2.0 * x - y).abs() < 0.02, "{x} {y}");
    }
    let kinds: Vec<_> = model.graph.nodes.iter().map(|node| node.op.kind()).collect();
    assert_eq!(kinds, ["sum", "relu", "mirror"]);
}

/// Constants are folded into it, a sum is part of it, and its weights are rounded.
#[test]
fn a_registered_linear_layer_is_compiled_like_one_of_this_crate() {
    registered();
    let source = |op: &str| {
        let layer = |name: &str, input: &str, output: &str| json!({"name": name, "op": op, "inputs": [input], "output": output, "weight": "w"});
        json!({
            "name": "test", "input": {"name": "x", "shape": [3]}, "output": "y",
            "nodes": [
                layer("first", "x", "a"),
                {"name": "c", "op": "AddConstant", "inputs": ["a"], "output": "b", "constant": "c"},
                {"name": "r", "op": "Relu", "inputs": ["b"], "output": "d", "maximum": null},
                layer("last", "d", "e"),
                {"name": "s", "op": "Add", "inputs": ["e", "d"], "output": "y"},
            ],
        })
    };
    let weight = [0.5, -1.0, 0.25, 0.75, 0.0, 1.0, -0.5, 0.5, 0.125].to_vec();
    let floats = Floats::from([
        ("w".to_owned(), FloatTensor { shape: vec![3, 3], data: weight }),
        ("c".to_owned(), FloatTensor::vector(vec![0.25, 0.0, -0.5])),
    ]);
    let side = |name: &str| (name.to_owned(), (-2.0, 2.0));
    let ranges = ["x", "b", "d", "y"].map(side).into_iter().collect::<Ranges>();
    let transfers = Options { suite: "ufo".into(), ot_products: true, ..Options::default() };
    for options in [Options::default(), transfers] {
        let compiled = |op| {
            let source = Source::from_json(&source(op).to_string()).unwrap();
            lower(source, floats.clone(), &ranges.clone().into(), &options).unwrap()
        };
        assert_eq!(compiled("Dense"), compiled("Gemm"));
    }
}

/// Some inputs and the model's real outputs.
fn evaluate(model: &Model) -> Vec<(f64, f64)> {
    let inputs = [-0.25f32, 0.125, 1.0];
    let input = model.graph.quantize_input(&inputs).unwrap();
    let output = interpret(model, &input).unwrap();
    let output = model.graph.dequantize_output(&output);
    inputs.into_iter().map(f64::from).zip(output).collect()
}

#[test]
fn source_operators_are_refused_by_name_and_by_their_own_rules() {
    registered();
    let unknown = Source::from_json(&source("Mirrors", 0.5)).unwrap_err().to_string();
    assert!(unknown.contains("unknown variant `Mirrors`"), "{unknown}");
    let extra = source("MirrorAt", 0.5).replace("\"by\"", "\"at\"");
    let extra = Source::from_json(&extra).unwrap_err().to_string();
    assert!(extra.contains("unknown field `at`"), "{extra}");
    let far = Source::from_json(&source("MirrorAt", 1e9)).unwrap();
    let ranges = Ranges::from(["x", "z"].map(|name| (name.to_owned(), (-1.0, 1.0))));
    let error = lower(far, Floats::new(), &ranges.into(), &Options::default()).unwrap_err();
    assert!(matches!(&error, Error::Unsupported { node, .. } if node == "m"), "{error}");
    static RELU: SourceRegistration = SourceRegistration::of::<MirrorAt>("Relu");
    static AGAIN: SourceRegistration = SourceRegistration::of::<MirrorAt>("MirrorAt");
    for other in [&RELU, &AGAIN] {
        assert!(matches!(source::register(other), Err(Error::Misuse(_))), "{}", other.name);
    }
}

/// A graph of one node: the input `[3]` in -7..=7, shares of `bits` bits.
fn graph(op: Value, bits: u32) -> Value {
    let tensor = |name: &str| {
        let format = json!({"bits": bits, "scale": 1.0, "signed": true});
        json!({"name": name, "shape": [3], "format": format})
    };
    json!({
        "version": 1, "name": "test", "suite": "auto", "activation_bits": 4,
        "input_range": [-7, 7], "tensors": [tensor("x"), tensor("y")],
        "nodes": [{"name": "n", "op": op, "inputs": [0], "output": 1}],
        "input": 0, "output": 1, "labels": [],
    })
}

fn read(op: Value, bits: u32) -> tacit_graph::Result<Model> {
    let graph = Graph::from_json(&graph(op, bits).to_string())?;
    Ok(Model { graph, weights: BTreeMap::new() })
}

#[test]
fn a_registered_operator_is_read_verified_and_interpreted() {
    registered();
    let model = read(json!({"mirror": {"by": 100}}), 9).unwrap();
    verify_model(&model).unwrap();
    assert_eq!(interpret(&model, &[1, -2, 7]).unwrap(), [99, 102, 93]);
    let inputs = vec![vec![0, 0, 0], vec![-7, 7, 1]];
    let outputs = interpret_batch(&model, &inputs).unwrap();
    assert_eq!(outputs, [[100, 100, 100], [107, 93, 99]]);
    assert_eq!(model.graph.nodes[0].op, Op::from(Box::new(Mirror { by: 100 }) as Box<_>));
    let again = Graph::from_json(&model.graph.public_json()).unwrap();
    assert_eq!(digest(&again), digest(&model.graph));
    assert!(model.graph.public_json().contains(r#""op":{"mirror":{"by":100}}"#));
    let path = tempfile::tempdir().unwrap().keep().join("model.tacit");
    save(&model, &path).unwrap();
    assert_eq!(load(&path).unwrap(), model);
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn its_checks_and_widths_count() {
    registered();
    let refused = |op: Value, bits: u32| match read(op, bits).map(|model| verify_model(&model)) {
        Ok(verified) => verified.unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    let large = refused(json!({"mirror": {"by": 1 << 20}}), 40);
    assert!(large.contains("node `n`: mirrors by 1048576"), "{large}");
    // 107 needs eight bits, and one more because an output's values are compared.
    let narrow = refused(json!({"mirror": {"by": 100}}), 8);
    assert!(narrow.contains("values need 9 bits, it has 8"), "{narrow}");
    for fields in [json!({}), json!({"by": 1, "at": 2}), json!({"by": "1"}), json!(null)] {
        let error = refused(json!({"mirror": fields}), 9);
        assert!(error.contains("operator `mirror`: "), "{error}");
    }
}

#[test]
fn names_belong_to_one_operator() {
    registered();
    static AGAIN: Registration = Registration::of::<Mirror>("mirror");
    static RELU: Registration = Registration::of::<Mirror>("relu");
    static LOUD: Registration = Registration::of::<Mirror>("MIRROR");
    for other in [&AGAIN, &RELU, &LOUD] {
        assert!(matches!(register(other), Err(Error::Misuse(_))), "{}", other.name);
    }
}

#[test]
fn unknown_operators_are_refused_by_name() {
    for op in [json!({"hardmax": {"axis": 1}}), json!("hardmax")] {
        let error = read(op, 9).unwrap_err();
        assert!(matches!(&error, Error::Corrupt(why) if why.contains("`hardmax`")), "{error}");
    }
    let long = read(json!({"x".repeat(10_000): {}}), 9).unwrap_err().to_string();
    assert!(long.len() < 300, "{long}");
    let control = read(json!("\u{1b}[2J"), 9).unwrap_err().to_string();
    assert!(!control.contains('\u{1b}'), "{control:?}");
}
