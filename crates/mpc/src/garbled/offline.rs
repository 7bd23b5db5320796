//! Preparation: masks and their labels by transfers, then the tables.
//!
//! The server's mask bits are derandomised choices of random transfers with pads `r_0, r_1`
//! of 128 bits: it says `e = c xor bit`, and the label of 0 is `r_e`. The client corrects
//! `r_0 xor r_1 xor Delta`, so that the server's pad, with the correction added where its
//! bit is 1, is the label of its bit. The correction is masked by the pad it does not have.

use std::fmt;

use gc::tables::chunks;
use gc::{Batch, Garbler, Garbling, Ring, Tables};
use ot::{Entry, Job, ReceiverPads, SenderPads};
use ring::{Bits, Random};
use wire::{Channel, Cost, Error, Lane, Lanes, Result, Role, Segment, Values, tags};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::bytes::{Bytes, labels_cost, receive_labels, send_labels};
use super::online::Masked;
use crate::pads::Pads;

/// A chunk of garbled tables.
type Chunk = Bytes<{ tags::GARBLED_TABLES }>;
/// Server to client: the server's derandomised choices of one batch.
type Choices = Lanes<{ tags::GARBLED_CHOICES }>;
/// Tag of the corrections.
const CORRECTIONS: u8 = tags::GARBLED_CORRECTIONS;

/// Garbled circuits to prepare: a batch whose evaluator's inputs are masks, uniform
/// elements of a ring. Public, comparable, cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circuits {
    batch: Batch,
    masks: Ring,
    words: usize,
}

/// One party's end of prepared circuits. Consumed by [`super::run`].
pub struct Prepared {
    circuits: Circuits,
    pub(super) end: End,
}

/// What a party holds.
pub(super) enum End {
    Garbler(Garbling),
    Evaluator(Evaluator),
}

/// The server's masks, their labels and the tables.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Evaluator {
    /// Word after word, each for all instances.
    pub(super) masks: Vec<u64>,
    /// Bit after bit of them, each for all instances.
    pub(super) labels: Vec<u128>,
    #[zeroize(skip)]
    pub(super) tables: Option<Tables>,
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

    /// The circuit and its instances.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// The ring of the masks.
    pub fn masks(&self) -> Ring {
        self.masks
    }

    /// Masks of all instances.
    pub fn values(&self) -> usize {
        self.words * self.batch.count()
    }

    /// Transfers that [`prepare`] consumes; the client sends in them.
    pub fn job(&self) -> Job {
        Job { count: self.batch.evaluator_bits(), choice_bits: 1, entry: Entry::Pair(64, 64) }
    }

    /// Bytes that the server holds between preparing and evaluating.
    pub fn held_bytes(&self) -> usize {
        let inputs = self.batch.evaluator_bits().saturating_mul(16);
        self.batch.table_bytes().saturating_add(inputs).saturating_add(8 * self.values())
    }

    /// Layout of the server's masked shares.
    pub(super) fn masked(&self) -> Vec<Segment> {
        vec![Segment { count: self.values(), bits: self.masks.bits() }]
    }

    /// What running them costs: masked shares one way, labels the other.
    pub fn online_cost(&self) -> Cost {
        let masked = Cost::message(Role::Server, Masked::body_len(&self.masked()));
        masked.then(labels_cost(Role::Client, self.batch.garbler_bits()))
    }

    fn lane(&self) -> Lane {
        Lane::Planes { planes: 1, count: self.batch.evaluator_bits() }
    }
}

impl Prepared {
    /// What was prepared.
    pub fn circuits(&self) -> &Circuits {
        &self.circuits
    }
}

/// Prepares `circuits`: the client garbles with fresh secrets, the server draws its masks.
/// `transfers` are those of [`Circuits::job`], in order.
///
/// # Errors
/// [`Error::Misuse`] when the transfers do not fit, [`Error::Peer`], [`Error::Transport`].
pub fn prepare(
    channel: &mut Channel,
    circuits: &[Circuits],
    transfers: Pads,
    rng: &mut Random,
) -> Result<Vec<Prepared>> {
    if circuits.is_empty() {
        return Ok(Vec::new());
    }
    let ends: Vec<End> = match channel.role() {
        Role::Client => garble(channel, circuits, transfers, rng)?,
        Role::Server => collect(channel, circuits, transfers, rng)?,
    };
    let prepared = circuits.iter().zip(ends);
    Ok(prepared.map(|(circuits, end)| Prepared { circuits: circuits.clone(), end }).collect())
}

/// What [`prepare`] costs.
pub fn prepare_cost(circuits: &[Circuits]) -> Cost {
    let asked =
        |circuits: &Circuits| Cost::message(Role::Server, Choices::body_len(&[circuits.lane()]));
    let answer = |circuits: &Circuits| {
        let tables = chunks(&circuits.batch).map(|len| Cost::message(Role::Client, len as u64));
        labels_cost(Role::Client, circuits.batch.evaluator_bits()).then(tables.collect())
    };
    let asked: Cost = circuits.iter().map(asked).collect();
    asked.then(circuits.iter().map(answer).collect())
}

fn garble(
    channel: &mut Channel,
    circuits: &[Circuits],
    mut transfers: Pads,
    rng: &mut Random,
) -> Result<Vec<End>> {
    let jobs: Vec<Job> = circuits.iter().map(Circuits::job).collect();
    let pads = transfers.send(&jobs)?;
    let hear = |circuits: &Circuits| channel.receive::<Choices>(&vec![circuits.lane()]);
    let choices: Vec<Choices> = circuits.iter().map(hear).collect::<Result<_>>()?;
    let mut ends = Vec::with_capacity(circuits.len());
    for ((circuits, pads), choices) in circuits.iter().zip(pads).zip(choices) {
        let Some((_, Values::Planes(planes))) = choices.0.into_iter().next() else { continue };
        let asked = planes.into_iter().next().unwrap_or_default();
        let garbler = Garbler::new(&circuits.batch, rng);
        let (zeros, corrections) = labels(pads, &asked, garbler.delta());
        send_labels::<CORRECTIONS>(channel, &corrections)?;
        let garbling = garbler.garble(&zeros, &mut |chunk| channel.send(&Chunk::new(chunk)))?;
        ends.push(End::Garbler(garbling));
    }
    Ok(ends)
}

type Secret = Zeroizing<Vec<u128>>;

/// The evaluator's zero labels, and the corrections.
fn labels(pads: SenderPads, asked: &Bits, delta: u128) -> (Secret, Vec<u128>) {
    let columns = Zeroizing::new(pads.into_columns());
    let block = |entry: usize, at: usize| {
        let word = |word: usize| {
            let words = columns.get(entry).and_then(|column| column.words.get(word));
            words.and_then(|words| words.get(at)).copied().unwrap_or_default()
        };
        u128::from(word(0)) | u128::from(word(1)) << 64
    };
    let both = (0..asked.len()).map(|at| [block(0, at), block(1, at)]);
    let mut zeros = Zeroizing::new(Vec::with_capacity(asked.len()));
    let corrections = both.zip(asked.iter()).map(|([first, second], asked)| {
        let differ = first ^ second;
        zeros.push(first ^ (differ & u128::from(asked).wrapping_neg()));
        differ ^ delta
    });
    let corrections = corrections.collect();
    (zeros, corrections)
}

fn collect(
    channel: &mut Channel,
    circuits: &[Circuits],
    mut transfers: Pads,
    rng: &mut Random,
) -> Result<Vec<End>> {
    let jobs: Vec<Job> = circuits.iter().map(Circuits::job).collect();
    let pads = transfers.receive(&jobs)?;
    let masks: Vec<Masks> = circuits.iter().map(|circuits| Masks::draw(circuits, rng)).collect();
    let mut opened = Vec::with_capacity(circuits.len());
    for ((circuits, pads), masks) in circuits.iter().zip(pads).zip(&masks) {
        let (asked, pads) = ask(pads, &masks.bits);
        channel.send(&Choices::new(vec![(circuits.lane(), Values::Planes(vec![asked]))]))?;
        opened.push(pads);
    }
    let mut ends = Vec::with_capacity(circuits.len());
    for ((circuits, masks), mut labels) in circuits.iter().zip(masks).zip(opened) {
        let corrections = receive_labels::<CORRECTIONS>(channel, labels.len())?;
        let rows = labels.iter_mut().zip(corrections.iter()).zip(masks.bits.iter());
        rows.for_each(|((label, more), bit)| *label ^= more & u128::from(bit).wrapping_neg());
        let chunk = |len| channel.receive::<Chunk>(&len).map(|chunk| chunk.0);
        let tables = Some(Tables::collect(&circuits.batch, chunk)?);
        let (masks, labels) = (masks.words.clone(), std::mem::take(&mut *labels));
        ends.push(End::Evaluator(Evaluator { masks, labels, tables }));
    }
    Ok(ends)
}

/// The server's masks of one batch, as words and as bits.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Masks {
    words: Vec<u64>,
    bits: Bits,
}

impl Masks {
    fn draw(circuits: &Circuits, rng: &mut Random) -> Self {
        let words = (0..circuits.values()).map(|_| circuits.masks.draw(rng.block())).collect();
        let mut masks = Self { words, bits: Bits::default() };
        let planes = Zeroizing::new(planes(&masks.words, circuits));
        planes.iter().for_each(|plane| masks.bits.extend(plane));
        masks
    }
}

/// The bits of words that lie word after word, each for all instances.
pub(super) fn planes(words: &[u64], circuits: &Circuits) -> Vec<Bits> {
    let instances = words.chunks_exact(circuits.batch.count());
    let bits = circuits.masks.bits();
    instances.flat_map(|words| (0..bits).map(|bit| Bits::of_words(words, bit))).collect()
}

/// What turns the random choices into `bits`, and the pads that they open.
fn ask(pads: ReceiverPads, bits: &Bits) -> (Bits, Secret) {
    let (choices, opened) = pads.into_parts();
    let mut asked = choices.into_iter().next().unwrap_or_default();
    asked.xor(bits);
    let words = opened.words.first().zip(opened.words.get(1));
    let rows = words.into_iter().flat_map(|(low, high)| low.iter().zip(high));
    let blocks = rows.map(|(low, high)| u128::from(*low) | u128::from(*high) << 64);
    (asked, Zeroizing::new(blocks.collect()))
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prepared({:?})", self.circuits)
    }
}
