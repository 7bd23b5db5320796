//! Operations that nobody can mean.

use graph::Rounding;
use runtime::Settings;
use wire::Error;

use super::OT;
use super::functions::{gelu, layer_norm, softmax};
use super::linear::strided;
use crate::{Bench, Operation};

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
        folded: None,
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
