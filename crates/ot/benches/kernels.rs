//! Correlations, transposition and pads, one thread, no network. The numbers
//! are per correlation, matrix and pad.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use ring::Random;
use ring::simd::Level;
use tacit_ot::Field;
use tacit_ot::ideal::deal;
use tacit_ot::measure::{Extension, receiver_pads, sender_pads, transpositions};

/// Grains of 128 correlations per iteration.
const GRAINS: usize = 64;
/// Correlations per iteration of the pads; a multiple of 1, 2, 3 and 4.
const COTS: usize = 12_288;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    Level::available().into_iter().for_each(|level| softspoken(&mut criterion, level));
    transposition(&mut criterion);
    pads(&mut criterion);
    criterion.final_summary();
}

fn softspoken(criterion: &mut Criterion, level: Level) {
    let mut group = criterion.benchmark_group("softspoken");
    group.throughput(Throughput::Elements(128 * GRAINS as u64));
    for field in Field::ALL {
        let mut both = Extension::new([level; 2], field, &mut Random::seeded(1));
        let (mut blocks, mut choices) = (Vec::new(), Vec::new());
        let name = |side| BenchmarkId::new(format!("{field:?} {side}"), label(level));
        group.bench_function(name("receiver"), |bench| {
            bench.iter(|| black_box(both.receive(GRAINS, &mut blocks, &mut choices)));
        });
        let corrections = both.receive(GRAINS, &mut blocks, &mut choices);
        group.bench_function(name("sender"), |bench| {
            let message = || corrections.clone();
            let send = |message| both.send(GRAINS, message, &mut blocks);
            bench.iter_batched(message, send, BatchSize::SmallInput);
        });
    }
    group.finish();
}

fn transposition(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("transpose");
    group.throughput(Throughput::Elements(8 * 16));
    for level in Level::available() {
        group.bench_function(label(level), |bench| {
            bench.iter(|| transpositions(black_box(level), 16));
        });
    }
    group.finish();
}

fn pads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pads");
    let mut rng = Random::seeded(2);
    for m in 1..=4 {
        let elements = (COTS / m as usize) as u64;
        group.throughput(Throughput::Elements(elements << m));
        group.bench_function(BenchmarkId::new("sender", m), |bench| {
            let batch = || deal(&mut rng, COTS).0;
            bench.iter_batched(batch, |batch| sender_pads(batch, m), BatchSize::SmallInput);
        });
        group.throughput(Throughput::Elements(elements));
        group.bench_function(BenchmarkId::new("receiver", m), |bench| {
            let batch = || deal(&mut rng, COTS).1;
            bench.iter_batched(batch, |batch| receiver_pads(batch, m), BatchSize::SmallInput);
        });
    }
    group.finish();
}

fn label(level: Level) -> String {
    format!("{:?}{}", level.width(), if level.vaes() { " VAES" } else { "" })
}
