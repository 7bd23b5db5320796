//! Ciphertext operations and the transforms under them, one thread, per
//! ciphertext or polynomial.
#![allow(clippy::unwrap_used)]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use ring::{Random, Seed};
use tacit_he::rlwe::direct::TOGETHER;
use tacit_he::rlwe::{Accumulator, Ciphertext, Direct, Params, SecretKey, Weights};

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
    let (response, _) =
        fresh.expand(params).unwrap().respond(&public, &keep, 20, &mut rng).unwrap();

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
    let powers: Vec<usize> = (0..9).map(|i| 61 * i).collect();
    let plan = Direct::new(params, &powers, 127, 9, &keep).unwrap();
    let several: Vec<Ciphertext> = (0..16).map(|_| fresh.expand(params).unwrap()).collect();
    let factors = plan.factors(&several.iter().collect::<Vec<_>>()).unwrap();
    let mut sums = plan.zero();
    let taps: Vec<i32> = (0..16 * 9 * TOGETHER as i32).map(|i| i % 36 * 3 - 50).collect();
    group.throughput(Throughput::Elements((16 * plan.work() * TOGETHER) as u64));
    group.bench_function(name("direct, 16 ciphertexts, 9 terms, 4 results"), |bench| {
        bench.iter(|| plan.accumulate(&mut sums, &factors, &taps).unwrap());
    });
    group.throughput(Throughput::Elements(2 * degree as u64));
    let operand = fresh.expand(params).unwrap().into_operand().unwrap();
    let evaluated = Weights::new(params, &weights).unwrap();
    let zero = || Accumulator::new(params).unwrap();
    group.bench_function(name("evaluated product"), |bench| {
        bench.iter_batched_ref(
            zero,
            |sum| sum.accumulate(&operand, &evaluated).unwrap(),
            BatchSize::LargeInput,
        );
    });
    group.bench_function(name("two inverse ntt"), |bench| {
        bench.iter(|| Accumulator::new(params).unwrap().finish().unwrap());
    });
    group.finish();
}
