//! Ciphertext operations and the transforms under them, one thread, per
//! ciphertext or polynomial.
#![allow(clippy::unwrap_used)]

use criterion::{BenchmarkId, Criterion};
use ring::{Random, Seed};
use tacit_he::rlwe::{Accumulator, Params, SecretKey, Weights};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for (degree, bits) in [(2048, 45), (4096, 50)] {
        rlwe(&mut criterion, Params::new(degree, bits).unwrap());
    }
    criterion.final_summary();
}

fn rlwe(criterion: &mut Criterion, params: Params) {
    let mut rng = Random::seeded(1);
    let degree = params.degree();
    let secret = SecretKey::generate(params, &mut rng).unwrap();
    let public = secret.public_key(&Seed([1; 16]), &mut rng).unwrap();
    let values = rng.uniform(degree, 22);
    let weights: Vec<i64> = values.iter().map(|value| *value as i64 % 128).collect();
    let keep: Vec<usize> = (0..degree).collect();
    let fresh = secret.encrypt(params, &values, 22, &mut rng).unwrap();
    let cipher = fresh.expand(params).unwrap();
    let (response, _) = cipher.respond(&public, &keep, 20, &mut rng).unwrap();

    let mut group = criterion.benchmark_group("rlwe");
    let name = |what| BenchmarkId::new(what, degree);
    group.bench_function(name("encrypt"), |bench| {
        bench.iter(|| secret.encrypt(params, &values, 22, &mut rng).unwrap());
    });
    group.bench_function(name("respond"), |bench| {
        bench.iter(|| {
            let cipher = fresh.expand(params).unwrap();
            cipher.respond(&public, &keep, 20, &mut rng).unwrap()
        });
    });
    group.bench_function(name("decrypt"), |bench| {
        bench.iter(|| secret.decrypt(&response, &keep).unwrap());
    });
    group.bench_function(name("ntt"), |bench| {
        bench.iter(|| Weights::new(params, &weights).unwrap());
    });
    group.bench_function(name("two inverse ntt"), |bench| {
        bench.iter(|| Accumulator::new(params).unwrap().finish().unwrap());
    });
    group.finish();
}
