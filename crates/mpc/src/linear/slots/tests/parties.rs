//! Both parties in memory, under encryption.

use graph::Conv;
use he::bfv::{Params, SecretKey, Switching};
use ring::word::signed;
use ring::{Random, Seed};
use wire::testing::{Outcome, Tamper, run_tampered};
use wire::{Error, Result, Role};
use zeroize::Zeroizing;

use super::super::server::counted_server;
use super::super::*;
use crate::linear::coefficient::tests::{clear, conv};
use crate::linear::residues::{add, lift, negate, uniform};

type Words = Zeroizing<Vec<u64>>;

/// A layer with everything that both parties bring.
pub(super) struct Case {
    pub(super) layer: Layer,
    pub(super) weights: ServerWeights,
    x: [Words; 2],
    want: Vec<i64>,
    pub(super) threads: usize,
}

/// Random inputs of 8 bits and weights of 6.
pub(super) fn case(layer: Layer, conv: &Conv, memory: usize) -> Case {
    let mut rng = Random::seeded(5);
    let prime = layer.prime();
    let mut random = |count, bits| -> Vec<i64> {
        rng.uniform(count, bits).into_iter().map(|word| signed(word, bits)).collect()
    };
    let x = random(layer.inputs(), 8);
    let per_output = conv.group_channels() * conv.kernel[0] * conv.kernel[1];
    let weight = random(conv.out_channels * per_output, 6);
    let weight: Vec<i32> = weight.into_iter().map(|w| w as i32).collect();
    let bias = random(conv.out_channels, 10);
    let want = clear(conv, &x, &weight, &bias);
    let theirs = uniform(&mut rng, x.len(), prime);
    let ours = x.iter().zip(theirs.iter());
    let ours = ours.map(|(x, s)| add(lift(*x, prime), negate(*s, prime), prime)).collect();
    let weights = ServerWeights::new(&layer, &weight, &bias, &mut memory.clone()).unwrap();
    Case { layer, weights, x: [Zeroizing::new(ours), theirs], want, threads: 1 }
}

pub(super) fn layer(conv: &Conv, protocol: Protocol, slots: Option<usize>) -> Layer {
    Layer::new(conv, protocol, 8, 24, slots).unwrap()
}

type Both = (Outcome<Result<Words>>, Outcome<Result<(Words, Operations)>>);

pub(super) fn run(case: &Case, tamper: Option<(Role, usize, Tamper)>) -> Both {
    let layer = &case.layer;
    let mut rng = Random::seeded(77);
    let key = SecretKey::generate(layer.params(), &mut rng).unwrap();
    let public = key.public_key(&Seed([9; 16]), &mut rng).unwrap();
    let steps = layer.rotations();
    let rotations = key.rotation_keys(&steps, false, &Seed([8; 16]), &mut rng).unwrap();
    let keys = ServerKeys { public, rotations };
    run_tampered(
        tamper,
        |ch| {
            let mut rng = Random::seeded(78);
            let worker = &mut Worker { rng: &mut rng, threads: case.threads };
            client(ch, layer, &key, &case.x[0], worker)
        },
        |ch| {
            let mut rng = Random::seeded(79);
            let worker = &mut Worker { rng: &mut rng, threads: case.threads };
            counted_server(ch, layer, &keys, &case.weights, &case.x[1], worker)
        },
    )
}

fn check(case: &Case) {
    let (ours, theirs) = run(case, None);
    assert_eq!(ours.cost, case.layer.cost());
    assert_eq!(theirs.cost, case.layer.cost());
    let (theirs, operations) = theirs.value.unwrap();
    assert_eq!(operations, case.layer.operations());
    let prime = case.layer.prime();
    let ours = ours.value.unwrap();
    let sums = ours.iter().zip(theirs.iter()).map(|(a, b)| add(*a, *b, prime));
    let got: Vec<i64> = sums
        .collect::<Vec<u64>>()
        .into_iter()
        .map(|y| if y > prime / 2 { -(negate(y, prime) as i64) } else { y as i64 })
        .collect();
    assert!(got == case.want, "{}", case.layer.describe());
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
        let (ours, theirs) = run(&one, None);
        one.threads = 3;
        let mut two = case(layer(&conv, protocol, None), &conv, 1 << 20);
        two.threads = 2;
        for case in [one, two] {
            let (client, server) = run(&case, None);
            assert!(client.frames == ours.frames && server.frames == theirs.frames);
            assert!(*client.value.unwrap() == **ours.value.as_ref().unwrap());
            assert!(server.value.unwrap() == *theirs.value.as_ref().unwrap());
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_sent() {
    let conv = conv([2, 2], [4, 4], 3, 1, 1);
    let gala = layer(&conv, Protocol::Gala, None);
    let other = Conv { out_channels: 3, ..conv.clone() };
    let prime = gala.prime();
    let weights = |weight: &[i32], bias: &[i64]| {
        ServerWeights::new(&gala, weight, bias, &mut 0).map(|_| ()).unwrap_err()
    };
    assert!(weights(&[0; 35], &[0; 2]).to_string().contains("fit"));
    assert!(weights(&[1 << 24; 36], &[0; 2]).to_string().contains("wider"));
    assert!(weights(&[0; 36], &[1 << 24; 2]).to_string().contains("wider"));
    let mut wrong = case(gala.clone(), &conv, 0);
    wrong.x[0][7] = prime;
    let (ours, _) = run(&wrong, None);
    assert!(matches!(ours.value, Err(Error::Misuse(_))) && ours.frames.is_empty());
    let mut wrong = case(gala.clone(), &conv, 0);
    wrong.weights = case(layer(&other, Protocol::Gala, None), &other, 0).weights;
    assert!(matches!(run(&wrong, None).1.value, Err(Error::Misuse(_))));
}
