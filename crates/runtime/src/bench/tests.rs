//! Every operation in memory: right results at the cost that was announced.

use std::thread;

use graph::Rounding;
use ot::Source;
use wire::{Cost, Error, memory_pair};

use super::session::transfers_cost;
use super::task::Task;
use super::{Bench, Host, Measured, Operation, Transfers};
use crate::offline::Stock;
use crate::report::Traffic;
use crate::steps::Step;
use crate::{hello, keys};

fn run(operation: &Operation) -> Measured {
    let (mut client, mut server) = memory_pair();
    let bench = Bench::new(operation.clone()).unwrap();
    let host = Host::new(operation.clone()).unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(|| host.run(&mut server).unwrap());
        let measured = bench.run(&mut client).unwrap();
        assert_eq!(server.join().unwrap().total.bytes, measured.report.total.bytes);
        measured
    })
}

fn check(operation: &Operation, tolerance: u64) {
    let measured = run(operation);
    let task = Task::new(operation.clone()).unwrap();
    let setup = hello::known_cost().then(keys::cost(&task.plan)).then(ot::setup_both_cost());
    let offline = match task.transfers() {
        0 => Stock::new(Source::Auto).prepare(&task.plan.need()),
        count => transfers_cost(task.plan.settings().ot, count),
    };
    let online: Cost = task.plan.steps().iter().map(Step::cost).collect();
    let bytes = |cost: Cost| Traffic {
        client_to_server: cost.client_to_server,
        server_to_client: cost.server_to_client,
    };
    let phases = &measured.report.phases;
    let total = setup.then(offline).then(online);
    assert_eq!(phases.setup.bytes, bytes(setup), "{operation:?}");
    assert_eq!(phases.offline.bytes, bytes(offline), "{operation:?}");
    assert_eq!(phases.online.bytes, bytes(online), "{operation:?}");
    assert_eq!(measured.report.total.bytes, bytes(total), "{operation:?}");
    assert_eq!(measured.report.total.rounds, total.rounds, "{operation:?}");
    assert!(measured.checked > 0 && measured.max_error <= tolerance, "{measured:?}");
}

fn conv(rounding: Rounding) -> Operation {
    Operation::Conv {
        height: 9,
        width: 7,
        input: 3,
        output: 5,
        kernel: 3,
        stride: 2,
        padding: 1,
        weight_bits: 8,
        activation_bits: 8,
        rounding,
    }
}

fn matmul(rounding: Rounding) -> Operation {
    let (weight_bits, activation_bits) = (4, 6);
    Operation::Matmul { rows: 6, inner: 100, cols: 12, weight_bits, activation_bits, rounding }
}

#[test]
fn non_linear_operations_are_exact() {
    let count = 300;
    let relu = |bits, out_bits, saturate| Operation::Relu { count, bits, out_bits, saturate };
    let truncate = |bits, drop, out_bits| Operation::Truncate { count, bits, drop, out_bits };
    let extend = |non_negative| Operation::Extend { count, bits: 8, out_bits: 16, non_negative };
    for operation in [
        relu(8, None, None),
        relu(12, Some(20), Some(8)),
        relu(63, None, None),
        Operation::MaxPool { count, bits: 12, window: 4 },
        Operation::MaxPool { count, bits: 2, window: 9 },
        Operation::Argmax { count: 1000, bits: 16 },
        truncate(32, 12, None),
        truncate(20, 4, Some(10)),
        extend(false),
        extend(true),
        Operation::Ot { kind: Transfers::SoftSpoken4, count: 20_000 },
    ] {
        check(&operation, 0);
    }
}

#[test]
fn linear_operations_keep_their_bound() {
    for of in [conv, matmul] {
        check(&of(Rounding::Exact), 0);
        check(&of(Rounding::Stochastic), 2);
    }
}

#[test]
fn nonsense_is_refused() {
    let relu = |count, bits| Operation::Relu { count, bits, out_bits: None, saturate: None };
    let kernel = Operation::Conv {
        height: 2,
        width: 2,
        input: 1,
        output: 1,
        kernel: 3,
        stride: 1,
        padding: 0,
        weight_bits: 8,
        activation_bits: 8,
        rounding: Rounding::Exact,
    };
    for operation in [
        relu(0, 8),
        relu(usize::MAX, 8),
        relu(10, 1),
        relu(10, 64),
        Operation::MaxPool { count: usize::MAX, bits: 8, window: 4 },
        Operation::MaxPool { count: 5, bits: 8, window: 0 },
        Operation::Truncate { count: 5, bits: 8, drop: 9, out_bits: None },
        kernel,
    ] {
        assert!(matches!(Bench::new(operation), Err(Error::Misuse(_))));
    }
}

#[test]
fn parties_with_different_operations_part() {
    let (mut client, mut server) = memory_pair();
    let of = |count| Operation::Argmax { count, bits: 8 };
    let host = Host::new(of(4)).unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(move || host.run(&mut server));
        assert!(Bench::new(of(5)).unwrap().run(&mut client).is_err());
        assert!(matches!(server.join().unwrap(), Err(Error::Peer { .. })));
    });
}

#[test]
fn operations_are_read_from_json() {
    let text = r#"{"operation":"maxpool","count":3,"bits":8,"window":4}"#;
    let pool = Operation::MaxPool { count: 3, bits: 8, window: 4 };
    assert_eq!(serde_json::from_str::<Operation>(text).unwrap(), pool);
    let unknown = r#"{"operation":"argmax","count":3,"bits":8,"window":4}"#;
    assert!(serde_json::from_str::<Operation>(unknown).is_err());
}
