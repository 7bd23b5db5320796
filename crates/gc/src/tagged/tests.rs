//! Tagged circuits against clear ones, and tags against alpha.

use std::collections::HashSet;
use std::sync::Arc;

use ring::simd::Level;
use ring::{Bits, Random};
use wire::Error;

use super::bits::tags_at;
use super::evaluate::evaluate_at;
use super::garble::{Entered, garble_at};
use super::wide::mask;
use super::*;
use crate::{Builder, Circuit, Tables};

/// Shares added up, clamped to `out` bits; and the sum itself.
fn relu(bits: u32, out: usize) -> Circuit {
    let mut builder = Builder::new();
    let (a, b) = (builder.garbler(bits), builder.evaluator(bits));
    let sum = builder.add(&a, &b);
    let clamped = builder.clamp(&sum, out);
    builder.output(&clamped, false);
    builder.output(&sum, true);
    builder.finish().unwrap()
}

/// The same, whose clamped bits count where the sum is within the limits.
fn switched(bits: u32, out: usize) -> Circuit {
    let mut builder = Builder::new();
    let (a, b) = (builder.garbler(bits), builder.evaluator(bits));
    let sum = builder.add(&a, &b);
    builder.output_clamped(&sum, out);
    builder.output(&sum, true);
    builder.finish().unwrap()
}

struct Play {
    batch: TaggedBatch,
    keys: MacKeys,
    bits: [Vec<Bits>; 2],
    zeros: Vec<u128>,
    labels: Vec<u128>,
    weights: Vec<Weights>,
    rng: Random,
}

impl Play {
    fn new(batch: &TaggedBatch, seed: u64) -> Self {
        let mut rng = Random::seeded(seed);
        let delta = rng.block() | 1;
        let keys = MacKeys::new(delta, &mut rng);
        let count = batch.count();
        let widths = [batch.circuit().garbler_bits(), batch.circuit().evaluator_bits()];
        let bits = widths.map(|width| -> Vec<Bits> {
            (0..width).map(|_| (0..count).map(|_| rng.word()).collect()).collect()
        });
        let zeros: Vec<u128> = (0..batch.evaluator_bits()).map(|_| rng.block()).collect();
        let committed = bits[1].iter().flat_map(Bits::iter);
        let labels = zeros.iter().zip(committed).map(|(zero, bit)| zero ^ (delta * bit as u128));
        let labels = labels.collect();
        Self { batch: batch.clone(), keys, bits, zeros, labels, weights: Vec::new(), rng }
    }

    fn play(
        &mut self,
        level: Level,
        spoil: impl FnOnce(&mut Vec<Vec<u8>>),
    ) -> wire::Result<(Vec<GarblerShare>, Vec<EvaluatorShare>)> {
        let mut chunks = Vec::new();
        let ours = garble_at(
            level,
            &self.batch,
            &self.keys,
            &self.zeros,
            (Entered::Bits(&self.bits[0]), &self.weights),
            &mut self.rng,
            &mut |chunk| {
                chunks.push(chunk);
                Ok(())
            },
        )?;
        spoil(&mut chunks);
        let theirs =
            evaluate_at(level, &self.batch, collected(&self.batch, chunks)?, (&self.labels, None));
        Ok((ours, theirs?))
    }

    fn wanted(&self, instance: usize) -> Vec<i64> {
        let [ours, theirs] = self.bits.each_ref().map(|planes| -> Vec<bool> {
            planes.iter().map(|plane| plane.get(instance) == 1).collect()
        });
        self.batch.circuit().run(&ours, &theirs)
    }

    /// Whether the tag of value `instance` of output `at` fits.
    fn fits(&self, at: usize, instance: usize, ours: &GarblerShare, v: u64, tag: u128) -> bool {
        let wanted = u128::from(self.keys.alpha()) * u128::from(v) + ours.betas[instance];
        tag == wanted & mask(self.batch.tag_bits(at))
    }
}

fn collected(batch: &TaggedBatch, chunks: Vec<Vec<u8>>) -> wire::Result<Tables> {
    let mut chunks = chunks.into_iter();
    Tables::collect_bytes(batch.table_bytes(), |_| Ok(chunks.next().unwrap_or_default()))
}

#[test]
fn outputs_are_shares_with_tags_at_every_level() {
    let circuits = [Arc::new(relu(12, 8)), Arc::new(switched(12, 8))];
    for (count, circuit) in
        [1, 5, 8, 67, 200].into_iter().flat_map(|n| circuits.iter().map(move |c| (n, c)))
    {
        for bits in [[26, 13], [12, 44]] {
            let batch = TaggedBatch::new(circuit.clone(), count, bits.to_vec()).unwrap();
            for level in Level::available() {
                let mut play = Play::new(&batch, count as u64);
                let (ours, theirs) = play.play(level, |_| {}).unwrap();
                for instance in 0..count {
                    for (at, wanted) in play.wanted(instance).into_iter().enumerate() {
                        let (value, tag) = (theirs[at].values[instance], theirs[at].tags[instance]);
                        let sum = ours[at].values[instance].wrapping_add(value);
                        let ring = mask(bits[at]) as u64;
                        assert_eq!(sum & ring, wanted as u64 & ring);
                        assert!(play.fits(at, instance, &ours[at], value, tag), "{level:?}");
                        assert!(!play.fits(at, instance, &ours[at], value + 1, tag));
                    }
                }
            }
        }
    }
}

/// Bits count what the garbler says, in each instance something else, and the evaluator does as always.
#[test]
fn weights_of_output_bits_are_the_garblers() {
    let circuit = Arc::new(relu(12, 8));
    for count in [1, 9, 67] {
        let batch = TaggedBatch::new(circuit.clone(), count, vec![26, 13]).unwrap();
        for level in Level::available() {
            let mut play = Play::new(&batch, 7);
            let sizes = [8, 12].map(|bits| bits * count);
            play.weights = sizes.map(|size| Weights::new(play.rng.uniform(size, 30))).to_vec();
            let (ours, theirs) = play.play(level, |_| {}).unwrap();
            for instance in 0..count {
                for (at, wanted) in play.wanted(instance).into_iter().enumerate() {
                    let weights = play.weights[at].chunks(count).enumerate();
                    let one =
                        |(bit, own): (usize, &[u64])| (wanted >> bit & 1) as u64 * own[instance];
                    let wanted = weights.map(one).sum::<u64>();
                    let (value, tag) = (theirs[at].values[instance], theirs[at].tags[instance]);
                    let sum = ours[at].values[instance].wrapping_add(value);
                    assert_eq!((sum ^ wanted) & mask(batch.bits()[at]) as u64, 0);
                    assert!(play.fits(at, instance, &ours[at], value, tag), "{level:?}");
                }
            }
        }
    }
    let batch = TaggedBatch::new(circuit, 4, vec![26, 13]).unwrap();
    let mut play = Play::new(&batch, 8);
    for weights in [vec![], vec![Weights::new(vec![0; 32]), Weights::new(vec![0; 47])]] {
        let ours = (&*play.bits[0], &*weights);
        let (keys, zeros) = (&play.keys, &play.zeros);
        let few = garble_weighted(&batch, keys, zeros, ours, &mut play.rng, &mut |_| Ok(()));
        assert!(matches!(few, Err(Error::Internal(_))));
    }
}

/// Tables that are made before the garbler's bits give the same results with the labels of these.
#[test]
fn bits_of_the_garbler_may_come_after_the_tables() {
    let circuit = Arc::new(relu(12, 8));
    for count in [1, 9, 67] {
        let batch = TaggedBatch::new(circuit.clone(), count, vec![26, 13]).unwrap();
        let mut play = Play::new(&batch, 9);
        let (keys, mut chunks) = (&play.keys, Vec::new());
        let mut sink = |chunk| {
            chunks.push(chunk);
            Ok(())
        };
        let made = garble_ahead(&batch, keys, &play.zeros, &[], &mut play.rng, &mut sink);
        let (ours, later) = made.unwrap();
        let garblers = later.choose(&batch, keys, &play.bits[0]).unwrap();
        let tables = collected(&batch, chunks.clone()).unwrap();
        let theirs = evaluate_ahead(&batch, tables, &play.labels, &garblers).unwrap();
        for instance in 0..count {
            for (at, wanted) in play.wanted(instance).into_iter().enumerate() {
                let (value, tag) = (theirs[at].values[instance], theirs[at].tags[instance]);
                let sum = ours[at].values[instance].wrapping_add(value);
                assert_eq!((sum ^ wanted as u64) & mask(batch.bits()[at]) as u64, 0);
                assert!(play.fits(at, instance, &ours[at], value, tag));
            }
        }
        let tables = collected(&batch, chunks).unwrap();
        assert!(evaluate_ahead(&batch, tables, &play.labels, &garblers[1..]).is_err());
    }
}

/// What the evaluator holds does not tell its bits or the garbler's: over many garblings a value
/// takes all words, for every input.
#[test]
fn values_are_uniform_whatever_the_bits() {
    let mut builder = Builder::new();
    let (a, b) = (builder.garbler(1), builder.evaluator(1));
    let product = builder.and(a[0], b[0]);
    builder.output(&[product], false);
    let batch = TaggedBatch::new(Arc::new(builder.finish().unwrap()), 4000, vec![2]).unwrap();
    let mut play = Play::new(&batch, 4);
    let (_, theirs) = play.play(Level::best(), |_| {}).unwrap();
    let mut counts = [[0; 4]; 4];
    for instance in 0..4000 {
        let [a, b] = [0, 1].map(|party| play.bits[party][0].get(instance));
        counts[(a + 2 * b) as usize][theirs[0].values[instance] as usize] += 1;
    }
    // A thousand draws for each pair of bits; six deviations of a quarter of them.
    assert!(counts.as_flattened().iter().all(|count| (170..330).contains(count)), "{counts:?}");
}

/// Nor does it where bits have a switch: for each value of the switch and of a bit, values and tags take all
/// words, and words that are sent too.
#[test]
fn values_are_uniform_whatever_the_switch() {
    let mut builder = Builder::new();
    let (a, b) = (builder.garbler(2), builder.evaluator(2));
    let sum = builder.add(&a, &b);
    builder.output_clamped(&sum, 1);
    let batch = TaggedBatch::new(Arc::new(builder.finish().unwrap()), 8000, vec![2]).unwrap();
    let mut play = Play::new(&batch, 5);
    let (_, theirs) = play.play(Level::best(), |_| {}).unwrap();
    let mut counts = [[0; 4]; 4];
    for instance in 0..8000 {
        let word = |party: usize| {
            let bit = |at: usize| play.bits[party][at].get(instance);
            bit(0) + 2 * bit(1)
        };
        let sum = (word(0) + word(1)) % 4;
        counts[sum as usize][theirs[0].values[instance] as usize % 4] += 1;
    }
    // Two thousand for each sum; six deviations of a quarter of them.
    assert!(counts.as_flattened().iter().all(|count| (384..616).contains(count)), "{counts:?}");
}

/// A switch leaves out the gates that select bits, and is the same in the clear.
#[test]
fn a_switch_saves_a_gate_a_bit() {
    let [plain, with] = [relu(12, 8), switched(12, 8)];
    assert_eq!(with.and_gates() + 8, plain.and_gates());
    let mut rng = Random::seeded(6);
    for _ in 0..200 {
        let [a, b] = [0, 1].map(|_| (0..12).map(|_| rng.word() & 1 == 1).collect::<Vec<bool>>());
        assert_eq!(with.run(&a, &b), plain.run(&a, &b));
    }
    // Nothing to leave out: no bit stays, or all are constant.
    for (word, out) in [(Builder::constant(5, 4), 3), (Builder::constant(-5, 4), 3)] {
        let mut builder = Builder::new();
        let bit = builder.evaluator(1);
        builder.output_clamped(&word, out);
        builder.output(&bit, false);
        assert!(!builder.finish().unwrap().has_switches());
    }
}

/// Tables that arrive while they are evaluated give the same, and no more of them are held than a group of instances
/// takes; the second chunk of another length is the garbler's fault.
#[test]
fn tables_are_evaluated_as_they_arrive() {
    let batch = TaggedBatch::new(Arc::new(switched(12, 8)), 999, vec![26, 26]).unwrap();
    let (mut play, mut kept) = (Play::new(&batch, 8), Vec::new());
    let (_, wanted) = play.play(Level::best(), |chunks| kept.clone_from(chunks)).unwrap();
    assert!(kept.len() > 3);
    let mut chunks = kept.iter().cloned();
    let next = |_| Ok(chunks.next().unwrap());
    let got = evaluate_arriving(&batch, &play.labels, next).unwrap();
    assert!(got.iter().zip(&wanted).all(|(a, b)| (&a.values, &a.tags) == (&b.values, &b.tags)));
    let mut lens = Vec::new();
    let short = |len: usize| {
        lens.push(len);
        Ok(kept[lens.len() - 1][lens.len() - 1..].to_vec())
    };
    let error = evaluate_arriving(&batch, &play.labels, short);
    assert!(matches!(error, Err(Error::Peer { .. })));
    assert_eq!(lens, [crate::tables::CHUNK; 2]);
    let few = evaluate_arriving(&batch, &[], |_| Ok(Vec::new()));
    assert!(matches!(few, Err(Error::Internal(_))));
}

#[test]
fn two_garblings_have_other_tables_and_tags() {
    let batch = TaggedBatch::new(Arc::new(relu(12, 8)), 16, vec![20, 20]).unwrap();
    let mut play = Play::new(&batch, 9);
    let mut seen = HashSet::new();
    for _ in 0..3 {
        let (ours, _) = play
            .play(Level::best(), |chunks| {
                assert!(
                    chunks[0].chunks_exact(16).take(100).all(|block| seen.insert(block.to_vec()))
                );
            })
            .unwrap();
        assert!(ours[0].betas.iter().all(|beta| seen.insert(beta.to_le_bytes().to_vec())));
    }
}

#[test]
fn spoilt_tables_give_tags_that_do_not_fit_and_never_panic() {
    for (circuit, at) in
        [relu(6, 4), switched(6, 4)].iter().flat_map(|c| (0..1200).map(move |at| (c, at)))
    {
        let batch = TaggedBatch::new(Arc::new(circuit.clone()), 3, vec![9, 9]).unwrap();
        if at >= batch.table_bytes() {
            continue;
        }
        let mut play = Play::new(&batch, 7);
        let result = play.play(Level::best(), |chunks| chunks[0][at] ^= 1 << (at % 8));
        match result {
            Err(error) => assert!(matches!(error, Error::Peer { .. }), "{error}"),
            Ok((ours, theirs)) if at < 16 => {
                let wrong = !play.fits(0, 0, &ours[0], theirs[0].values[0], theirs[0].tags[0]);
                assert!(wrong, "another seed");
            }
            Ok(_) => {}
        }
    }
}

#[test]
fn integers_of_committed_bits_get_tags_at_every_level() {
    for (count, bits, modulus) in
        [(1, 1, 1), (9, 20, 60), (64, 40, 40), (130, 26, 66), (3, 64, 128), (0, 3, 4)]
    {
        let plan = BitTags::new(count, bits, modulus).unwrap();
        for level in Level::available() {
            let mut rng = Random::seeded(u64::from(bits));
            let keys = MacKeys::new(rng.block(), &mut rng);
            let planes: Vec<Bits> =
                (0..bits).map(|_| (0..count).map(|_| rng.word()).collect()).collect();
            let zeros: Vec<u128> = (0..plan.labels()).map(|_| rng.block()).collect();
            let chosen = planes.iter().flat_map(Bits::iter);
            let labels = zeros.iter().zip(chosen).map(|(k, b)| k ^ (keys.delta() * b as u128));
            let labels: Vec<u128> = labels.collect();
            let mut chunks = Vec::new();
            let mut sink = |chunk| {
                chunks.push(chunk);
                Ok(())
            };
            let betas = plan.garble_at(level, &keys, &zeros, &mut rng, &mut sink).unwrap();
            let mut chunks = chunks.into_iter();
            let next = |_| Ok(chunks.next().unwrap_or_default());
            let words = Tables::collect_bytes(plan.bytes(), next).unwrap();
            let tags = tags_at(level, &plan, words, &planes, &labels).unwrap();
            for at in 0..count {
                let value = |(bit, plane): (usize, &Bits)| u128::from(plane.get(at)) << bit;
                let value: u128 = planes.iter().enumerate().map(value).sum();
                let wanted = u128::from(keys.alpha()).wrapping_mul(value).wrapping_add(betas[at]);
                assert_eq!(tags[at], wanted & mask(modulus), "{bits} bits mod 2^{modulus}");
            }
        }
    }
}

#[test]
fn sizes_are_as_said_and_others_refused() {
    let batch = TaggedBatch::new(Arc::new(relu(12, 8)), 1000, vec![26, 26]).unwrap();
    let relu_only = {
        let mut builder = Builder::new();
        let (a, b) = (builder.garbler(12), builder.evaluator(12));
        let sum = builder.add(&a, &b);
        let clamped = builder.clamp(&sum, 8);
        builder.output(&clamped, false);
        TaggedBatch::new(Arc::new(builder.finish().unwrap()), 1000, vec![26]).unwrap()
    };
    assert_eq!(relu_only.table_bytes(), 16 + 125 * 22 * 195 + 1000 * 8 * (26 + 66) / 8);
    let batch_of = |circuit| TaggedBatch::new(Arc::new(circuit), 1000, vec![26, 26]).unwrap();
    let [plain, with] = [relu(12, 8), switched(12, 8)].map(batch_of);
    assert_eq!(plain.table_bytes() - with.table_bytes(), 125 * (8 * 195 - 10 * (26 + 66)));
    let rings = vec![crate::Ring::Power(26); 2];
    assert!(crate::Batch::new(Arc::new(switched(12, 8)), 1, rings).is_err());
    assert_eq!(BitTags::new(1000, 20, 60).unwrap().bytes(), 16 + 1000 * 1010 / 8);
    let [mut rng, mut none] = [Random::seeded(1), Random::seeded(2)];
    let keys = MacKeys::new(1, &mut rng);
    let few = garble(&batch, &keys, &[], &[], &mut none, &mut |_| Ok(()));
    assert!(matches!(few, Err(Error::Internal(_))));
    assert!(TaggedBatch::new(batch.circuit().clone().into(), 1, vec![45, 3]).is_err());
    assert!(TaggedBatch::new(batch.circuit().clone().into(), 1, vec![3]).is_err());
    assert!(TaggedBatch::new(batch.circuit().clone().into(), 0, vec![3, 3]).is_err());
    assert!(BitTags::new(1, 0, 4).is_err() && BitTags::new(1, 5, 4).is_err());
    assert!(BitTags::new(1, 5, 129).is_err() && BitTags::new(1 << 60, 5, 12).is_err());
    assert_eq!(format!("{keys:?}"), "MacKeys(<hidden>)");
}
