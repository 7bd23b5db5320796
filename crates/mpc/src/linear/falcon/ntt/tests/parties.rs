//! Both parties in memory, under encryption.

use graph::Conv;
use he::bfv::{Params, Switching};
use wire::Error;

use super::super::server::counted;
use super::super::*;
use super::clear::more_shapes;
use crate::linear::coefficient::tests::conv;
use crate::linear::slots::Server;
use crate::linear::testing::{self, Both, Tampered, misfits_are_refused, same_bytes};

pub(super) type Case = testing::Case<Layer, ServerWeights>;

/// A random case with room for plaintexts in so many bytes of `memory`.
pub(super) fn case(layer: Layer, conv: &Conv, memory: usize) -> Case {
    let prime = layer.prime();
    Case::random(layer, conv, prime, |layer, weight, bias| {
        ServerWeights::new(layer, weight, bias, &mut memory.clone())
    })
}

pub(super) fn layer(conv: &Conv) -> Layer {
    Layer::new(conv, 8, 24).unwrap()
}

pub(super) fn run(case: &Case, tamper: Tampered) -> Both {
    let Case { layer, weights, .. } = case;
    let keys = (layer.params(), &*layer.rotations());
    case.run(
        keys,
        tamper,
        |ch, key, x, worker| client(ch, layer, key, x, worker),
        |ch, keys, x, worker| counted(ch, &Server { layer, keys, weights }, x, worker),
    )
}

fn check(case: &Case) {
    let Case { layer, want, .. } = case;
    let want = (&**want, layer.cost(), layer.operations());
    testing::check(run(case, None), layer.prime(), want, &layer.describe());
}

#[test]
fn every_shape_computes_and_costs_what_is_said() {
    let more = [
        conv([3, 4], [17, 13], 3, 2, 1),
        conv([30, 9], [16, 16], 3, 1, 1),
        Conv { groups: 6, ..conv([6, 6], [8, 8], 3, 1, 1) },
        Conv::fully_connected(10, 2100),
    ];
    for conv in more.iter().chain(&more_shapes()) {
        check(&case(layer(conv), conv, 1 << 24));
    }
}

#[test]
fn wide_accumulators_and_large_images_take_larger_rings() {
    for (conv, plain_bits, degree) in [
        (conv([2, 3], [5, 5], 3, 1, 1), 40, 8192),
        (conv([2, 3], [64, 60], 3, 1, 1), 20, 8192),
        (conv([1, 2], [120, 120], 3, 2, 1), 20, 16384),
        (conv([2, 2], [5, 5], 3, 1, 1), 47, 8192),
    ] {
        let layer = Layer::new(&conv, 8, plain_bits).unwrap();
        assert_eq!(layer.params().degree(), degree);
        check(&case(layer, &conv, 0));
    }
}

#[test]
fn a_plan_shares_parameters() {
    let params = Params::new(8192, &[43, 43, 44], Switching::Special(44)).unwrap();
    let conv = conv([5, 9], [16, 16], 3, 1, 1);
    let shared = layer(&conv).with_params(&params).unwrap();
    assert_eq!((shared.slots(), shared.params()), (8192, &params));
    check(&case(shared, &conv, 1 << 22));
    let large = Layer::new(&conv, 8, 45).unwrap();
    assert!(matches!(large.with_params(&params), Err(Error::Misuse(_))));
    let small = Params::new(4096, &[35, 35, 36], Switching::Digits(25)).unwrap();
    let image = super::super::Layer::new(&conv_of(64), 8, 20).unwrap();
    assert!(matches!(image.with_params(&small), Err(Error::Misuse(_))));
}

fn conv_of(side: usize) -> Conv {
    conv([1, 1], [side; 2], 3, 1, 1)
}

#[test]
fn threads_and_memory_change_no_byte() {
    for conv in [conv([20, 18], [16, 16], 3, 1, 1), conv([40, 3], [16, 16], 3, 1, 1)] {
        let mut one = case(layer(&conv), &conv, usize::MAX);
        let first = run(&one, None);
        one.threads = 3;
        let mut two = case(layer(&conv), &conv, 1 << 19);
        two.threads = 2;
        [one, two].iter().for_each(|case| same_bytes(&first, run(case, None)));
    }
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_sent() {
    let conv = conv([2, 2], [4, 4], 3, 1, 1);
    let plan = layer(&conv);
    let other = Conv { out_channels: 3, ..conv.clone() };
    misfits_are_refused(|weight, bias| ServerWeights::new(&plan, weight, bias, &mut 0).err());
    let mut wrong = case(plan.clone(), &conv, 0);
    wrong.x[0][7] = plan.prime();
    let (ours, _) = run(&wrong, None);
    assert!(matches!(ours.value, Err(Error::Misuse(_))) && ours.frames.is_empty());
    let mut wrong = case(plan.clone(), &conv, 0);
    wrong.weights = case(layer(&other), &other, 0).weights;
    assert!(matches!(run(&wrong, None).1.value, Err(Error::Misuse(_))));
}
