//! Convolutions and matrix products.

use std::num::NonZeroU32;

use graph::Rounding;
use runtime::Settings;

use super::{check, check_with};
use crate::operation::Baseline;
use crate::{Bench, Operation};

pub(super) fn strided(
    channels: [usize; 2],
    dilation: usize,
    groups: usize,
    rounding: Rounding,
) -> Operation {
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
        folded: None,
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
        folded: None,
    }
}

#[test]
fn linear_operations_keep_their_bound() {
    for of in [conv, dilated, depthwise, matmul] {
        check(&of(Rounding::Exact), 0);
        check(&of(Rounding::Stochastic), 2);
    }
}

/// Gives the operation with its inputs folded as at place `at`.
fn folded(operation: Operation, at: usize) -> Operation {
    let mut operation = operation;
    match &mut operation {
        Operation::Conv { folded, .. } | Operation::Matmul { folded, .. } => *folded = Some(at),
        _ => {}
    }
    operation
}

#[test]
fn folded_inputs_keep_the_bound() {
    for of in [conv, matmul] {
        for place in [1, 4, 6] {
            check(&folded(of(Rounding::Stochastic), place), 2);
        }
    }
    check(&folded(matmul(Rounding::Exact), 6), 0);
    for (operation, place) in [(matmul(Rounding::Stochastic), 0), (matmul(Rounding::Stochastic), 9)]
    {
        assert!(Bench::new(folded(operation, place), Settings::default(), 1).is_err());
    }
    let other = folded(by_ots([2, 4], 1, None), 1);
    assert!(Bench::new(other, Settings::default(), 1).is_err());
}

/// A 3x3 convolution of suite ufo.
fn by_ots(bits: [u32; 2], stride: usize, tile: Option<usize>) -> Operation {
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
        folded: None,
        tile,
        baseline: None,
    }
}

/// A matrix product of suite ufo: rows, inner size and columns, bits of weights and of activations.
fn product_by_ots([rows, inner, cols]: [usize; 3], bits: [u32; 2]) -> Operation {
    Operation::Matmul {
        rows,
        inner,
        cols,
        weight_bits: bits[0],
        activation_bits: bits[1],
        rounding: Rounding::Exact,
        suite: Some("ufo".into()),
        folded: None,
    }
}

#[test]
fn products_by_ot_are_exact() {
    for bits in [[1, 1], [2, 4], [2, 6], [5, 3], [8, 8], [12, 12]] {
        check(&by_ots(bits, 1, None), 0);
        check(&by_ots(bits, 1, Some(4)), 0);
        check(&by_ots(bits, 2, None), 0);
    }
    check(&product_by_ots([3, 20, 5], [3, 5]), 0);
    let settings = Settings { offline: NonZeroU32::new(1), ..Settings::default() };
    check_with(&by_ots([2, 4], 1, None), settings, 2, 0);
    assert!(Bench::new(by_ots([2, 4], 2, Some(2)), Settings::default(), 1).is_err());
    assert!(Bench::new(by_ots([2, 4], 1, Some(3)), Settings::default(), 1).is_err());
    assert!(Bench::new(by_ots([0, 4], 1, None), Settings::default(), 1).is_err());
}

/// Beyond 2^21 OTs their pads are made part by part.
#[test]
fn products_of_many_ots_are_made_in_parts() {
    let operation = product_by_ots([1, 4096, 300], [2, 4]);
    check(&operation, 0);
    let settings = Settings { offline: NonZeroU32::new(1), ..Settings::default() };
    check_with(&operation, settings, 2, 0);
}

#[test]
fn tiles_take_fewer_bytes_than_what_they_are_compared_with() {
    let sized = |channels, baseline| {
        let mut conv = by_ots([2, 4], 1, None);
        if let Operation::Conv { height, width, input, output, baseline: of, .. } = &mut conv {
            (*height, *width, *input, *output, *of) = (16, 16, channels, channels, baseline);
        }
        conv
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
