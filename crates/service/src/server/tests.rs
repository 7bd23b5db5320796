//! A server that ends has told of all of its clients.

use std::net::TcpStream;

use graph::{FloatTensor, Floats, Options as Lowering, Ranges, Source, lower};
use runtime::planner::Planning;
use runtime::{Asking, Request, Served, Settings};
use wire::Role;

use super::*;

/// Longer than the door ever sleeps.
const A_WHILE: Duration = Duration::from_millis(1500);
const LONG: Duration = Duration::from_secs(30);

/// A fully connected layer of two inputs and outputs.
fn model() -> Model {
    let source = serde_json::json!({
        "name": "small", "input": {"name": "x", "shape": [2]}, "output": "y",
        "nodes": [{"name": "fc", "op": "Gemm", "inputs": ["x"], "output": "y", "weight": "w"}],
    });
    let weights = FloatTensor { shape: vec![2, 2], data: vec![0.5, -0.25, 0.125, 1.0] };
    let ranges: Ranges = ["x", "y"].map(|name| (name.to_owned(), (-2.0, 2.0))).into();
    let source = Source::from_json(&source.to_string()).unwrap();
    let floats = Floats::from([("w".into(), weights)]);
    let model = lower(source, floats, &ranges.into(), &Lowering::default()).unwrap();
    let served = Served::new(model, Settings::default(), &Planning::Plain, false, 0).unwrap();
    Model::new("small", served, Vec::new()).unwrap()
}

fn server(once: bool) -> Server {
    let options = Options {
        access: Access::Plaintext,
        timeouts: Timeouts::default(),
        link: None,
        policy: Policy::default(),
        fleet: None,
        limits: Limits::default(),
        most_inputs: 1,
        threads: 1,
        websocket: None,
        metrics: None,
        proxied: false,
        once,
    };
    Server::bind(vec![model()], "127.0.0.1:0", options).unwrap()
}

/// A session from its beginning to its end.
fn visit(address: SocketAddr) {
    let stream = TcpStream::connect(address).unwrap();
    let mut channel = wire::plaintext(Role::Client, stream, Timeouts::default()).unwrap();
    let request = Request {
        values: &[1.0, -1.0],
        shape: &[2],
        threads: 1,
        accept_leakage: false,
        keys: None,
        asking: Asking::default(),
        progress: &mut |_, _| {},
    };
    runtime::predict(&mut channel, request).unwrap();
}

/// The thread of a session can stop at any place for as long as the machine has other things to do. Here it stops
/// before the report is there.
#[test]
fn a_server_is_not_over_before_the_last_report_is_there() {
    for once in [true, false] {
        let server = &server(once);
        thread::scope(|scope| {
            let reports = locked(&server.shared.reports);
            let (ended, end) = mpsc::channel();
            scope.spawn(move || ended.send(server.run()));
            visit(server.address());
            if !once {
                server.drain(LONG);
            }
            assert!(end.recv_timeout(A_WHILE).is_err(), "over before the report, once: {once}");
            drop(reports);
            end.recv_timeout(LONG).unwrap().unwrap();
            assert!(server.next_event(Duration::ZERO).unwrap().outcome.is_ok(), "once: {once}");
            assert!(server.shared.sessions.is_empty());
        });
    }
}
