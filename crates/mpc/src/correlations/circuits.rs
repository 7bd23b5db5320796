//! Batches of garbled circuits to prepare, and one party's end of prepared ones.

use std::fmt;

use gc::{Batch, Garbling, Ring, Tables};
use ot::{Entry, Job};
use ring::Bits;
use wire::{Cost, Error, Lane, Packed, Result, Role, Segment, tags};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::bytes::labels_cost;

/// Server to client: its shares less its masks.
pub(crate) type Masked = Packed<{ tags::GARBLED_MASKED }>;

/// Garbled circuits to prepare: a batch whose evaluator's inputs are masks, uniform
/// elements of a ring. Public, comparable, cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circuits {
    pub(crate) batch: Batch,
    pub(crate) masks: Ring,
    words: usize,
}

/// One party's end of prepared circuits. Consumed by [`crate::garbled::run`].
pub struct Prepared {
    pub(crate) circuits: Circuits,
    pub(crate) end: End,
}

/// What a party holds.
pub(crate) enum End {
    /// The garbling, and how many messages are sent aside until all of its tables are.
    Garbler(Garbling, u64),
    Evaluator(Evaluator),
}

/// The server's masks, their labels and the tables.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Evaluator {
    /// Word after word, each for all instances.
    pub(crate) masks: Vec<u64>,
    /// Bit after bit of them, each for all instances.
    pub(crate) labels: Vec<u128>,
    #[zeroize(skip)]
    pub(crate) tables: Collected,
}

/// The tables of circuits, where they are.
#[derive(Default)]
pub(crate) enum Collected {
    Here(Tables),
    /// The client sends them aside.
    Aside,
    #[default]
    Taken,
}

impl Circuits {
    /// Circuits whose inputs are, of either party, words with as many bits as `masks`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for inputs of another width.
    pub fn new(batch: Batch, masks: Ring) -> Result<Self> {
        let (bits, circuit) = (masks.bits() as usize, batch.circuit());
        let words = circuit.evaluator_bits() / bits.max(1);
        let wanted = words.saturating_mul(bits);
        if words == 0 || (circuit.evaluator_bits(), circuit.garbler_bits()) != (wanted, wanted) {
            return Err(Error::misuse("garbled circuits whose inputs are not words of their ring"));
        }
        Ok(Self { batch, masks, words })
    }

    /// Returns the circuit and its instances.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Returns the ring of the masks.
    pub fn masks(&self) -> Ring {
        self.masks
    }

    /// Returns the number of masks of all instances.
    pub fn values(&self) -> usize {
        self.words * self.batch.count()
    }

    /// Returns the OTs that [`crate::garbled::prepare`] consumes; the client sends in them.
    pub fn job(&self) -> Job {
        Job { count: self.batch.evaluator_bits(), choice_bits: 1, entry: Entry::Pair(64, 64) }
    }

    /// Returns the number of bytes that the server holds between preparing and evaluating.
    pub fn held_bytes(&self) -> usize {
        let inputs = self.batch.evaluator_bits().saturating_mul(16);
        self.batch.table_bytes().saturating_add(inputs).saturating_add(8 * self.values())
    }

    /// Layout of the server's masked shares.
    pub(crate) fn masked(&self) -> Vec<Segment> {
        vec![Segment { count: self.values(), bits: self.masks.bits() }]
    }

    /// Returns what running them costs: masked shares one way, labels the other.
    pub fn online_cost(&self) -> Cost {
        let masked = Cost::message(Role::Server, Masked::body_len(&self.masked()));
        masked.then(labels_cost(Role::Client, self.batch.garbler_bits()))
    }

    pub(crate) fn lane(&self) -> Lane {
        Lane::Planes { planes: 1, count: self.batch.evaluator_bits() }
    }
}

impl Prepared {
    /// Returns what was prepared.
    pub fn circuits(&self) -> &Circuits {
        &self.circuits
    }
}

/// The bits of words that lie word after word, each for all instances.
pub(crate) fn planes(words: &[u64], circuits: &Circuits) -> Vec<Bits> {
    let instances = words.chunks_exact(circuits.batch.count());
    let bits = circuits.masks.bits();
    instances.flat_map(|words| (0..bits).map(|bit| Bits::of_words(words, bit))).collect()
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prepared({:?})", self.circuits)
    }
}
