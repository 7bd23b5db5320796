//! Garbled circuits against clear ones.

use std::collections::HashSet;
use std::sync::Arc;

use ring::simd::Level;
use ring::{Bits, Modulus, Random};
use wire::{Error, Result};

use crate::evaluate::evaluate_at;
use crate::tables::CHUNK;
use crate::{Batch, Builder, Circuit, Garbler, Ring, Tables, evaluate};

/// Both parties' shares, output by output.
type Shares = [Vec<Vec<u64>>; 2];

struct Play {
    batch: Batch,
    garbler: Vec<Bits>,
    evaluator: Vec<Bits>,
    rng: Random,
}

impl Play {
    #[allow(clippy::unwrap_used)]
    fn new(circuit: Circuit, count: usize, rings: Vec<Ring>, seed: u64) -> Self {
        let mut rng = Random::seeded(seed);
        let batch = Batch::new(Arc::new(circuit), count, rings).unwrap();
        let mut planes = |bits| -> Vec<Bits> {
            (0..bits).map(|_| (0..count).map(|_| rng.word()).collect()).collect()
        };
        let garbler = planes(batch.circuit().garbler_bits());
        let evaluator = planes(batch.circuit().evaluator_bits());
        Self { batch, garbler, evaluator, rng }
    }

    /// Garbles and evaluates; `spoil` may change the tables on the way.
    fn play(&mut self, level: Level, spoil: impl FnOnce(&mut Vec<Vec<u8>>)) -> Result<Shares> {
        let mut garbler = Garbler::new(&self.batch, &mut self.rng);
        garbler.level = level;
        let delta = garbler.delta();
        let zeros: Vec<u128> = (0..self.batch.evaluator_bits()).map(|_| self.rng.block()).collect();
        let mut chunks = Vec::new();
        let garbling = garbler.garble(&zeros, &mut |chunk| {
            chunks.push(chunk);
            Ok(())
        })?;
        assert_eq!(chunks.iter().map(Vec::len).sum::<usize>(), self.batch.table_bytes());
        let (labels, ours) = garbling.finish(&self.garbler)?;
        let bits = self.evaluator.iter().flat_map(Bits::iter);
        let theirs: Vec<u128> =
            zeros.iter().zip(bits).map(|(zero, bit)| zero ^ (delta * u128::from(bit))).collect();
        spoil(&mut chunks);
        let mut chunks = chunks.into_iter();
        let tables = Tables::collect(&self.batch, |_| Ok(chunks.next().unwrap_or_default()))?;
        Ok([ours, evaluate_at(level, &self.batch, tables, &labels, &theirs)?])
    }

    /// What both shares should add up to.
    fn wanted(&self) -> Vec<Vec<u64>> {
        let run = |instance: usize| {
            let bits = |planes: &[Bits]| -> Vec<bool> {
                planes.iter().map(|plane| plane.get(instance) == 1).collect()
            };
            self.batch.circuit().run(&bits(&self.garbler), &bits(&self.evaluator))
        };
        let clear: Vec<Vec<i64>> = (0..self.batch.count()).map(run).collect();
        let output = |(at, ring): (usize, &Ring)| {
            clear.iter().map(|values| ring.of_signed(values[at])).collect()
        };
        self.batch.rings().iter().enumerate().map(output).collect()
    }

    fn sums(&self, [ours, theirs]: Shares) -> Vec<Vec<u64>> {
        let lists = ours.iter().zip(&theirs).zip(self.batch.rings());
        let sum = |((ours, theirs), ring): ((&Vec<u64>, &Vec<u64>), &Ring)| {
            assert!(ours.iter().chain(theirs).all(|word| ring.contains(*word)));
            ours.iter().zip(theirs).map(|(a, b)| ring.add(*a, *b)).collect()
        };
        lists.map(sum).collect()
    }
}

/// Every kind of gate and operand: all operations on words, negated and constant outputs.
#[allow(clippy::unwrap_used)]
fn everything() -> Circuit {
    let mut b = Builder::new();
    let (x, y) = (b.garbler(6), b.evaluator(6));
    let sum = b.add(&x, &y);
    let difference = b.subtract(&x, &y);
    let largest = b.max(&sum, &difference);
    let clamped = b.clamp(&largest, 3);
    let product = b.multiply(&x, &y, 2, 1, 9);
    let hot = b.one_hot(&y[..4]);
    let looked = b.look_up(&hot, &[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3], 4);
    let negated: Vec<_> = sum.iter().map(|wire| wire.negated()).collect();
    let some = b.at_least(&x, 20);
    let moved = b.add_either(&y, some, -9, 21);
    let fixed = [x[0], crate::Wire::ONE, y[0].negated(), crate::Wire::ONE];
    for (word, signed) in [
        (&sum[..], true),
        (&difference, false),
        (&largest, true),
        (&clamped, false),
        (&product, false),
        (&looked, false),
        (&negated, true),
        (&moved, true),
        (&fixed, true),
    ] {
        b.output(word, signed);
    }
    b.finish().unwrap()
}

fn prime(value: u64) -> Ring {
    Ring::Prime(Modulus::new(value).unwrap())
}

#[test]
fn garbled_equals_clear_at_every_level() {
    let circuit = everything();
    let rings = [
        Ring::Power(6),
        Ring::Power(64),
        prime((1 << 62) - 57),
        prime(17),
        Ring::Power(33),
        prime(65_537),
        Ring::Power(1),
        prime(1_316_638_721),
        Ring::Power(8),
    ];
    for count in [1, 2, 7, 8, 9, 16, 100] {
        for level in Level::available() {
            let mut play = Play::new(circuit.clone(), count, rings.to_vec(), count as u64);
            let shares = play.play(level, |_| {}).unwrap();
            assert_eq!(play.sums(shares), play.wanted(), "{level:?} {count}");
        }
    }
}

#[test]
fn every_level_garbles_alike() {
    let circuit = everything();
    for count in [1, 11] {
        let run = |level| {
            let rings = vec![Ring::Power(20); circuit.outputs()];
            let mut play = Play::new(circuit.clone(), count, rings, 3);
            let mut tables = Vec::new();
            play.play(level, |chunks| tables = chunks.clone()).unwrap();
            tables
        };
        let wanted = run(Level::SCALAR);
        assert!(Level::available().into_iter().all(|level| run(level) == wanted));
    }
}

#[allow(clippy::unwrap_used)]
fn products(length: usize) -> Circuit {
    let mut builder = Builder::new();
    let (mut a, b) = (builder.garbler(32), builder.evaluator(32));
    for _ in 0..length {
        a = builder.multiply(&a, &b, 0, 1, 32);
    }
    builder.output(&a, false);
    builder.finish().unwrap()
}

#[test]
fn large_circuits_go_out_in_chunks() {
    let circuit = products(300);
    assert!(circuit.and_gates() > 250_000 && circuit.slots < 2000, "{circuit:?}");
    let mut play = Play::new(circuit, 1, vec![Ring::Power(32)], 5);
    let mut lens = Vec::new();
    let shares = play.play(Level::best(), |chunks| lens = chunks.iter().map(Vec::len).collect());
    assert_eq!(play.sums(shares.unwrap()), play.wanted());
    assert!(lens.len() > 8 && lens[..lens.len() - 1].iter().all(|len| *len == CHUNK));
}

#[test]
fn tampered_tables_give_other_results_and_never_panic() {
    let ring = prime(65_537);
    let mut play = Play::new(everything(), 9, vec![ring; 9], 7);
    let (bytes, mut wrong) = (play.batch.table_bytes(), 0);
    for at in (0..bytes).step_by(61) {
        match play.play(Level::best(), |chunks| chunks[0][at] ^= 0x10) {
            Ok(shares) => wrong += usize::from(play.sums(shares) != play.wanted()),
            Err(error) => assert!(matches!(error, Error::Peer { .. }), "{error}"),
        }
    }
    // A table is read for three colours of four, so that about half of all bits matter.
    assert!(wrong > bytes / 61 / 4, "{wrong} of {}", bytes / 61);
    let short = play.play(Level::best(), |chunks| chunks[0].truncate(99));
    assert!(matches!(short, Err(Error::Peer { .. })));
}

#[test]
fn labels_and_tables_of_another_batch_are_defects() {
    let small = Play::new(products(1), 2, vec![Ring::Power(32)], 1);
    let mut large = Play::new(products(1), 3, vec![Ring::Power(32)], 1);
    let tables = |batch: &Batch| Tables::collect(batch, |len| Ok(vec![0; len])).unwrap();
    let labels = vec![0; small.batch.garbler_bits()];
    let other = evaluate(&small.batch, tables(&large.batch), &labels, &labels);
    assert!(matches!(other, Err(Error::Internal(_))));
    let other = evaluate(&large.batch, tables(&large.batch), &labels, &labels);
    assert!(matches!(other, Err(Error::Internal(_))));
    let garbler = Garbler::new(&large.batch, &mut large.rng);
    assert!(garbler.garble(&labels, &mut |_| Ok(())).is_err());
    let zeros = vec![0; large.batch.evaluator_bits()];
    let garbling = Garbler::new(&large.batch, &mut large.rng).garble(&zeros, &mut |_| Ok(()));
    assert!(garbling.unwrap().finish(&small.garbler).is_err());
    let circuit = Arc::new(everything());
    for (count, rings) in [(0, vec![Ring::Power(8); 9]), (1, vec![Ring::Power(8); 8])] {
        assert!(Batch::new(circuit.clone(), count, rings).is_err());
    }
    assert!(Batch::new(circuit.clone(), 1, vec![Ring::Power(65); 9]).is_err());
    assert!(Batch::new(circuit, usize::MAX, vec![Ring::Power(8); 9]).is_err());
}

#[test]
fn colours_are_balanced_and_garblings_share_no_block() {
    let mut play = Play::new(products(1), 40, vec![Ring::Power(32)], 9);
    let mut seen = HashSet::new();
    for _ in 0..2 {
        let mut blocks = Vec::new();
        play.play(Level::best(), |chunks| {
            blocks = chunks.concat().as_chunks().0.iter().map(|b| u128::from_le_bytes(*b)).collect()
        })
        .unwrap();
        let count = blocks.len();
        let before = seen.len();
        seen.extend(blocks);
        assert_eq!(seen.len(), before + count, "a block appeared twice");
    }
    let zeros = vec![0; play.batch.evaluator_bits()];
    let garbling = Garbler::new(&play.batch, &mut play.rng).garble(&zeros, &mut |_| Ok(()));
    let (labels, _) = garbling.unwrap().finish(&play.garbler).unwrap();
    let ones = labels.iter().filter(|label| *label & 1 == 1).count() as f64;
    let away = (ones - labels.len() as f64 / 2.0).abs() / (labels.len() as f64).sqrt() * 2.0;
    assert!(away < 5.0, "{ones} of {}", labels.len());
}

#[test]
fn secrets_do_not_print() {
    let mut play = Play::new(products(1), 2, vec![Ring::Power(32)], 1);
    let garbler = Garbler::new(&play.batch, &mut play.rng);
    let text = format!("{garbler:?}");
    assert!(text.starts_with("Garbler(2 x Circuit(64 bits in"), "{text}");
    let zeros = vec![0; play.batch.evaluator_bits()];
    let garbling = garbler.garble(&zeros, &mut |_| Ok(())).unwrap();
    assert!(format!("{garbling:?}").starts_with("Garbling(2 x Circuit("));
}
