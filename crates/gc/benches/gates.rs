//! Garbling and evaluation of AND gates, one thread, no network. The numbers are per
//! gate of one instance.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use ring::{Bits, Random};
use tacit_gc::tagged::{self, BitTags, MacKeys, TaggedBatch, tags_of_bits};
use tacit_gc::{Batch, Builder, Circuit, Garbler, Ring, Tables, evaluate};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    gates(&mut criterion, "relu 30 bits", relu(30), 1000);
    gates(&mut criterion, "sums 32 bits, one instance", sums(3000), 1);
    tagged_relus(&mut criterion);
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

/// The same with a tagged output, whose bits count where the sum is within its limits.
#[allow(clippy::unwrap_used)]
fn tagged_relu(bits: u32) -> Circuit {
    let mut builder = Builder::new();
    let (a, b) = (builder.garbler(bits), builder.evaluator(bits));
    let sum = builder.add(&a, &b);
    builder.output_clamped(&sum, 8);
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

/// ReLUs of 12 bits to 8 bits with tagged outputs, and the tags of the 20 bits of a share. The
/// numbers are per ReLU.
#[allow(clippy::unwrap_used)]
fn tagged_relus(criterion: &mut Criterion) {
    let (count, mut rng) = (8192, Random::seeded(1));
    let batch = TaggedBatch::new(Arc::new(tagged_relu(12)), count, vec![26]).unwrap();
    let plan = BitTags::new(count, 20, 60).unwrap();
    let keys = MacKeys::new(rng.block(), &mut rng);
    let zeros: Vec<u128> = (0..plan.labels()).map(|_| rng.block()).collect();
    let ours = vec![Bits::zeros(count); 12];
    let all = vec![Bits::zeros(count); 20];
    let entered = &zeros[..batch.evaluator_bits()];
    let mut group = criterion.benchmark_group("tagged relu, 12 bits");
    group.throughput(Throughput::Elements(count as u64));
    let (mut tables, mut words) = (Vec::new(), Vec::new());
    let keep = |to: &mut Vec<Vec<u8>>, chunk| {
        to.push(chunk);
        Ok(())
    };
    let mut sink = |chunk| keep(&mut tables, chunk);
    tagged::garble(&batch, &keys, entered, &ours, &mut rng, &mut sink).unwrap();
    plan.garble(&keys, &zeros, &mut rng, &mut |chunk| keep(&mut words, chunk)).unwrap();
    let again = |chunks: &[Vec<u8>], total: usize| {
        let mut chunks = chunks.iter().cloned();
        Tables::collect_bytes(total, |_| Ok(chunks.next().unwrap_or_default())).unwrap()
    };
    let mut drop_chunk = |chunk: Vec<u8>| {
        black_box(chunk);
        Ok(())
    };
    group.bench_function("garble", |bench| {
        bench.iter(|| {
            tagged::garble(&batch, &keys, entered, &ours, &mut rng, &mut drop_chunk).unwrap()
        });
    });
    group.bench_function("evaluate", |bench| {
        let run = |tables| tagged::evaluate(&batch, tables, entered).unwrap();
        let tables = || again(&tables, batch.table_bytes());
        bench.iter_batched(tables, run, BatchSize::LargeInput);
    });
    group.bench_function("words of tags", |bench| {
        bench.iter(|| plan.garble(&keys, &zeros, &mut rng, &mut drop_chunk).unwrap());
    });
    group.bench_function("tags", |bench| {
        let run = |words| tags_of_bits(&plan, words, &all, &zeros).unwrap();
        bench.iter_batched(|| again(&words, plan.bytes()), run, BatchSize::LargeInput);
    });
    group.finish();
}
