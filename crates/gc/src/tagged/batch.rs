//! A circuit with tagged outputs that is garbled for many instances at once.

use std::sync::Arc;

use wire::{Error, Result};

use super::keys::ALPHA_BITS;
use super::wide::wide_len;
use crate::batch::{LANES, SALT};
use crate::circuit::Circuit;
use crate::three_halves::gate_bytes;

/// Widest share: value and tag come out of one hash of 128 bits.
const WIDEST: u32 = (128 - ALPHA_BITS) / 2;

/// A circuit for `count` instances, and for each output the bits of its ring: all that is public
/// about a garbling. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaggedBatch {
    circuit: Arc<Circuit>,
    count: usize,
    bits: Vec<u32>,
}

impl TaggedBatch {
    /// Makes a batch of `count >= 1` instances; output `i` is shared mod `2^bits[i]`, 1 to 44 bits,
    /// with tags of 40 bits more.
    ///
    /// # Errors
    /// [`Error::Internal`] for another number of rings or an illegal ring, [`Error::Misuse`]
    /// for no instance and for more than 2^40 bytes of tables.
    pub fn new(circuit: Arc<Circuit>, count: usize, bits: Vec<u32>) -> Result<Self> {
        let legal = |bits: &u32| (1..=WIDEST).contains(bits);
        if bits.len() != circuit.outputs() || !bits.iter().all(legal) {
            return Err(Error::internal("a tagged circuit with other rings than outputs"));
        }
        let batch = Self { circuit, count, bits };
        let most = batch.group_bytes(LANES).saturating_mul(count / LANES + 1);
        if count == 0 || most as u64 >> 40 != 0 {
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

    /// Returns the bits of the ring of each output.
    pub fn bits(&self) -> &[u32] {
        &self.bits
    }

    /// Returns the number of bits of the tags of output `at`, 40 more than its ring has; 0 beyond
    /// the last output.
    pub fn tag_bits(&self, at: usize) -> u32 {
        self.bits.get(at).map_or(0, |bits| bits + ALPHA_BITS)
    }

    /// Returns the number of input bits of the evaluator, of all instances.
    pub fn evaluator_bits(&self) -> usize {
        self.circuit.evaluator_bits().saturating_mul(self.count)
    }

    /// Returns the number of bytes of all tables: the seed, 195 bits for each AND gate, and for each
    /// output bit a masked value and a masked tag, twice and two more where they have a switch. No label is among them.
    pub fn table_bytes(&self) -> usize {
        let (whole, rest) = (self.count / LANES, self.count % LANES);
        SALT + whole * self.group_bytes(LANES) + self.group_bytes(rest)
    }

    /// Bytes of the tables of `lanes` instances.
    pub(super) fn group_bytes(&self, lanes: usize) -> usize {
        let words = (0..self.bits.len()).map(|at| self.word_bytes(at, lanes));
        self.circuit.and_gates() * gate_bytes(lanes) + words.sum::<usize>()
    }

    /// Bytes of the words of output `at` of `lanes` instances: values, then tags.
    pub(super) fn word_bytes(&self, at: usize, lanes: usize) -> usize {
        let words = self.words(at) * lanes;
        let bits = self.bits.get(at).copied().unwrap_or(1);
        wide_len(words, bits) + wide_len(words, bits + ALPHA_BITS)
    }

    /// Pairs of words of output `at`, of one instance: one for each bit, or two where the bits have a switch, and one more
    /// for each wire of that.
    pub(super) fn words(&self, at: usize) -> usize {
        let bits = self.circuit.output_bits(at);
        let switch = self.circuit.outputs.get(at).and_then(|output| output.switch);
        if switch.is_some() { 2 * bits + 2 } else { bits }
    }

    /// The groups of instances that are garbled together: where each starts, and its size.
    pub(super) fn groups(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let count = self.count;
        (0..count).step_by(LANES).map(move |start| (start, LANES.min(count - start)))
    }
}
