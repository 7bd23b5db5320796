//! A circuit that is garbled for many instances at once.

use std::sync::Arc;

use wire::{Error, Result};

use crate::circuit::Circuit;
use crate::ring_share::Ring;

/// Instances garbled together: as many as share a key.
pub(crate) const LANES: usize = 8;
/// Bytes of the public salt in front of the tables.
pub(crate) const SALT: usize = 16;
/// Bytes of table for an AND gate of one instance.
const AND: usize = 32;

/// A circuit for `count` instances and the ring that each output is shared in: all that is
/// public about a garbling. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    circuit: Arc<Circuit>,
    count: usize,
    rings: Vec<Ring>,
}

impl Batch {
    /// Makes a batch of `count >= 1` instances, with a ring for each output.
    ///
    /// # Errors
    /// [`Error::Internal`] for another number of rings or an illegal ring, [`Error::Misuse`]
    /// for no instance and for more than 2^40 bytes of tables.
    pub fn new(circuit: Arc<Circuit>, count: usize, rings: Vec<Ring>) -> Result<Self> {
        let legal = rings.iter().all(|ring| ring.is_legal()) && !circuit.has_switches();
        if rings.len() != circuit.outputs() || !legal {
            return Err(Error::internal("a garbled circuit with other rings than outputs"));
        }
        let batch = Self { circuit, count, rings };
        let bytes = batch.instance_bits().saturating_mul(count);
        if count == 0 || bytes as u64 >> 43 != 0 {
            return Err(Error::misuse(format!("{count} instances of {:?}", batch.circuit)));
        }
        Ok(batch)
    }

    /// Returns the circuit.
    pub fn circuit(&self) -> &Circuit {
        &self.circuit
    }

    /// Returns the number of instances.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the ring of each output.
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// Returns the number of AND gates of all instances.
    pub fn and_gates(&self) -> usize {
        self.circuit.and_gates().saturating_mul(self.count)
    }

    /// Returns the number of input bits of the garbler, of all instances.
    pub fn garbler_bits(&self) -> usize {
        self.circuit.garbler_bits().saturating_mul(self.count)
    }

    /// Returns the number of input bits of the evaluator, of all instances.
    pub fn evaluator_bits(&self) -> usize {
        self.circuit.evaluator_bits().saturating_mul(self.count)
    }

    /// Returns the number of bytes of all tables: the salt, 32 for each AND gate, and for each
    /// output bit a word of its ring. Words of the last group end on a byte, those of others do
    /// anyway.
    pub fn table_bytes(&self) -> usize {
        let (whole, rest) = (self.count / LANES, self.count % LANES);
        SALT + whole * self.group_bytes(LANES) + self.group_bytes(rest)
    }

    /// Bytes of the tables of `lanes` instances.
    fn group_bytes(&self, lanes: usize) -> usize {
        let words = (0..self.rings.len()).map(|at| (self.word_bits(at) * lanes).div_ceil(8));
        self.circuit.and_gates() * AND * lanes + words.sum::<usize>()
    }

    /// Bits that the words of output `at` take, of one instance.
    fn word_bits(&self, at: usize) -> usize {
        let ring = self.rings.get(at).map_or(0, |ring| ring.bits() as usize);
        self.circuit.output_bits(at) * ring
    }

    fn instance_bits(&self) -> usize {
        let words: usize = (0..self.rings.len()).map(|at| self.word_bits(at)).sum();
        self.circuit.and_gates() * AND * 8 + words
    }

    /// The groups of instances that are garbled together: where each starts, and its size.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let count = self.count;
        (0..count).step_by(LANES).map(move |start| (start, LANES.min(count - start)))
    }
}
