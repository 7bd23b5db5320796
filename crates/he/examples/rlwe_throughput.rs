//! Microseconds per operation, one thread.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use ring::{Random, Seed};
use tacit_he::rlwe::{Accumulator, Params, SecretKey, Weights};

fn time<T>(name: &str, count: usize, mut run: impl FnMut() -> T) {
    black_box(run());
    let start = Instant::now();
    for _ in 0..count {
        black_box(run());
    }
    println!("  {name:<22}{:>9.1} us", start.elapsed().as_secs_f64() * 1e6 / count as f64);
}

fn main() {
    for (degree, bits) in [(2048, 45), (4096, 50)] {
        let params = Params::new(degree, bits).unwrap();
        println!("{params}");
        let mut rng = Random::from_os().unwrap();
        let secret = SecretKey::generate(params, &mut rng).unwrap();
        let public = secret.public_key(&Seed([1; 16]), &mut rng).unwrap();
        let values = rng.uniform(degree, 22);
        let weights: Vec<i64> = values.iter().map(|v| *v as i64 % 128).collect();
        let keep: Vec<usize> = (0..degree).collect();

        time("encrypt", 100, || secret.encrypt(params, &values, 22, &mut rng).unwrap());
        let fresh = secret.encrypt(params, &values, 22, &mut rng).unwrap();
        time("expand and transform", 100, || fresh.expand(params).unwrap().into_operand().unwrap());
        time("transform weights", 100, || Weights::new(params, &weights).unwrap());
        let operand = fresh.expand(params).unwrap().into_operand().unwrap();
        let weights = Weights::new(params, &weights).unwrap();
        let mut sum = Accumulator::new(params).unwrap();
        time("multiply and add", 1000, || sum.accumulate(&operand, &weights).unwrap());
        time("transform back", 100, || Accumulator::new(params).unwrap().finish().unwrap());
        time("respond", 100, || {
            let cipher = fresh.expand(params).unwrap();
            cipher.respond(&public, &keep, 20, &mut rng).unwrap()
        });
        let cipher = fresh.expand(params).unwrap();
        let (response, _) = cipher.respond(&public, &keep, 20, &mut rng).unwrap();
        time("decrypt", 100, || secret.decrypt(&response, &keep).unwrap());
    }
}
