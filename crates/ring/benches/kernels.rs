//! Packing, bit planes and the generator, one thread. The numbers are per value
//! and per byte.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use tacit_ring::pack::{pack_into, unpack};
use tacit_ring::plane::{gather, gather_words, scatter, scatter_words};
use tacit_ring::{Prg, Seed};

/// Values per iteration, few enough for the first cache.
const COUNT: usize = 2048;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    packing(&mut criterion);
    planes(&mut criterion);
    generator(&mut criterion);
    criterion.final_summary();
}

fn packing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pack");
    group.throughput(Throughput::Elements(COUNT as u64));
    for bits in [1, 2, 5, 8, 12, 16, 20, 32, 37, 64] {
        let values = Prg::new(&Seed([1; 16]), 0).uniform(COUNT, bits);
        let mut bytes = Vec::new();
        group.bench_function(BenchmarkId::new("pack", bits), |bench| {
            bench.iter(|| {
                bytes.clear();
                pack_into(&mut bytes, black_box(&values), bits);
            });
        });
        group.bench_function(BenchmarkId::new("unpack", bits), |bench| {
            bench.iter(|| unpack(black_box(&bytes), COUNT, bits));
        });
    }
    group.finish();
}

fn planes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("plane");
    group.throughput(Throughput::Elements(COUNT as u64));
    let mut words = Prg::new(&Seed([2; 16]), 0).uniform(COUNT, 64);
    let mut bytes: Vec<u8> = words.iter().map(|word| *word as u8).collect();
    let mut plane = Vec::with_capacity(COUNT / 64);
    group.bench_function("gather", |bench| {
        bench.iter(|| {
            plane.clear();
            gather(black_box(&bytes), 3, &mut plane);
        });
    });
    group.bench_function("scatter", |bench| bench.iter(|| scatter(&plane, 3, &mut bytes)));
    group.bench_function("gather words", |bench| {
        bench.iter(|| {
            plane.clear();
            gather_words(black_box(&words), 3, &mut plane);
        });
    });
    group.bench_function("scatter words", |bench| {
        bench.iter(|| scatter_words(&plane, 3, &mut words));
    });
    group.finish();
}

fn generator(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("prg");
    let mut prg = Prg::new(&Seed([3; 16]), 0);
    let mut bytes = vec![0; 8 * COUNT];
    group.bench_function("new", |bench| bench.iter(|| Prg::new(&Seed([4; 16]), 0).word()));
    group.throughput(Throughput::Bytes(8 * COUNT as u64));
    group.bench_function("fill", |bench| bench.iter(|| prg.fill(&mut bytes)));
    group.bench_function("uniform", |bench| bench.iter(|| prg.uniform(COUNT, 20)));
    group.finish();
}
