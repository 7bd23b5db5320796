//! The evaluator.

use ot::gates::GateHash;
use ring::pack::{packed_len, unpack};
use ring::simd::Level;
use ring::word::spread;
use wire::{Error, Result};
use zeroize::Zeroizing;

use crate::batch::{Batch, LANES, SALT};
use crate::circuit::Circuit;
use crate::gates::{Labels, hashes};
use crate::tables::Tables;

/// Evaluates `tables` on the labels of the garbler's bits and of its own, both bit after
/// bit, each for all instances. Returns the evaluator's shares, a list for each output.
/// Tables or labels that were tampered with give other shares.
///
/// # Errors
/// [`Error::Internal`] for another number of labels or the tables of another batch,
/// [`Error::Peer`] for padding that is not zero.
pub fn evaluate(
    batch: &Batch,
    tables: Tables,
    garbler: &[u128],
    evaluator: &[u128],
) -> Result<Vec<Vec<u64>>> {
    evaluate_at(Level::best(), batch, tables, garbler, evaluator)
}

pub(crate) fn evaluate_at(
    level: Level,
    batch: &Batch,
    mut tables: Tables,
    garbler: &[u128],
    evaluator: &[u128],
) -> Result<Vec<Vec<u64>>> {
    let labels = (garbler.len(), evaluator.len());
    if labels != (batch.garbler_bits(), batch.evaluator_bits())
        || tables.len() != batch.table_bytes()
    {
        return Err(Error::internal("labels or tables of another batch of garbled circuits"));
    }
    let mut salt = [0; SALT];
    tables.read(&mut salt)?;
    let salt = u128::from_le_bytes(salt);
    match batch.count() {
        1 => Run::<1>::new(batch, GateHash::new(salt, level), tables).evaluate(garbler, evaluator),
        _ => Run::<LANES>::new(batch, GateHash::new(salt, level), tables)
            .evaluate(garbler, evaluator),
    }
}

/// One evaluation, a group of `L` instances at a time.
struct Run<'a, const L: usize> {
    batch: &'a Batch,
    tables: Tables,
    hash: GateHash,
    slots: Zeroizing<Vec<Labels<L>>>,
    shares: Vec<Vec<u64>>,
}

impl<'a, const L: usize> Run<'a, L> {
    fn new(batch: &'a Batch, hash: GateHash, tables: Tables) -> Self {
        Self {
            batch,
            tables,
            hash,
            slots: Zeroizing::new(vec![[0; L]; batch.circuit().slots]),
            shares: batch.rings().iter().map(|_| Vec::with_capacity(batch.count())).collect(),
        }
    }

    fn evaluate(mut self, garbler: &[u128], evaluator: &[u128]) -> Result<Vec<Vec<u64>>> {
        let count = self.batch.count();
        for (start, lanes) in self.batch.groups() {
            let inputs = garbler.chunks_exact(count).chain(evaluator.chunks_exact(count));
            for (slot, labels) in self.slots.iter_mut().skip(1).zip(inputs) {
                let labels = labels.get(start..start + lanes).unwrap_or_default();
                slot.iter_mut().zip(labels).for_each(|(slot, label)| *slot = *label);
            }
            let circuit = self.batch.circuit();
            evaluate_gates(circuit, &mut self.hash, &mut self.slots, &mut self.tables, lanes)?;
            self.outputs(lanes)?;
        }
        Ok(self.shares)
    }

    /// The evaluator's shares of every output.
    fn outputs(&mut self, lanes: usize) -> Result<()> {
        let batch = self.batch;
        for (at, (output, ring)) in batch.circuit().outputs.iter().zip(batch.rings()).enumerate() {
            let count = batch.circuit().output_bits(at) * lanes;
            let mut bytes = vec![0; packed_len(count, ring.bits())];
            self.tables.read(&mut bytes)?;
            let words = unpack(&bytes, count, ring.bits());
            let words = words.ok_or_else(|| Error::peer("zero padding", "other bits"))?;
            let mut shares = [0; L];
            for ((wire, _), words) in output.projected().zip(words.chunks_exact(lanes)) {
                let hashes = hashes(&mut self.hash, &self.slots[wire.node()]);
                for (((hash, colour), word), share) in hashes.iter().zip(words).zip(&mut shares) {
                    let more = ring.reduce(word & spread(*colour));
                    *share = ring.add(*share, ring.add(ring.draw(*hash), more));
                }
            }
            self.shares[at].extend_from_slice(&shares[..lanes]);
        }
        Ok(())
    }
}

/// Evaluates the gates of `lanes` instances, from the labels of the inputs in `slots`.
pub(crate) fn evaluate_gates<const L: usize>(
    circuit: &Circuit,
    hash: &mut GateHash,
    slots: &mut [Labels<L>],
    tables: &mut Tables,
    lanes: usize,
) -> Result<()> {
    let mut halves = [[0; L]; 2];
    for gate in &circuit.gates {
        if gate.is_and() {
            tables.read_blocks(halves.iter_mut().map(|half| &mut half[..lanes]))?;
            let operands = [gate.left, gate.right].map(|wire| &slots[wire.node()]);
            slots[gate.slot()] = hash.evaluate(operands, &halves);
        } else {
            let (left, right) = (&slots[gate.left.node()], &slots[gate.right.node()]);
            let sum = std::array::from_fn(|lane| left[lane] ^ right[lane]);
            slots[gate.slot()] = sum;
        }
    }
    Ok(())
}
