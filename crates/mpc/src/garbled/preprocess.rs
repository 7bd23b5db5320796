//! Preparation: masks and their labels by oblivious transfer (OT), then the tables.
//!
//! The server's mask bits are derandomised choices of random OTs with pads `r_0, r_1`
//! of 128 bits: it says `e = c xor bit`, and the label of 0 is `r_e`. The client corrects
//! `r_0 xor r_1 xor Delta`, so that the server's pad, with the correction added where its
//! bit is 1, is the label of its bit. The correction is masked by the pad it does not have.

use gc::tables::chunks;
use gc::{Garbler, Tables};
use ot::{Job, ReceiverPads, SenderPads};
use ring::{Bits, Random};
use wire::{Channel, Cost, Lanes, Result, Role, Values, tags};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::bytes::{Bytes, labels_cost, receive_labels, send_labels};
use crate::correlations::Correlations;
use crate::correlations::circuits::{Circuits, Collected, End, Evaluator, Prepared, planes};
use crate::defect::defect;

/// A chunk of garbled tables.
type Chunk = Bytes<{ tags::GARBLED_TABLES }>;
/// Server to client: the server's derandomised choices of one batch.
type Choices = Lanes<{ tags::GARBLED_CHOICES }>;
/// Tag of the corrections.
const CORRECTIONS: u8 = tags::GARBLED_CORRECTIONS;

/// When tables are sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// With the labels of the masks.
    Now,
    /// While the client waits for the server, and at the latest before its labels.
    Aside,
}

/// Prepares `circuits`: the client garbles with fresh secrets, the server draws its masks.
/// `ots` are those of [`Circuits::job`], in order.
///
/// # Errors
/// [`wire::Error::Misuse`] when the OTs do not fit, [`wire::Error::Peer`],
/// [`wire::Error::Transport`].
pub fn prepare(
    channel: &mut Channel,
    circuits: &[Circuits],
    ots: Correlations,
    rng: &mut Random,
) -> Result<Vec<Prepared>> {
    prepare_and_send(channel, circuits, ots, rng, Sent::Now)
}

/// Prepares `circuits` as [`prepare`] does; the tables are sent [aside](Channel::send_aside) while the client waits
/// for the server, those of a circuit at the latest before it is evaluated. Circuits are then run in their order.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_aside(
    channel: &mut Channel,
    circuits: &[Circuits],
    ots: Correlations,
    rng: &mut Random,
) -> Result<Vec<Prepared>> {
    prepare_and_send(channel, circuits, ots, rng, Sent::Aside)
}

fn prepare_and_send(
    channel: &mut Channel,
    circuits: &[Circuits],
    mut ots: Correlations,
    rng: &mut Random,
    sent: Sent,
) -> Result<Vec<Prepared>> {
    if circuits.is_empty() {
        return Ok(Vec::new());
    }
    let jobs: Vec<Job> = circuits.iter().map(Circuits::job).collect();
    let ends: Vec<End> = match channel.role() {
        Role::Client => garble(channel, circuits, ots.send(&jobs)?, rng, sent)?,
        Role::Server => collect(channel, circuits, ots.receive(&jobs)?, rng, sent)?,
    };
    let prepared = circuits.iter().zip(ends);
    Ok(prepared.map(|(circuits, end)| Prepared { circuits: circuits.clone(), end }).collect())
}

/// Returns what [`prepare`] costs.
pub fn prepare_cost(circuits: &[Circuits]) -> Cost {
    let [messages, tables] = prepare_aside_costs(circuits);
    messages.then(tables)
}

/// Returns what [`prepare_aside`] costs: its messages, and the tables, which take no rounds.
pub fn prepare_aside_costs(circuits: &[Circuits]) -> [Cost; 2] {
    let asked =
        |circuits: &Circuits| Cost::message(Role::Server, Choices::body_len(&[circuits.lane()]));
    let labels = |circuits: &Circuits| labels_cost(Role::Client, circuits.batch.evaluator_bits());
    let asked: Cost = circuits.iter().map(asked).collect();
    let messages = asked.then(circuits.iter().map(labels).collect());
    let lens = circuits.iter().flat_map(|circuits| chunks(&circuits.batch));
    let tables: Cost = lens.map(|len| Cost::message(Role::Client, len as u64)).collect();
    [messages, Cost { client_to_server: tables.client_to_server, ..Cost::NONE }]
}

fn garble(
    channel: &mut Channel,
    circuits: &[Circuits],
    pads: Vec<SenderPads>,
    rng: &mut Random,
    sent: Sent,
) -> Result<Vec<End>> {
    let hear = |circuits: &Circuits| channel.receive::<Choices>(&vec![circuits.lane()]);
    let choices: Vec<Choices> = circuits.iter().map(hear).collect::<Result<_>>()?;
    let mut ends = Vec::with_capacity(circuits.len());
    for ((circuits, pads), choices) in circuits.iter().zip(pads).zip(choices) {
        let Some((_, Values::Planes(planes))) = choices.0.into_iter().next() else { continue };
        let asked = planes.into_iter().next().unwrap_or_default();
        let garbler = Garbler::new(&circuits.batch, rng);
        let (zeros, corrections) = labels(pads, &asked, garbler.delta());
        send_labels::<CORRECTIONS>(channel, &corrections)?;
        let mut tables = 0;
        let garbling = garbler.garble(&zeros, &mut |chunk| {
            let (len, chunk) = (chunk.len(), Chunk::new(chunk));
            if sent == Sent::Now {
                return channel.send(&chunk);
            }
            tables = channel.send_aside(chunk, len)?;
            Ok(())
        })?;
        ends.push(End::Garbler(garbling, tables));
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
    pads: Vec<ReceiverPads>,
    rng: &mut Random,
    sent: Sent,
) -> Result<Vec<End>> {
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
        let tables = match sent {
            Sent::Now => {
                let chunk = |len| channel.receive::<Chunk>(&len).map(|chunk| chunk.0);
                Collected::Here(Tables::collect(&circuits.batch, chunk)?)
            }
            Sent::Aside => {
                let lens = chunks(&circuits.batch);
                lens.for_each(|len| channel.await_aside::<Chunk>(len as u64));
                Collected::Aside
            }
        };
        let (masks, labels) = (masks.words.clone(), std::mem::take(&mut *labels));
        ends.push(End::Evaluator(Evaluator { masks, labels, tables }));
    }
    Ok(ends)
}

impl Collected {
    /// The tables of a batch, which are here now.
    ///
    /// # Errors
    /// [`wire::Error::Peer`], [`wire::Error::Transport`].
    pub(crate) fn tables(self, channel: &mut Channel, circuits: &Circuits) -> Result<Tables> {
        match self {
            Self::Here(tables) => Ok(tables),
            Self::Aside => {
                let chunk = |len| channel.receive_aside::<Chunk>(&len).map(|chunk| chunk.0);
                Tables::collect(&circuits.batch, chunk)
            }
            Self::Taken => Err(defect("tables of a garbled circuit are used twice")),
        }
    }
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
