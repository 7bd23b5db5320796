//! Garbling and evaluation of AND gates, one thread, no network. The numbers are per
//! gate of one instance.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use ot::gates::{GateHash, hash_input};
use ring::simd::Level;
use ring::{Bits, Random};
use tacit_gc::tagged::{self, BitTags, MacKeys, TaggedBatch, tags_of_bits};
use tacit_gc::{Batch, Builder, Circuit, Garbler, Ring, Tables, evaluate};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    gates(&mut criterion, "relu 30 bits", relu(30), 1000);
    gates(&mut criterion, "sums 32 bits, one instance", sums(3000), 1);
    tagged_relus(&mut criterion);
    authenticated_gates(&mut criterion);
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

/// AND gates of one of the ReLUs of [`tagged_relus`].
const GATES: usize = 14;
/// Instances that share a key of the hash.
const EIGHT: usize = 8;

/// Products `x*y` of committed bits x of the client and bits y of the server, as shares with tags of 64 bits at the
/// client: half of an AND gate of shared bits without garbling (TinyOT with tags on one side).
struct CrossTerms {
    delta: u128,
    zeros: Vec<u128>,
    /// All ones where y is 1.
    server: Vec<u128>,
}

/// A bit and the 64 bits of its tag.
const fn part(hash: u128) -> u128 {
    hash & ((1 << 65) - 1)
}

impl CrossTerms {
    fn new(count: usize, delta: u128, rng: &mut Random) -> Self {
        let zeros = (0..count).map(|_| rng.block()).collect();
        let server = (0..count).map(|_| u128::from(rng.word() & 1).wrapping_neg()).collect();
        Self { delta, zeros, server }
    }

    /// A one, and what its tag has more than that of a zero.
    fn one(&self) -> u128 {
        1 | part(self.delta << 1)
    }

    /// The server's words, of 65 bits, and its shares with their keys.
    fn words(&self, hash: &mut GateHash, words: &mut Vec<u128>, shares: &mut Vec<u128>) {
        let (shift, mut blocks) = (hash_input(self.delta, 0), [0; 2 * EIGHT]);
        words.clear();
        shares.clear();
        for (zeros, server) in self.zeros.chunks(EIGHT).zip(self.server.chunks(EIGHT)) {
            let (low, high) = blocks.split_at_mut(EIGHT);
            for (lane, ((low, high), zero)) in low.iter_mut().zip(high).zip(zeros).enumerate() {
                *low = hash_input(*zero, lane as u64);
                *high = *low ^ shift;
            }
            let first = hash.next(1);
            hash.hash(first, 4, &mut blocks);
            let (low, high) = blocks.split_at(EIGHT);
            for ((low, high), y) in low.iter().zip(high).zip(server) {
                words.push(part(low ^ high ^ (y & self.one())));
                shares.push(part(*low));
            }
        }
    }

    /// The client's shares with their tags, from its labels and whether it has a one.
    fn shares(
        hash: &mut GateHash,
        labels: &[u128],
        ones: &[u128],
        words: &[u128],
        to: &mut Vec<u128>,
    ) {
        let mut blocks = [0; EIGHT];
        to.clear();
        let groups = labels.chunks(EIGHT).zip(ones.chunks(EIGHT)).zip(words.chunks(EIGHT));
        for ((labels, ones), words) in groups {
            for (lane, (block, label)) in blocks.iter_mut().zip(labels).enumerate() {
                *block = hash_input(*label, lane as u64);
            }
            let first = hash.next(1);
            hash.hash(first, 3, &mut blocks);
            let rows = blocks.iter().zip(ones).zip(words);
            to.extend(rows.map(|((block, one), word)| part(block ^ (word & one))));
        }
    }
}

/// The gates of the layer of [`tagged_relus`] by authenticated bits: the two cross terms of each, which the server sends 130
/// bits for. A gate takes a correction and four opened bits besides, and the client proves its own products, so the
/// numbers, which are per ReLU, are less than the whole.
fn authenticated_gates(criterion: &mut Criterion) {
    let (count, mut rng) = (8192, Random::seeded(2));
    let delta = rng.block() | 1;
    let terms = CrossTerms::new(2 * GATES * count, delta, &mut rng);
    let ones: Vec<u128> =
        terms.zeros.iter().map(|_| u128::from(rng.word() & 1).wrapping_neg()).collect();
    let labels = terms.zeros.iter().zip(&ones).map(|(zero, one)| zero ^ (delta & one));
    let labels: Vec<u128> = labels.collect();
    let fresh = || GateHash::new(7, Level::best());
    let (mut words, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    terms.words(&mut fresh(), &mut words, &mut ours);
    CrossTerms::shares(&mut fresh(), &labels, &ones, &words, &mut theirs);
    let products = ones.iter().zip(&terms.server).map(|(x, y)| x & y & terms.one());
    for ((ours, theirs), product) in ours.iter().zip(&theirs).zip(products) {
        assert_eq!(ours ^ theirs, product, "a share or its tag");
    }
    let mut group = criterion.benchmark_group("authenticated gates");
    group.throughput(Throughput::Elements(count as u64));
    group.bench_function("words", |bench| {
        bench.iter(|| terms.words(&mut fresh(), &mut words, &mut ours));
    });
    let words = words.clone();
    group.bench_function("shares", |bench| {
        bench.iter(|| CrossTerms::shares(&mut fresh(), &labels, &ones, &words, &mut theirs));
    });
    group.finish();
}
