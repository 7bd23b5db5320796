//! Garbling and evaluation of AND gates, one thread, no network. The numbers are per
//! gate of one instance.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use ring::{Bits, Random};
use tacit_gc::{Batch, Builder, Circuit, Garbler, Ring, Tables, evaluate};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    gates(&mut criterion, "relu 30 bits", relu(30), 1000);
    gates(&mut criterion, "sums 32 bits, one instance", sums(3000), 1);
    criterion.final_summary();
}

/// Shares added up, clamped to 8 bits.
#[allow(clippy::unwrap_used)]
fn relu(bits: u32) -> Circuit {
    let mut builder = Builder::new();
    let (a, b) = (builder.garbler(bits), builder.evaluator(bits));
    let sum = builder.add(&a, &b);
    let clamped = builder.clamp(&sum, 8);
    builder.output(&clamped, false);
    builder.finish().unwrap()
}

/// A long chain of sums.
#[allow(clippy::unwrap_used)]
fn sums(length: usize) -> Circuit {
    let mut builder = Builder::new();
    let (mut a, mut b) = (builder.garbler(32), builder.evaluator(32));
    for _ in 0..length {
        let sum = builder.add(&a, &b);
        a = b;
        b = sum;
    }
    builder.output(&b, true);
    builder.finish().unwrap()
}

#[allow(clippy::unwrap_used)]
fn gates(criterion: &mut Criterion, name: &str, circuit: Circuit, count: usize) {
    let mut rng = Random::seeded(1);
    let batch = Batch::new(Arc::new(circuit), count, vec![Ring::Power(30)]).unwrap();
    let zeros: Vec<u128> = (0..batch.evaluator_bits()).map(|_| rng.block()).collect();
    let mut group = criterion.benchmark_group("gates");
    group.throughput(Throughput::Elements(batch.and_gates() as u64));
    group.bench_function(BenchmarkId::new("garble", name), |bench| {
        bench.iter(|| {
            let garbler = Garbler::new(&batch, &mut rng);
            garbler.garble(&zeros, &mut |chunk| {
                black_box(chunk);
                Ok(())
            })
        });
    });
    let mut chunks = Vec::new();
    let garbler = Garbler::new(&batch, &mut rng);
    let garbling = garbler.garble(&zeros, &mut |chunk| {
        chunks.push(chunk);
        Ok(())
    });
    let bits = vec![Bits::zeros(count); batch.circuit().garbler_bits()];
    let (labels, _) = garbling.unwrap().finish(&bits).unwrap();
    group.bench_function(BenchmarkId::new("evaluate", name), |bench| {
        let tables = || {
            let mut again = chunks.iter().cloned();
            Tables::collect(&batch, |_| Ok(again.next().unwrap_or_default())).unwrap()
        };
        let run = |tables| evaluate(&batch, tables, &labels, &zeros);
        bench.iter_batched(tables, run, BatchSize::LargeInput);
    });
    group.finish();
}
