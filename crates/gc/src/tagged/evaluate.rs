//! The evaluator of circuits with tagged outputs.

use std::fmt;

use ot::gates::GateHash;
use ring::simd::Level;
use ring::{Prg, Seed};
use wire::{Error, Result};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::batch::TaggedBatch;
use super::garble::public;
use super::switched::{self, Rings};
use super::wide::{mask, unpack_wide, wide_len};
use crate::batch::{LANES, SALT};
use crate::circuit::Wire;
use crate::garble::zeros;
use crate::gates::{Labels, hashes};
use crate::tables::{Tables, chunks_of};
use crate::three_halves::evaluate_gates;

/// The evaluator's part of an output, of all instances. Prints only its length.
#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
pub struct EvaluatorShare {
    /// The evaluator's summands of the results. Each is an integer, the sum of a word below 2^k for
    /// each output bit, and is not reduced, since its tag belongs to the integer. A result is the sum
    /// of both parties' summands mod 2^k.
    pub values: Vec<u64>,
    /// The tags of the summands, `alpha*v + beta` mod 2^(k + 40).
    pub tags: Vec<u128>,
}

/// Evaluates `tables` on the labels of the evaluator's committed bits, bit after bit, each for all
/// instances. Tables or labels that were tampered with give other values and tags.
///
/// # Errors
/// [`Error::Internal`] for another number of labels or the tables of another batch,
/// [`Error::Peer`] for padding that is not zero.
pub fn evaluate(
    batch: &TaggedBatch,
    tables: Tables,
    labels: &[u128],
) -> Result<Vec<EvaluatorShare>> {
    evaluate_at(Level::best(), batch, tables, (labels, None))
}

pub(super) fn evaluate_at(
    level: Level,
    batch: &TaggedBatch,
    tables: Tables,
    labels: Held<'_>,
) -> Result<Vec<EvaluatorShare>> {
    if tables.len() != batch.table_bytes() {
        return Err(Error::internal("tables of another batch of garbled circuits"));
    }
    run(level, batch, tables, labels, &mut |_, _| Ok(()))
}

/// As [`evaluate()`], while the garbler is at it: `next` is told the length of each chunk of tables, which is dropped
/// when the instances in it have been evaluated.
///
/// # Errors
/// As [`evaluate()`]; [`Error::Peer`] for a chunk of another length; whatever `next` returns.
pub fn evaluate_arriving(
    batch: &TaggedBatch,
    labels: &[u128],
    mut next: impl FnMut(usize) -> Result<Vec<u8>>,
) -> Result<Vec<EvaluatorShare>> {
    let mut lens = chunks_of(batch.table_bytes());
    let more = &mut |tables: &mut Tables, wanted| tables.fill(wanted, &mut lens, &mut next);
    run(Level::best(), batch, Tables::none(), (labels, None), more)
}

/// The labels of the evaluator's bits, and those of the garbler's where none follow from the tables' seed.
type Held<'a> = (&'a [u128], Option<&'a [u128]>);

/// Sees to it that tables hold so many bytes.
type More<'a> = &'a mut dyn FnMut(&mut Tables, usize) -> Result<()>;

fn run(
    level: Level,
    batch: &TaggedBatch,
    mut tables: Tables,
    (labels, sent): Held<'_>,
    more: More<'_>,
) -> Result<Vec<EvaluatorShare>> {
    if labels.len() != batch.evaluator_bits() {
        return Err(Error::internal("labels of another batch of garbled circuits"));
    }
    let mut seed = Seed([0; SALT]);
    more(&mut tables, SALT)?;
    tables.read(&mut seed.0)?;
    match batch.count() {
        1 => Run::<1>::new(level, batch, (&seed, sent), tables).evaluate(labels, more),
        _ => Run::<LANES>::new(level, batch, (&seed, sent), tables).evaluate(labels, more),
    }
}

/// One evaluation, a group of `L` instances at a time.
struct Run<'a, const L: usize> {
    batch: &'a TaggedBatch,
    tables: Tables,
    prg: Prg,
    /// The labels of the garbler's bits, group by group, if they were sent.
    sent: Option<&'a [u128]>,
    hash: GateHash,
    slots: Zeroizing<Vec<Labels<L>>>,
    shares: Vec<EvaluatorShare>,
}

impl<'a, const L: usize> Run<'a, L> {
    fn new(
        level: Level,
        batch: &'a TaggedBatch,
        (seed, sent): (&Seed, Option<&'a [u128]>),
        tables: Tables,
    ) -> Self {
        let (prg, hash) = public(seed, level);
        let slots = Zeroizing::new(vec![[0; L]; batch.circuit().slots]);
        let room = |_: &u32| EvaluatorShare {
            values: Vec::with_capacity(batch.count()),
            tags: Vec::with_capacity(batch.count()),
        };
        let shares = batch.bits().iter().map(room).collect();
        Self { batch, tables, prg, sent, hash, slots, shares }
    }

    fn evaluate(mut self, labels: &[u128], more: More<'_>) -> Result<Vec<EvaluatorShare>> {
        let circuit = self.batch.circuit();
        for (start, lanes) in self.batch.groups() {
            more(&mut self.tables, self.batch.group_bytes(lanes))?;
            self.load(start, lanes, labels);
            evaluate_gates(circuit, &mut self.hash, &mut self.slots, &mut self.tables, lanes)?;
            for at in 0..circuit.outputs.len() {
                self.output(at, lanes)?;
            }
        }
        Ok(self.shares)
    }

    /// The labels of all inputs, to their slots.
    fn load(&mut self, start: usize, lanes: usize, labels: &[u128]) {
        let slots = self.slots.get_mut(1..).unwrap_or_default();
        let (theirs, ours) = slots.split_at_mut(self.batch.circuit().garbler);
        match self.sent {
            None => theirs.iter_mut().for_each(|slot| *slot = zeros(&mut self.prg)),
            Some(sent) => {
                let group = sent.get(start * theirs.len()..).unwrap_or_default();
                for (slot, labels) in theirs.iter_mut().zip(group.chunks_exact(lanes)) {
                    slot.iter_mut().zip(labels).for_each(|(slot, label)| *slot = *label);
                }
            }
        }
        for (slot, labels) in ours.iter_mut().zip(labels.chunks_exact(self.batch.count())) {
            let labels = labels.get(start..start + lanes).unwrap_or_default();
            slot.iter_mut().zip(labels).for_each(|(slot, label)| *slot = *label);
        }
    }

    /// The values and tags of output `at`.
    fn output(&mut self, at: usize, lanes: usize) -> Result<()> {
        let batch = self.batch;
        let Some(output) = batch.circuit().outputs.get(at) else { return Ok(()) };
        let (bits, tag_bits) = (batch.bits()[at], batch.tag_bits(at));
        let (ring, tag_ring) = (mask(bits) as u64, mask(tag_bits));
        let count = batch.words(at) * lanes;
        let mut bytes = vec![0; batch.word_bytes(at, lanes)];
        self.tables.read(&mut bytes)?;
        let (values, tags) = bytes.split_at(wide_len(count, bits));
        let (values, tags) =
            (unpack_wide(values, count, bits)?, unpack_wide(tags, count, tag_bits)?);
        let mut words = values.chunks_exact(lanes).zip(tags.chunks_exact(lanes));
        let mut sums = Zeroizing::new([(0u64, 0u128); L]);
        let mut always: Vec<Wire> = output.projected().map(|(wire, _)| wire).collect();
        if let Some(switch) = output.switch {
            let (on, rings) = (&self.slots[switch.on.node()], Rings::new(bits, tag_bits));
            for wire in std::mem::replace(&mut always, vec![switch.more]) {
                let (Some(zero), Some(one)) = (words.next(), words.next()) else { break };
                let labels = [on, &self.slots[wire.node()]];
                let sums = &mut sums[..lanes];
                switched::project(&mut self.hash, rings, labels, [zero, one], sums);
            }
            let of_switch = words.next().unwrap_or_default();
            switched::finish(&mut self.hash, rings, on, of_switch, &mut sums[..lanes]);
        }
        for (wire, (values, tags)) in always.into_iter().zip(words) {
            let hashes = hashes(&mut self.hash, &self.slots[wire.node()]);
            let lanes = hashes.iter().zip(values.iter().zip(tags)).zip(&mut *sums);
            for (((hash, colour), (value, tag)), (sum, tags)) in lanes {
                let sent = ot::block::mask_of_secret(u128::from(*colour));
                *sum += (*hash as u64).wrapping_add((value & sent) as u64) & ring;
                *tags = tags.wrapping_add(hash >> bits).wrapping_add(tag & sent);
            }
        }
        let share = &mut self.shares[at];
        share.values.extend(sums[..lanes].iter().map(|(value, _)| *value));
        share.tags.extend(sums[..lanes].iter().map(|(_, tag)| tag & tag_ring));
        Ok(())
    }
}

impl fmt::Debug for EvaluatorShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EvaluatorShare(<{} values>)", self.values.len())
    }
}
