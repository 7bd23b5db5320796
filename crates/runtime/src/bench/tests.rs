//! Every operation in memory: right results at the cost that was announced.

use std::num::{NonZeroU32, NonZeroU64};
use std::thread;

use graph::Rounding;
use graph::functions::starts::Start;
use ot::Source;
use wire::{Cost, Error, Phase, memory_pair};

use super::operation::{Baseline, Function};
use super::task::Task;
use super::transfers;
use super::{Bench, Host, Measured, Operation, Transfers};
use crate::nonlinear::{MOST_BYTES, pad_bytes};
use crate::plan::Settings;
use crate::report::Traffic;
use crate::{hello, keys};

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
    let setup = hello::known_cost().then(keys::cost(&task.plan)).then(ot::setup_both_cost());
    let parts: Vec<(Phase, Cost)> = match task.transfers() {
        None => {
            let parts = task.plan.parts(1).into_iter().skip(1);
            parts.map(|part| (part.phase, part.spent.cost)).collect()
        }
        Some(count) => vec![(Phase::Offline, transfers_cost(&task, count))],
    };
    let of = |wanted| parts.iter().filter(move |(phase, _)| *phase == wanted);
    let [offline, online]: [Cost; 2] =
        [Phase::Offline, Phase::Online].map(|phase| of(phase).map(|(_, cost)| *cost).collect());
    let bytes = |cost: Cost| Traffic {
        client_to_server: cost.client_to_server,
        server_to_client: cost.server_to_client,
    };
    let phases = &measured.report.phases;
    let total = setup.then(parts.iter().map(|(_, cost)| *cost).collect());
    assert_eq!(phases.setup.bytes, bytes(setup), "{operation:?}");
    assert_eq!(phases.offline.bytes, bytes(offline), "{operation:?}");
    assert_eq!(phases.online.bytes, bytes(online), "{operation:?}");
    assert_eq!(measured.report.total.bytes, bytes(total), "{operation:?}");
    assert_eq!(measured.report.total.rounds, total.rounds, "{operation:?}");
    assert!(measured.checked > 0 && measured.max_error <= tolerance, "{measured:?}");
    total.bytes()
}

fn transfers_cost(task: &Task, count: usize) -> Cost {
    let mut supply = ot::Supply::new(task.plan.settings().sourcing(), wire::Role::Server);
    supply.reserve(count);
    let each = |count| {
        let cost = supply.extend(count);
        supply.take(count);
        cost
    };
    transfers::chunks(count).map(each).collect()
}

fn strided(channels: [usize; 2], dilation: usize, groups: usize, rounding: Rounding) -> Operation {
    let [input, output] = channels;
    Operation::Conv {
        height: 9,
        width: 7,
        input,
        output,
        kernel: 3,
        stride: 2,
        padding: 1,
        dilation,
        groups,
        weight_bits: 8,
        activation_bits: 8,
        rounding,
        suite: None,
        tile: None,
        baseline: None,
    }
}

fn conv(rounding: Rounding) -> Operation {
    strided([3, 5], 1, 1, rounding)
}

fn dilated(rounding: Rounding) -> Operation {
    strided([4, 6], 2, 2, rounding)
}

fn depthwise(rounding: Rounding) -> Operation {
    strided([7, 7], 1, 7, rounding)
}

fn matmul(rounding: Rounding) -> Operation {
    let (weight_bits, activation_bits) = (4, 6);
    Operation::Matmul {
        rows: 6,
        inner: 100,
        cols: 12,
        weight_bits,
        activation_bits,
        rounding,
        suite: None,
    }
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
        for (need, _) in step.parts() {
            assert!(pad_bytes(&need) <= MOST_BYTES + MOST_BYTES / 64, "{operation:?}");
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
        Operation::Ot { kind: Transfers::SoftSpoken2, count: 20_000 },
        Operation::Ot { kind: Transfers::SoftSpoken4, count: 70_000 },
        Operation::Ot { kind: Transfers::SoftSpoken8, count: 20_000 },
        Operation::Ot { kind: Transfers::Ferret, count: 300_000 },
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

fn gelu(bits: u32, out_bits: u32, range: f64) -> Operation {
    Operation::Gelu { rows: 7, cols: 50, bits, out_bits, range, radix: None }
}

fn softmax(cols: usize, bits: u32) -> Operation {
    Operation::Softmax { rows: 6, cols, bits, out_bits: 8, range: 16.0, radix: None }
}

fn layer_norm(cols: usize, out_bits: u32) -> Operation {
    Operation::LayerNorm { rows: 6, cols, bits: 9, out_bits, range: 32.0, radix: None }
}

#[test]
fn functions_of_transformers_are_as_exact_as_stated() {
    for (operation, bound) in [
        (gelu(12, 8, 8.0), 0.5),
        (gelu(8, 8, 5.0), 0.5),
        (gelu(14, 12, 8.0), 1.0),
        (softmax(60, 9), 1.3),
        (layer_norm(100, 10), 0.9),
    ] {
        check(&operation, 0);
        let error = run(&operation, Settings::default(), 1).real_error.unwrap();
        assert!(error > 0.0 && error <= bound, "{operation:?}: {error}");
    }
}

fn comet(function: Function, start: Start, accept_leakage: bool) -> Operation {
    let (bits, out_bits, range) = match function {
        Function::LayerNorm => (9, 19, 32.0),
        Function::Gelu | Function::Softmax => (10, 8, 8.0),
    };
    let radix = None;
    let (rows, cols) = (3, 40);
    Operation::Comet {
        function,
        rows,
        cols,
        bits,
        out_bits,
        range,
        start,
        of_elements: start == Start::Crypten,
        radix,
        accept_leakage,
    }
}

#[test]
fn functions_by_inverse_square_roots_are_exact_from_every_start() {
    for start in Start::ALL {
        check(&comet(Function::Gelu, start, true), 0);
    }
    for start in [Start::Affine, Start::Table] {
        check(&comet(Function::Softmax, start, false), 0);
        check(&comet(Function::LayerNorm, start, false), 0);
    }
    let operation = comet(Function::Gelu, Start::Affine, false);
    let error = run(&operation, Settings::default(), 1).real_error.unwrap();
    assert!(error > 0.0 && error <= 1.0, "{error}");
}

#[test]
fn flooding_is_refused_unless_its_leak_is_accepted() {
    for function in [Function::Gelu, Function::Softmax, Function::LayerNorm] {
        let refused = super::comet::plan(&comet(function, Start::Flooding, false)).err();
        assert!(refused.is_some_and(|error| error.to_string().contains("leak")));
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
fn linear_operations_keep_their_bound() {
    for of in [conv, dilated, depthwise, matmul] {
        check(&of(Rounding::Exact), 0);
        check(&of(Rounding::Stochastic), 2);
    }
}

/// A 3x3 convolution of suite ufo.
fn transferred(bits: [u32; 2], stride: usize, tile: Option<usize>) -> Operation {
    Operation::Conv {
        height: 9,
        width: 7,
        input: 4,
        output: 6,
        kernel: 3,
        stride,
        padding: 1,
        dilation: 1,
        groups: 1,
        weight_bits: bits[0],
        activation_bits: bits[1],
        rounding: Rounding::Exact,
        suite: Some("ufo".into()),
        tile,
        baseline: None,
    }
}

#[test]
fn products_by_transfers_are_exact() {
    for bits in [[1, 1], [2, 4], [2, 6], [5, 3], [8, 8], [12, 12]] {
        check(&transferred(bits, 1, None), 0);
        check(&transferred(bits, 1, Some(4)), 0);
        check(&transferred(bits, 2, None), 0);
    }
    let (rows, inner, cols) = (3, 20, 5);
    let suite = Some("ufo".into());
    let (weight_bits, activation_bits, rounding) = (3, 5, Rounding::Exact);
    check(
        &Operation::Matmul { rows, inner, cols, weight_bits, activation_bits, rounding, suite },
        0,
    );
    let settings = Settings { offline: NonZeroU32::new(1), ..Settings::default() };
    check_with(&transferred([2, 4], 1, None), settings, 2, 0);
    assert!(Bench::new(transferred([2, 4], 2, Some(2)), Settings::default(), 1).is_err());
    assert!(Bench::new(transferred([2, 4], 1, Some(3)), Settings::default(), 1).is_err());
    assert!(Bench::new(transferred([0, 4], 1, None), Settings::default(), 1).is_err());
}

/// Beyond 2^21 transfers their pads are made part by part.
#[test]
fn products_of_many_transfers_are_made_in_parts() {
    let (rows, inner, cols) = (1, 4096, 300);
    let suite = Some("ufo".into());
    let (weight_bits, activation_bits, rounding) = (2, 4, Rounding::Exact);
    let operation =
        Operation::Matmul { rows, inner, cols, weight_bits, activation_bits, rounding, suite };
    check(&operation, 0);
    let settings = Settings { offline: NonZeroU32::new(1), ..Settings::default() };
    check_with(&operation, settings, 2, 0);
}

#[test]
fn tiles_take_fewer_bytes_than_what_they_are_compared_with() {
    let sized = |channels, baseline| match transferred([2, 4], 1, None) {
        Operation::Conv { .. } if channels == 0 => unreachable!(),
        Operation::Conv {
            kernel,
            stride,
            padding,
            dilation,
            groups,
            weight_bits,
            activation_bits,
            rounding,
            suite,
            tile,
            ..
        } => Operation::Conv {
            height: 16,
            width: 16,
            input: channels,
            output: channels,
            kernel,
            stride,
            padding,
            dilation,
            groups,
            weight_bits,
            activation_bits,
            rounding,
            suite,
            tile,
            baseline,
        },
        other => other,
    };
    let bytes = |baseline| check_with(&sized(16, baseline), Settings::default(), 2, 0);
    let own = bytes(None);
    let compared = [Baseline::Winograd, Baseline::Uniform].map(|baseline| bytes(Some(baseline)));
    assert!(compared.iter().all(|other| own < *other), "{own} {compared:?}");
}

#[test]
fn prepared_layers_keep_their_bound() {
    let settings = Settings { offline: NonZeroU32::new(1), ..Settings::default() };
    for of in [conv, matmul] {
        check_with(&of(Rounding::Exact), settings, 1, 0);
        check_with(&of(Rounding::Stochastic), settings, 1, 2);
    }
}

#[test]
fn nonsense_is_refused() {
    let (out_bits, radix) = (None, None);
    let relu = |count, bits| Operation::Relu {
        count,
        bits,
        out_bits,
        saturate: None,
        radix,
        nonlinear: OT,
    };
    let kernel = Operation::Conv {
        height: 2,
        width: 2,
        input: 1,
        output: 1,
        kernel: 3,
        stride: 1,
        padding: 0,
        dilation: 1,
        groups: 1,
        weight_bits: 8,
        activation_bits: 8,
        rounding: Rounding::Exact,
        suite: None,
        tile: None,
        baseline: None,
    };
    for operation in [
        relu(0, 8),
        relu(usize::MAX, 8),
        relu(10, 1),
        relu(10, 64),
        Operation::MaxPool { count: usize::MAX, bits: 8, window: 4, radix, nonlinear: OT },
        Operation::MaxPool { count: 5, bits: 8, window: 0, radix, nonlinear: OT },
        Operation::Truncate {
            count: 5,
            bits: 8,
            drop: 9,
            out_bits,
            non_negative: false,
            radix,
            nonlinear: OT,
        },
        Operation::Compare { count: 5, bits: 64, radix },
        Operation::Compare { count: 5, bits: 8, radix: Some(9) },
        Operation::Compare { count: 5, bits: 8, radix: Some(0) },
        Operation::Lookup { count: 5, bits: 9, out_bits },
        Operation::Multiply {
            count: 5,
            bits: 8,
            second_bits: Some(64),
            out_bits,
            non_negative: false,
            radix,
        },
        Operation::Gelu { rows: usize::MAX, cols: 2, bits: 8, out_bits: 8, range: 8.0, radix },
        gelu(9, 24, 8.0),
        softmax(1, 9),
        layer_norm(1, 10),
        layer_norm(2000, 10),
        softmax(60, 13),
        gelu(8, 8, -8.0),
        kernel,
        strided([3, 5], 1, 0, Rounding::Exact),
        strided([3, 5], 1, 3, Rounding::Exact),
        strided([3, 5], 0, 1, Rounding::Exact),
        strided([3, 5], usize::MAX, 1, Rounding::Exact),
    ] {
        assert!(matches!(Bench::new(operation, Settings::default(), 1), Err(Error::Misuse(_))));
    }
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
