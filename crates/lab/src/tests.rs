//! Every operation in memory: right results at the cost that was announced.

mod functions;
mod linear;
mod refused;

use std::num::NonZeroU64;
use std::thread;

use ot::Source;
use runtime::parts::{MOST_BYTES, keys_cost, known_cost, pad_bytes};
use runtime::{Report, Settings, Traffic};
use wire::{Cost, Error, memory_pair};

use super::cots;
use super::task::Task;
use super::{Bench, CotSource, Host, Measured, Operation};

const OT: graph::Nonlinear = graph::Nonlinear::Ot;

fn run(operation: &Operation, settings: Settings, threads: usize) -> Measured {
    let (mut client, mut server) = memory_pair();
    let bench = Bench::new(operation.clone(), settings, threads).unwrap();
    let host = Host::new(operation.clone(), settings, 1).unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(|| host.run(&mut server).unwrap());
        let measured = bench.run(&mut client).unwrap();
        assert_eq!(server.join().unwrap().total.bytes, measured.report.total.bytes);
        measured
    })
}

fn check(operation: &Operation, tolerance: u64) {
    check_with(operation, Settings::default(), 1, tolerance);
}

fn check_with(operation: &Operation, settings: Settings, threads: usize, tolerance: u64) -> u64 {
    let measured = run(operation, settings, threads);
    let task = Task::new(operation.clone(), settings).unwrap();
    let setup = known_cost()
        .then(keys_cost(&task.plan))
        .then(ot::setup_both_cost(task.plan.settings().sourcing()));
    let (preprocess, online, rounds) = match task.cots() {
        None => {
            let foreseen = Report::predicted(&task.plan, 1);
            let rounds = foreseen.total.rounds - foreseen.phases.setup.rounds;
            (foreseen.phases.offline.bytes, foreseen.phases.online.bytes, rounds)
        }
        Some(count) => {
            let cost = cots_cost(&task, count);
            (traffic(cost), Traffic::default(), setup.then(cost).rounds - setup.rounds)
        }
    };
    let phases = &measured.report.phases;
    let total = [traffic(setup), preprocess, online].into_iter().fold(Traffic::default(), sum);
    assert_eq!(phases.setup.bytes, traffic(setup), "{operation:?}");
    assert_eq!(phases.offline.bytes, preprocess, "{operation:?}");
    assert_eq!(phases.online.bytes, online, "{operation:?}");
    assert_eq!(measured.report.total.bytes, total, "{operation:?}");
    assert_eq!(measured.report.total.rounds, setup.rounds + rounds, "{operation:?}");
    assert!(measured.checked > 0 && measured.max_error <= tolerance, "{measured:?}");
    total.client_to_server + total.server_to_client
}

fn traffic(cost: Cost) -> Traffic {
    Traffic { client_to_server: cost.client_to_server, server_to_client: cost.server_to_client }
}

fn sum(one: Traffic, other: Traffic) -> Traffic {
    Traffic {
        client_to_server: one.client_to_server + other.client_to_server,
        server_to_client: one.server_to_client + other.server_to_client,
    }
}

fn cots_cost(task: &Task, count: usize) -> Cost {
    let mut schedule = ot::Schedule::new(task.plan.settings().sourcing(), wire::Role::Server);
    schedule.reserve(count);
    let each = |count| {
        let cost = schedule.extend(count);
        schedule.take(count);
        cost
    };
    cots::chunks(count).map(each).collect()
}

#[test]
fn large_operations_run_in_slices() {
    let radix = None;
    let relu = Operation::Relu {
        count: (1 << 20) + 9,
        bits: 4,
        out_bits: None,
        saturate: None,
        radix,
        nonlinear: OT,
    };
    let windows = Operation::MaxPool { count: 350_000, bits: 3, window: 3, radix, nonlinear: OT };
    let lookup = Operation::Lookup { count: 70_000, bits: 8, out_bits: None };
    let multiply = Operation::Multiply {
        count: 300_000,
        bits: 16,
        second_bits: None,
        out_bits: None,
        non_negative: true,
        radix,
    };
    for operation in [relu, windows, lookup, multiply] {
        let task = Task::new(operation.clone(), Settings::default()).unwrap();
        let step = task.plan.steps().first().unwrap();
        assert!(step.feeds_itself(), "{operation:?} is in one piece");
        for (demand, _) in step.parts() {
            assert!(pad_bytes(&demand) <= MOST_BYTES + MOST_BYTES / 64, "{operation:?}");
        }
        check(&operation, 0);
    }
}

#[test]
fn non_linear_operations_are_exact() {
    let (count, radix) = (300, None);
    let relu = |bits, out_bits, saturate| Operation::Relu {
        count,
        bits,
        out_bits,
        saturate,
        radix,
        nonlinear: OT,
    };
    let truncate = |bits, drop, out_bits, non_negative| Operation::Truncate {
        count,
        bits,
        drop,
        out_bits,
        non_negative,
        radix,
        nonlinear: OT,
    };
    let extend = |non_negative| Operation::Extend {
        count,
        bits: 8,
        out_bits: 16,
        non_negative,
        radix,
        nonlinear: OT,
    };
    for operation in [
        relu(8, None, None),
        relu(12, Some(20), Some(8)),
        relu(63, None, None),
        Operation::MaxPool { count, bits: 12, window: 4, radix, nonlinear: OT },
        Operation::MaxPool { count, bits: 2, window: 9, radix, nonlinear: OT },
        Operation::Argmax { count: 1000, bits: 16, radix, nonlinear: OT },
        truncate(32, 12, None, false),
        truncate(20, 4, Some(10), true),
        truncate(20, 4, Some(20), false),
        truncate(20, 4, Some(20), true),
        extend(false),
        extend(true),
        Operation::Ot { kind: CotSource::SoftSpoken2, count: 20_000 },
        Operation::Ot { kind: CotSource::SoftSpoken4, count: 70_000 },
        Operation::Ot { kind: CotSource::SoftSpoken8, count: 20_000 },
        Operation::Ot { kind: CotSource::Ferret, count: 300_000 },
    ] {
        check(&operation, 0);
    }
}

#[test]
fn garbled_circuits_are_exact() {
    let (count, radix, nonlinear) = (300, None, graph::Nonlinear::Gc);
    let relu = |bits, out_bits, saturate| Operation::Relu {
        count,
        bits,
        out_bits,
        saturate,
        radix,
        nonlinear,
    };
    let circuit = |window, relu| Operation::Circuit { count, modulus: 1_316_638_721, window, relu };
    for operation in [
        relu(8, None, None),
        relu(12, Some(20), Some(8)),
        Operation::MaxPool { count, bits: 12, window: 4, radix, nonlinear },
        Operation::Argmax { count: 100, bits: 16, radix, nonlinear },
        Operation::Truncate {
            count,
            bits: 32,
            drop: 12,
            out_bits: None,
            non_negative: false,
            radix,
            nonlinear,
        },
        Operation::Extend { count, bits: 8, out_bits: 16, non_negative: false, radix, nonlinear },
        circuit(1, false),
        circuit(1, true),
        Operation::Probability { count: 10, bits: 16, digits: 2 },
        Operation::Probability { count: 100, bits: 16, digits: 4 },
        circuit(4, false),
        circuit(4, true),
    ] {
        check(&operation, 0);
    }
}

#[test]
fn tables_and_products_are_exact() {
    let (count, radix) = (300, None);
    let lookup = |bits, out_bits| Operation::Lookup { count, bits, out_bits };
    let multiply = |bits, second_bits, out_bits, non_negative| Operation::Multiply {
        count,
        bits,
        second_bits,
        out_bits,
        non_negative,
        radix,
    };
    for operation in [
        lookup(2, None),
        lookup(8, Some(20)),
        multiply(8, None, None, false),
        multiply(12, Some(5), Some(20), false),
        multiply(40, None, None, true),
    ] {
        check(&operation, 0);
    }
}

#[test]
fn comparisons_of_any_digits_are_exact() {
    let count = 100;
    for radix in [None, Some(1), Some(2), Some(3), Some(4)] {
        let (window, out_bits, second_bits) = (3, None, None);
        for operation in [
            Operation::Compare { count, bits: 8, radix },
            Operation::Compare { count, bits: 63, radix },
            Operation::Relu { count, bits: 9, out_bits, saturate: None, radix, nonlinear: OT },
            Operation::MaxPool { count, bits: 9, window, radix, nonlinear: OT },
            Operation::Argmax { count, bits: 9, radix, nonlinear: OT },
            Operation::Truncate {
                count,
                bits: 9,
                drop: 5,
                out_bits,
                non_negative: false,
                radix,
                nonlinear: OT,
            },
            Operation::Extend {
                count,
                bits: 9,
                out_bits: 15,
                non_negative: false,
                radix,
                nonlinear: OT,
            },
            Operation::Multiply {
                count,
                bits: 9,
                second_bits,
                out_bits,
                non_negative: false,
                radix,
            },
        ] {
            check(&operation, 0);
        }
    }
}

#[test]
fn a_slower_link_is_planned_with_fewer_bytes_and_threads_change_none() {
    let (count, out_bits, saturate, radix) = (700_000, None, None, Some(4));
    let relu = Operation::Relu { count, bits: 8, out_bits, saturate, radix, nonlinear: OT };
    let on = |megabits: u64, threads| {
        let bandwidth = NonZeroU64::new(megabits * 1_000_000);
        check_with(&relu, Settings { bandwidth, ..Settings::default() }, threads, 0)
    };
    let (slow, fast) = (on(1, 2), on(3000, 1));
    assert!(slow < fast, "{slow} {fast}");
    assert_eq!(on(1, 1), slow);
}

#[test]
fn a_source_can_be_asked_for() {
    let extend = Operation::Extend {
        count: 3000,
        bits: 8,
        out_bits: 16,
        non_negative: false,
        radix: None,
        nonlinear: OT,
    };
    let by = |ot| check_with(&extend, Settings { ot, ..Settings::default() }, 1, 0);
    assert!(by(Source::SoftSpoken8) < by(Source::SoftSpoken2));
    let (mut client, mut server) = memory_pair();
    let host = Host::new(extend.clone(), Settings::default(), 1).unwrap();
    let other = Settings { ot: Source::SoftSpoken4, ..Settings::default() };
    thread::scope(|scope| {
        let server = scope.spawn(move || host.run(&mut server));
        assert!(Bench::new(extend, other, 1).unwrap().run(&mut client).is_err());
        assert!(matches!(server.join().unwrap(), Err(Error::Peer { .. })));
    });
}

#[test]
fn parties_with_different_operations_part() {
    let (mut client, mut server) = memory_pair();
    let of = |count| Operation::Argmax { count, bits: 8, radix: None, nonlinear: OT };
    let host = Host::new(of(4), Settings::default(), 1).unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(move || host.run(&mut server));
        assert!(Bench::new(of(5), Settings::default(), 1).unwrap().run(&mut client).is_err());
        assert!(matches!(server.join().unwrap(), Err(Error::Peer { .. })));
    });
}

#[test]
fn operations_are_read_from_json() {
    let text = r#"{"operation":"maxpool","count":3,"bits":8,"window":4}"#;
    let pool = Operation::MaxPool { count: 3, bits: 8, window: 4, radix: None, nonlinear: OT };
    assert_eq!(serde_json::from_str::<Operation>(text).unwrap(), pool);
    let unknown = r#"{"operation":"argmax","count":3,"bits":8,"window":4}"#;
    assert!(serde_json::from_str::<Operation>(unknown).is_err());
}
