//! Both parties in memory, under encryption.

use graph::Conv;
use he::bfv::{Params, Switching};
use wire::Error;

use super::super::server::counted;
use super::super::*;
use crate::linear::coefficient::tests::conv;
use crate::linear::testing::{self, Both, Tampered, misfits_are_refused, same_bytes};

pub(super) type Case = testing::Case<Layer, ServerWeights>;

/// A random case with room for plaintexts in so many bytes of `memory`.
pub(super) fn case(layer: Layer, conv: &Conv, memory: usize) -> Case {
    let prime = layer.prime();
    Case::random(layer, conv, prime, |layer, weight, bias| {
        ServerWeights::new(layer, weight, bias, &mut memory.clone())
    })
}

pub(super) fn layer(conv: &Conv, protocol: Protocol, slots: Option<usize>) -> Layer {
    Layer::new(conv, protocol, 8, 24, slots).unwrap()
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

const BOTH: [Protocol; 2] = [Protocol::Gazelle, Protocol::Gala];

fn shapes() -> Vec<Conv> {
    vec![
        conv([3, 4], [17, 13], 3, 2, 1),
        conv([5, 9], [16, 16], 3, 1, 1),
        conv([9, 20], [16, 16], 1, 1, 0),
        Conv { groups: 6, ..conv([6, 6], [8, 8], 3, 1, 1) },
        Conv::fully_connected(784, 30),
        Conv::fully_connected(100, 10),
        Conv::fully_connected(10, 2100),
    ]
}

#[test]
fn every_shape_computes_and_costs_what_is_said() {
    for conv in shapes() {
        for protocol in BOTH {
            check(&case(layer(&conv, protocol, None), &conv, 1 << 24));
        }
    }
}

#[test]
fn short_rows_are_repeated() {
    for conv in [conv([5, 9], [4, 4], 3, 1, 1), Conv::fully_connected(300, 30)] {
        for protocol in BOTH {
            check(&case(layer(&conv, protocol, Some(256)), &conv, 1 << 20));
        }
    }
}

#[test]
fn wide_accumulators_and_large_images_take_larger_rings() {
    let mut degrees = Vec::new();
    for (conv, plain_bits) in [
        (conv([2, 3], [5, 5], 3, 1, 1), 18),
        (conv([2, 3], [5, 5], 3, 1, 1), 40),
        (conv([2, 3], [5, 5], 1, 1, 0), 48),
        (conv([2, 3], [64, 60], 3, 1, 1), 20),
    ] {
        degrees.push(BOTH.map(|protocol| {
            let layer = Layer::new(&conv, protocol, 8, plain_bits, None).unwrap();
            let degree = layer.params().degree();
            check(&case(layer, &conv, 0));
            degree
        }));
    }
    assert_eq!(degrees, [[8192, 4096], [8192, 8192], [8192, 8192], [8192, 8192]]);
    let narrow = Layer::new(&Conv::fully_connected(4, 4), Protocol::Gala, 2, 5, None).unwrap();
    assert!(narrow.prime() > 1 << 16 && narrow.params().degree() == 4096);
}

#[test]
fn a_plan_shares_parameters() {
    let params = Params::new(8192, &[43, 43, 44], Switching::Special(44)).unwrap();
    let conv = conv([5, 9], [16, 16], 3, 1, 1);
    for protocol in BOTH {
        for slots in [None, Some(1024)] {
            let shared = layer(&conv, protocol, slots).with_params(&params).unwrap();
            assert_eq!(shared.slots(), slots.unwrap_or(4096));
            check(&case(shared, &conv, 1 << 22));
        }
    }
    let large = Layer::new(&conv, Protocol::Gala, 8, 45, None).unwrap();
    assert!(matches!(large.with_params(&params), Err(Error::Misuse(_))));
}

#[test]
fn threads_and_memory_change_no_byte() {
    let conv = conv([20, 18], [16, 16], 3, 1, 1);
    for protocol in BOTH {
        let mut one = case(layer(&conv, protocol, None), &conv, usize::MAX);
        let first = run(&one, None);
        one.threads = 3;
        let mut two = case(layer(&conv, protocol, None), &conv, 1 << 20);
        two.threads = 2;
        [one, two].iter().for_each(|case| same_bytes(&first, run(case, None)));
    }
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_sent() {
    let conv = conv([2, 2], [4, 4], 3, 1, 1);
    let gala = layer(&conv, Protocol::Gala, None);
    let other = Conv { out_channels: 3, ..conv.clone() };
    let prime = gala.prime();
    misfits_are_refused(|weight, bias| ServerWeights::new(&gala, weight, bias, &mut 0).err());
    let mut wrong = case(gala.clone(), &conv, 0);
    wrong.x[0][7] = prime;
    let (ours, _) = run(&wrong, None);
    assert!(matches!(ours.value, Err(Error::Misuse(_))) && ours.frames.is_empty());
    let mut wrong = case(gala.clone(), &conv, 0);
    wrong.weights = case(layer(&other, Protocol::Gala, None), &other, 0).weights;
    assert!(matches!(run(&wrong, None).1.value, Err(Error::Misuse(_))));
}
