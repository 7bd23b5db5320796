//! Slot-packed ciphertexts, one thread, beside the crate `fhe` with the same primes' sizes.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use criterion::Criterion;
use fhe::bfv as other;
use fhe_traits::{FheDecrypter, FheEncoder, FheEncrypter};
use ring::{Random, Seed};
use tacit_he::bfv::noise::Load;
use tacit_he::bfv::{Accumulator, Encoder, Multiplier, Params, SecretKey, Switching};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    encryption(&mut criterion);
    for (degree, moduli, special) in [(4096, &[35, 35][..], 36), (8192, &[42, 43, 43, 43], 43)] {
        evaluation(&mut criterion, degree, moduli, special);
        yardstick(&mut criterion, degree, moduli, special);
    }
    products(&mut criterion);
    criterion.final_summary();
}

fn encryption(criterion: &mut Criterion) {
    let params = Params::new(4096, &[50, 50], Switching::Digits(17)).unwrap();
    let mut rng = Random::seeded(1);
    let encoder = Encoder::new(&params, Encoder::prime_above(&params, 22).unwrap()).unwrap();
    let secret = SecretKey::generate(&params, &mut rng).unwrap();
    let public = secret.public_key(&Seed([1; 16]), &mut rng).unwrap();
    let slots = rng.uniform(4096, 22);
    let fresh = secret.encrypt(&encoder, &slots, &mut rng).unwrap();
    let cipher = fresh.expand(&params).unwrap();
    let load = Load { plain_bits: 22, rotations_before: 0, terms: 1, rotations_after: 0 };
    let response = cipher.clone().respond(&public, &encoder, &slots, &load, &mut rng).unwrap();
    let mut group = criterion.benchmark_group("bfv 4096 {50,50}");
    group.bench_function("encrypt", |bench| {
        bench.iter(|| secret.encrypt(&encoder, &slots, &mut rng).unwrap());
    });
    group.bench_function("expand", |bench| bench.iter(|| fresh.expand(&params).unwrap()));
    group.bench_function("plain", |bench| bench.iter(|| encoder.plain(&slots).unwrap()));
    group.bench_function("respond", |bench| {
        bench.iter(|| cipher.clone().respond(&public, &encoder, &slots, &load, &mut rng).unwrap());
    });
    group.bench_function("decrypt", |bench| {
        bench.iter(|| secret.decrypt(&encoder, &response).unwrap());
    });
    let keys = secret.rotation_keys(&[1], false, &Seed([2; 16]), &mut rng).unwrap();
    group.bench_function("rotate, digits of 17", |bench| {
        bench.iter(|| cipher.rotate(&keys, 1).unwrap());
    });
    group.finish();
    let mut rng = rand_fhe::rng();
    let params = other::BfvParametersBuilder::new()
        .set_degree(4096)
        .set_plaintext_modulus(encoder.prime())
        .set_moduli_sizes(&[50, 50])
        .build_arc()
        .unwrap();
    let key = other::SecretKey::random(&params, &mut rng);
    let encode = || other::Plaintext::try_encode(&slots, other::Encoding::simd(), &params).unwrap();
    let encrypt = |rng: &mut rand_fhe::rngs::ThreadRng| -> other::Ciphertext {
        key.try_encrypt(&encode(), rng).unwrap()
    };
    let cipher = encrypt(&mut rng);
    let mut group = criterion.benchmark_group("bfv by crate fhe 4096 {50,50}");
    group.bench_function("encrypt", |bench| bench.iter(|| encrypt(&mut rng)));
    group.bench_function("decrypt", |bench| bench.iter(|| key.try_decrypt(&cipher).unwrap()));
    group.finish();
}

fn evaluation(criterion: &mut Criterion, degree: usize, moduli: &[u32], special: u32) {
    let params = Params::new(degree, moduli, Switching::Special(special)).unwrap();
    let mut rng = Random::seeded(1);
    let encoder = Encoder::new(&params, Encoder::prime_above(&params, 20).unwrap()).unwrap();
    let secret = SecretKey::generate(&params, &mut rng).unwrap();
    let keys = secret.rotation_keys(&[1], false, &Seed([2; 16]), &mut rng).unwrap();
    let slots = rng.uniform(degree, 20);
    let cipher = secret.encrypt(&encoder, &slots, &mut rng).unwrap().expand(&params).unwrap();
    let plain = encoder.plain(&slots).unwrap();
    let mut group = criterion.benchmark_group(format!("bfv {degree} {moduli:?} + {special}"));
    group.bench_function("rotate", |bench| bench.iter(|| cipher.rotate(&keys, 1).unwrap()));
    let hoisted = cipher.hoist();
    group.bench_function("hoist", |bench| bench.iter(|| cipher.hoist()));
    group.bench_function("rotate, hoisted", |bench| {
        bench.iter(|| hoisted.rotate(&keys, 1).unwrap());
    });
    group.bench_function("multiply", |bench| bench.iter(|| cipher.multiply(&plain).unwrap()));
    let mut sum = Accumulator::new(&params);
    group.bench_function("multiply and add", |bench| {
        bench.iter(|| sum.multiply_add(&cipher, &plain).unwrap());
    });
    group.finish();
}

/// The special prime is the one that ciphertexts of level 1 have dropped.
fn yardstick(criterion: &mut Criterion, degree: usize, moduli: &[u32], special: u32) {
    let mut rng = rand_fhe::rng();
    let sizes: Vec<usize> = moduli.iter().chain([&special]).map(|bits| *bits as usize).collect();
    let params: Arc<other::BfvParameters> = other::BfvParametersBuilder::new()
        .set_degree(degree)
        .set_plaintext_modulus(1_032_193)
        .set_moduli_sizes(&sizes)
        .build_arc()
        .unwrap();
    let key = other::SecretKey::random(&params, &mut rng);
    let slots: Vec<u64> = (0..degree as u64).collect();
    let plain =
        other::Plaintext::try_encode(&slots, other::Encoding::simd_at_level(1), &params).unwrap();
    let cipher: other::Ciphertext = key.try_encrypt(&plain, &mut rng).unwrap();
    let keys = other::EvaluationKeyBuilder::new_leveled(&key, 1, 0)
        .unwrap()
        .enable_column_rotation(1)
        .unwrap()
        .build(&mut rng)
        .unwrap();
    let mut group =
        criterion.benchmark_group(format!("bfv by crate fhe {degree} {moduli:?} + {special}"));
    group.bench_function("rotate", |bench| {
        bench.iter(|| keys.rotates_columns_by(&cipher, 1).unwrap());
    });
    group.bench_function("multiply", |bench| bench.iter(|| &cipher * &plain));
    group.finish();
}

/// One digit per prime and no special prime, as `fhe` switches keys at level 0.
fn products(criterion: &mut Criterion) {
    let moduli = [42, 43, 43, 43, 43];
    let params = Params::new(8192, &moduli, Switching::Digits(44)).unwrap();
    let mut rng = Random::seeded(1);
    let encoder = Encoder::new(&params, Encoder::prime_above(&params, 20).unwrap()).unwrap();
    let secret = SecretKey::generate(&params, &mut rng).unwrap();
    let key = secret.relinearization_key(&Seed([2; 16]), &mut rng).unwrap();
    let multiplier = Multiplier::new(&params, &encoder).unwrap();
    let slots = rng.uniform(8192, 20);
    let cipher = secret.encrypt(&encoder, &slots, &mut rng).unwrap().expand(&params).unwrap();
    let mut group = criterion.benchmark_group("bfv 8192 {42,43,43,43,43}");
    group.bench_function("multiply and relinearize", |bench| {
        bench.iter(|| multiplier.multiply(&cipher, &cipher, &key).unwrap());
    });
    group.bench_function("square and relinearize", |bench| {
        bench.iter(|| multiplier.square(&cipher, &key).unwrap());
    });
    group.finish();
    let mut rng = rand_fhe::rng();
    let params = other::BfvParametersBuilder::new()
        .set_degree(8192)
        .set_plaintext_modulus(encoder.prime())
        .set_moduli_sizes(&moduli.map(|bits| bits as usize))
        .build_arc()
        .unwrap();
    let key = other::SecretKey::random(&params, &mut rng);
    let relinearization = other::RelinearizationKey::new(&key, &mut rng).unwrap();
    let multiplier = other::Multiplicator::default(&relinearization).unwrap();
    let plain = other::Plaintext::try_encode(&slots, other::Encoding::simd(), &params).unwrap();
    let cipher: other::Ciphertext = key.try_encrypt(&plain, &mut rng).unwrap();
    let mut group = criterion.benchmark_group("bfv by crate fhe 8192 {42,43,43,43,43}");
    group.bench_function("multiply and relinearize", |bench| {
        bench.iter(|| multiplier.multiply(&cipher, &cipher).unwrap());
    });
    group.finish();
}
