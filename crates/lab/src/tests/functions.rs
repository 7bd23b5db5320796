//! Functions of transformers, `auto`'s and Comet's.

use graph::functions::starts::Start;
use runtime::Settings;

use super::{check, run};
use crate::operation::Function;
use crate::{Operation, comet as planned};

pub(super) fn gelu(bits: u32, out_bits: u32, range: f64) -> Operation {
    Operation::Gelu { rows: 7, cols: 50, bits, out_bits, range, radix: None }
}

pub(super) fn softmax(cols: usize, bits: u32) -> Operation {
    Operation::Softmax { rows: 6, cols, bits, out_bits: 8, range: 16.0, radix: None }
}

pub(super) fn layer_norm(cols: usize, out_bits: u32) -> Operation {
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
        let refused = planned::plan(&comet(function, Start::Flooding, false)).err();
        assert!(refused.is_some_and(|error| error.to_string().contains("leak")));
    }
}
