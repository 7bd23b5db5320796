//! The same slots through the crate `fhe`.
#![allow(clippy::unwrap_used)]

use fhe::bfv as other;
use fhe_traits::{FheDecoder, FheDecrypter, FheEncoder, FheEncrypter};
use ring::{Random, Seed};
use tacit_he::bfv::{Encoder, Params, SecretKey, Switching};

const DEGREE: usize = 8192;

/// `(a*b + c) rotated left by 3, rows swapped, minus a`.
fn ours(prime: u64, [a, b, c]: [&Vec<u64>; 3]) -> Vec<u64> {
    let params = Params::new(DEGREE, &[43, 43, 44], Switching::Special(44)).unwrap();
    let mut rng = Random::seeded(5);
    let encoder = Encoder::new(&params, prime).unwrap();
    let secret = SecretKey::generate(&params, &mut rng).unwrap();
    let keys = secret.rotation_keys(&[3], true, &Seed([1; 16]), &mut rng).unwrap();
    let input = secret.encrypt(&encoder, a, &mut rng).unwrap().expand(&params).unwrap();
    let mut sum = input.multiply(&encoder.plain(b).unwrap()).unwrap();
    sum.add_slots(&encoder, c).unwrap();
    let mut turned = sum.rotate(&keys, 3).unwrap().swap_rows(&keys).unwrap();
    turned.sub(&input).unwrap();
    secret.open(&encoder, &turned).unwrap().to_vec()
}

fn theirs(prime: u64, slots: [&Vec<u64>; 3]) -> Vec<u64> {
    let mut rng = rand_fhe::rng();
    let params = other::BfvParametersBuilder::new()
        .set_degree(DEGREE)
        .set_plaintext_modulus(prime)
        .set_moduli_sizes(&[43, 43, 44])
        .build_arc()
        .unwrap();
    let key = other::SecretKey::random(&params, &mut rng);
    let keys = other::EvaluationKeyBuilder::new(&key)
        .unwrap()
        .enable_column_rotation(3)
        .unwrap()
        .enable_row_rotation()
        .unwrap()
        .build(&mut rng)
        .unwrap();
    let [a, b, c] =
        slots.map(|s| other::Plaintext::try_encode(s, other::Encoding::simd(), &params).unwrap());
    let input: other::Ciphertext = key.try_encrypt(&a, &mut rng).unwrap();
    let sum = &(&input * &b) + &c;
    let turned = keys.rotates_rows(&keys.rotates_columns_by(&sum, 3).unwrap()).unwrap();
    let result = key.try_decrypt(&(&turned - &input)).unwrap();
    Vec::<u64>::try_decode(&result, other::Encoding::simd()).unwrap()
}

#[test]
fn equals_the_crate_fhe_slot_by_slot() {
    let prime = 1_032_193;
    let mut rng = Random::seeded(4);
    let slots = [0; 3].map(|_| {
        rng.uniform(DEGREE, 40).into_iter().map(|word| word % prime).collect::<Vec<u64>>()
    });
    let slots = slots.each_ref();
    assert!(ours(prime, slots) == theirs(prime, slots));
}
