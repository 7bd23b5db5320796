//! A suite and an operator of one's own: each is a file here and one registration, and both run
//! between two parties over a socket.

#![allow(clippy::unwrap_used, missing_docs)]

mod step_function;
mod tables;

use std::net::TcpStream;
use std::sync::Once;
use std::time::Duration;

use graph::{FloatTensor, Floats, Model, Options, Ranges, Rounding, Source, interpret, lower};
use runtime::planner::Planning;
use runtime::{Answer, Asking, Served, Settings};
use serde_json::{Value, json};
use service::{Access, Limits, Options as Serving, Policy, Server};
use wire::{Role, Timeouts};

fn registered() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        runtime::register_suite(&tables::SUITE).unwrap();
        step_function::register().unwrap();
    });
}

/// A fully connected layer of four inputs and outputs, then `last`.
fn model(suite: &str, last: Value) -> Model {
    let mut node = json!({"name": "last", "inputs": ["a"], "output": "y"});
    node.as_object_mut().unwrap().extend(last.as_object().unwrap().clone());
    let source = json!({
        "name": "own", "input": {"name": "x", "shape": [4]}, "output": "y",
        "nodes": [{"name": "fc", "op": "Gemm", "inputs": ["x"], "output": "a", "weight": "w"}, node],
    });
    let data = vec![
        0.5, -0.25, 0.125, -0.5, 1.0, 0.5, -1.0, 0.25, -0.5, 0.75, 0.5, -0.125, 0.25, 0.5, -0.75,
        1.0,
    ];
    let floats = Floats::from([("w".into(), FloatTensor { shape: vec![4, 4], data })]);
    let ranges: Ranges = ["x", "a", "y"].map(|name| (name.to_owned(), (-2.0, 2.0))).into();
    let source = Source::from_json(&source.to_string()).unwrap();
    let options = Options { activation_bits: 4, rounding: Rounding::Exact, ..Options::default() };
    let mut model = lower(source, floats, &ranges.into(), &options).unwrap();
    model.graph.suite = suite.into();
    graph::verify_model(&model).unwrap();
    model
}

/// A session over a socket of this machine; the answer, and the interpreter's.
fn run(model: &Model, values: &[f32]) -> (Answer, Vec<i64>) {
    let options = Serving {
        access: Access::Plaintext,
        timeouts: Timeouts::default(),
        link: None,
        policy: Policy::default(),
        fleet: None,
        limits: Limits::default(),
        most_inputs: 4,
        threads: 1,
        websocket: None,
        metrics: None,
        proxied: false,
        once: true,
    };
    let served = Served::new(model.clone(), Settings::default(), &Planning::Plain, false, 0);
    let models = vec![service::Model::new("own", served.unwrap(), Vec::new()).unwrap()];
    let server = Server::bind(models, "127.0.0.1:0", options).unwrap();
    let address = server.address();
    let answer = std::thread::scope(|scope| {
        scope.spawn(|| server.run().unwrap());
        let stream = TcpStream::connect(address).unwrap();
        let mut channel = wire::plaintext(Role::Client, stream, Timeouts::default()).unwrap();
        let request = runtime::Request {
            values,
            shape: &[values.len()],
            threads: 1,
            accept_leakage: false,
            keys: None,
            asking: Asking::default(),
            progress: &mut |_, _| {},
        };
        runtime::predict(&mut channel, request).unwrap()
    });
    let event = server.next_event(Duration::from_secs(10)).unwrap();
    assert_eq!(event.outcome.unwrap().total.bytes, answer.report.total.bytes);
    let input = model.graph.quantize_input(values).unwrap();
    (answer, interpret(model, &input).unwrap())
}

#[test]
fn a_suite_of_ones_own_runs_and_takes_fewer_rounds() {
    registered();
    let relu = json!({"op": "Relu", "maximum": 2.0});
    let values = [0.75, -1.5, 0.4, 1.0];
    let mut rounds = Vec::new();
    for suite in ["auto", "tables"] {
        let (answer, clear) = run(&model(suite, relu.clone()), &values);
        let near = |(got, want): (&i64, &i64)| got.abs_diff(*want) <= 1;
        assert!(answer.results[0].iter().zip(&clear).all(near), "{suite}");
        assert_eq!(answer.report.suite, suite);
        rounds.push(answer.report.phases.online.rounds);
        let relu = answer.report.layers.iter().find(|l| l.name == "last" && l.phase == "online");
        assert_eq!(relu.unwrap().protocol.contains("table"), suite == "tables");
    }
    assert!(rounds[1] < rounds[0], "{rounds:?}");
}

#[test]
fn an_operator_of_ones_own_runs() {
    registered();
    let model = model("auto", json!({"op": "Heaviside"}));
    let (answer, clear) = run(&model, &[1.5, 1.0, 0.5, -1.5]);
    assert_eq!(clear, [1, 1, 1, 0]);
    assert_eq!(answer.results, [clear]);
    let kinds: Vec<&str> = answer.plan.steps().iter().map(|step| step.operator()).collect();
    assert_eq!(kinds, ["fully connected", "sign", "open"]);
}

#[test]
fn names_are_taken_once() {
    registered();
    let again = runtime::register_suite(&tables::SUITE).unwrap_err().to_string();
    assert!(again.contains("there is a suite `tables` already"), "{again}");
    assert!(step_function::register().is_err());
    assert!(runtime::check_suite("tables").is_ok());
    assert!(runtime::check_suite("table").unwrap_err().to_string().contains("auto, ufo"));
}
