//! Noise of responses against its bound.

use graph::Conv;
use he::bfv::noise::bound;
use he::bfv::{Ciphertext, SecretKey};
use ring::{Random, Seed};

use super::super::encode::WeightSlots;
use super::super::encrypted::Encrypted;
use super::super::evaluate::Evaluation;
use super::super::machine::{Evaluator, Machine};
use super::super::*;
use super::clear::Clear;
use crate::linear::coefficient::tests::conv;
use crate::linear::residues::uniform;
use crate::linear::slots::plan::Plan;

fn responses<E: Evaluator>(
    plan: &Plan,
    evaluator: E,
    encrypt: impl Fn(Vec<u64>) -> E::Cipher,
    x: &[u64],
) -> Vec<E::Cipher> {
    let machine = Machine::new(evaluator);
    let mut evaluation = Evaluation::new(plan, &machine, 2).unwrap();
    for piece in &plan.pieces {
        evaluation.push(encrypt(plan.input_slots(piece, x).to_vec())).unwrap();
    }
    let (products, parts) = evaluation.finish().unwrap();
    parts.into_iter().map(|part| products.response(part).unwrap()).collect()
}

/// Bits of the largest noise of all responses, on uniform slots, and of the bound.
fn measure(layer: &Layer, weight: &[i32], bias: &[i64]) -> (f64, f64) {
    let mut rng = Random::seeded(21);
    let key = SecretKey::generate(layer.params(), &mut rng).unwrap();
    let steps = layer.rotations();
    let keys = key.rotation_keys(&steps, false, &Seed([8; 16]), &mut rng).unwrap();
    let weights = ServerWeights::new(layer, weight, bias, &mut 0).unwrap();
    let (plan, x) = (&layer.plan, uniform(&mut rng, layer.inputs(), layer.prime()));
    let encrypt = |slots: Vec<u64>| -> Ciphertext {
        let slots = layer.rows_of(&slots);
        let fresh = key.encrypt(layer.encoder(), &slots, &mut Random::seeded(slots[0]));
        fresh.unwrap().expand(layer.params()).unwrap()
    };
    let encrypted = Encrypted { layer, keys: &keys, weights: &weights };
    let got = responses(plan, encrypted, encrypt, &x);
    let clear = Clear { plan, weights: WeightSlots::new(plan, layer.prime()), weight };
    let want = responses(plan, clear, |slots| slots, &x);
    let noise = got
        .iter()
        .zip(&want)
        .map(|(cipher, slots)| key.noise(layer.encoder(), cipher, &layer.rows_of(slots)).unwrap());
    (noise.fold(0.0, f64::max), bound(layer.encoder(), &layer.load()).unwrap())
}

/// Random weights, and weights that are all alike.
#[test]
fn noise_stays_within_its_bound() {
    for conv in [
        conv([5, 9], [16, 16], 3, 1, 1),
        Conv::fully_connected(784, 30),
        Conv::fully_connected(500, 1),
        Conv::fully_connected(2048, 2),
    ] {
        let count = conv.out_channels * conv.in_channels * conv.kernel[0] * conv.kernel[1];
        let mut rng = Random::seeded(22);
        let random = rng.uniform(count, 10).into_iter().map(|word| word as i32 - 512).collect();
        for weight in [random, vec![511; count]] {
            for protocol in [Protocol::Gazelle, Protocol::Gala] {
                let layer = Layer::new(&conv, protocol, 8, 24, None).unwrap();
                let (noise, bound) = measure(&layer, &weight, &vec![0; conv.out_channels]);
                let text = format!("{noise:.1} of {bound:.1} bits, {}", layer.describe());
                assert!(noise <= bound, "{text}");
                assert!(noise > bound - 12.0, "{text}");
            }
        }
    }
}
