//! The plan of circuits of shares that the client has committed to, and both parties' ends.

use std::sync::Arc;

use gc::tables::chunks_of;
use gc::tagged::{
    EvaluatorShare, GarblerShare, MacKeys, TaggedBatch, Weights, evaluate_arriving, garble,
    garble_weighted,
};
use gc::{Builder, Ring, Word};
use ring::word::mask;
use ring::{Bits, Random};
use wire::{Channel, Cost, Error, Result, Role, tags};
use zeroize::Zeroizing;

use crate::auth::{ClientBits, Keys, ServerBits, Values};
use crate::bytes::Bytes;
use crate::defect::defect;
use crate::garbled::plan::positions;
use crate::garbled::shape::{Entrance, Function};
use crate::share::Share;

/// A chunk of the tables.
pub(super) type Chunk = Bytes<{ tags::TAGGED_TABLES }>;

/// The public plan of a function of values whose shares the client has committed to.
#[derive(Clone, Debug)]
pub struct Checked {
    pub(super) batch: TaggedBatch,
    pub(super) entrance: Entrance,
    pub(super) from: u32,
    pub(super) skip: u32,
    pub(super) low: i64,
    /// Values that go in, and which of them each word of each instance is, word after word, where there are
    /// several.
    pub(super) inputs: usize,
    pub(super) positions: Option<Arc<[usize]>>,
}

impl Checked {
    /// Plans `then` of each of `count` values, shared mod `2^from`, less their `skip` lowest bits: a
    /// signed `width` bits, one unit too low with a probability that depends on what is left out.
    /// Results are shared mod 2^to.
    ///
    /// # Errors
    /// [`Error::Misuse`] for no values and for widths that the rings have no room for.
    pub fn map(
        count: usize,
        (from, skip): (u32, u32),
        width: u32,
        then: Function,
        to: u32,
    ) -> Result<Self> {
        let bits = from.checked_sub(skip).filter(|_| from <= 64).unwrap_or(0);
        let entrance = Entrance::signed(Ring::Power(bits), width, then.offset()?, then.drop)?;
        let mut builder = Builder::new();
        let value = then.dropped(&entrance.reconstruct(&mut builder));
        then.tagged(&mut builder, &value);
        let batch = TaggedBatch::new(Arc::new(builder.finish()?), count, vec![to])?;
        let low = then.low();
        Ok(Self { batch, entrance, from, skip, low, inputs: count, positions: None })
    }

    /// Plans `then` of the maximum of each window, `windows` being positions below `inputs`, of values as
    /// [`Checked::map`] has them. Low bits are dropped before the maximum and clipped after it, once a window.
    ///
    /// # Errors
    /// As [`Checked::map`]; [`Error::Misuse`] for an empty window or one beyond the inputs.
    pub fn maximum(
        (inputs, windows): (usize, &[Vec<usize>]),
        (from, skip): (u32, u32),
        width: u32,
        then: Function,
        to: u32,
    ) -> Result<Self> {
        let positions = positions(inputs, windows)?;
        let bits = from.checked_sub(skip).filter(|_| from <= 64).unwrap_or(0);
        let entrance = Entrance::signed(Ring::Power(bits), width, then.offset()?, then.drop)?;
        let mut builder = Builder::new();
        let values = (0..positions.len() / windows.len().max(1)).map(|_| {
            let moved = entrance.reconstruct(&mut builder);
            (then.dropped(&moved), Word::new())
        });
        let values = values.collect();
        let (largest, _) = builder.largest(values).unwrap_or_default();
        then.tagged(&mut builder, &largest);
        let batch = TaggedBatch::new(Arc::new(builder.finish()?), windows.len(), vec![to])?;
        let (low, positions) = (then.low(), Some(positions.into()));
        Ok(Self { batch, entrance, from, skip, low, inputs, positions })
    }

    /// Plans the positions, shared mod 2^to, of the largest of each `classes` of `rows` times as many values as
    /// [`Checked::map`] has them without their `drop` lowest bits, the first of equal ones.
    ///
    /// # Errors
    /// As [`Checked::map`].
    pub fn top(
        [rows, classes]: [usize; 2],
        (from, skip): (u32, u32),
        width: u32,
        drop: u32,
        to: u32,
    ) -> Result<Self> {
        let bits = from.checked_sub(skip).filter(|_| from <= 64).unwrap_or(0);
        let entrance = Entrance::signed(Ring::Power(bits), width, 0, drop)?;
        let index_bits = classes.max(2).next_power_of_two().ilog2() as usize;
        let mut builder = Builder::new();
        let entries = (0..classes as i64).map(|at| {
            let value = entrance.reconstruct(&mut builder);
            (value.into_iter().skip(drop as usize).collect(), Builder::constant(at, index_bits))
        });
        let entries = entries.collect();
        let (_, at) = builder.largest(entries).unwrap_or_default();
        builder.output(&at, false);
        let batch = TaggedBatch::new(Arc::new(builder.finish()?), rows, vec![to])?;
        let class = |class| (0..rows).map(move |row| row * classes + class);
        let (inputs, positions) = (rows * classes, Some((0..classes).flat_map(class).collect()));
        Ok(Self { batch, entrance, from, skip, low: 0, inputs, positions })
    }

    /// Returns the number of values that go in.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Returns the number of results.
    pub fn count(&self) -> usize {
        self.batch.count() * self.batch.bits().len()
    }

    /// Returns the number of instances of the circuit.
    pub fn instances(&self) -> usize {
        self.batch.count()
    }

    /// Returns the number of AND gates of one instance.
    pub fn and_gates(&self) -> usize {
        self.batch.circuit().and_gates()
    }

    /// Returns what [`client`] and [`server`] cost.
    pub fn cost(&self) -> Cost {
        let chunk = |len| Cost::message(Role::Server, len as u64);
        chunks_of(self.batch.table_bytes()).map(chunk).collect()
    }

    /// Bits of the results' ring.
    fn to(&self) -> u32 {
        self.batch.bits().first().copied().unwrap_or(1)
    }

    /// The planes of the committed bits that enter the circuits.
    pub(super) fn planes(&self) -> std::ops::Range<usize> {
        self.skip as usize..(self.skip + self.entrance.ring.bits()) as usize
    }

    /// Labels that lie plane by plane, each of all values, in the order of the circuits' inputs: word by
    /// word its bits, each of all instances.
    pub(super) fn in_order(&self, labels: &[u128]) -> Zeroizing<Vec<u128>> {
        let Some(positions) = &self.positions else { return Zeroizing::new(labels.to_vec()) };
        let planes = labels.chunks_exact(self.inputs.max(1));
        // Labels are copied once, into memory that is large enough from the start and is cleared.
        let mut ordered = Zeroizing::new(Vec::with_capacity(positions.len() * planes.len()));
        for values in positions.chunks(self.instances()) {
            for plane in planes.clone() {
                ordered.extend(values.iter().filter_map(|at| plane.get(*at)));
            }
        }
        ordered
    }

    /// The server's bits, in that order.
    pub(super) fn entered(&self, x: &Share) -> Zeroizing<Vec<Bits>> {
        let ring = self.entrance.ring;
        let moved = ring.of_signed(self.entrance.moved);
        let enter = |word: &u64| ring.add(ring.reduce(word >> self.skip), moved);
        let words: Zeroizing<Vec<u64>> = Zeroizing::new(x.words().iter().map(enter).collect());
        let bits = |words: &[u64]| -> Vec<Bits> {
            (0..ring.bits()).map(|bit| Bits::of_words(words, bit)).collect()
        };
        let Some(positions) = &self.positions else { return Zeroizing::new(bits(&words)) };
        let word = |values: &[usize]| {
            let some = values.iter().filter_map(|at| words.get(*at)).copied();
            bits(&Zeroizing::new(some.collect::<Vec<u64>>()))
        };
        Zeroizing::new(positions.chunks(self.instances()).flat_map(word).collect())
    }

    /// The client's results, output by output.
    pub(super) fn evaluated(&self, shares: &[EvaluatorShare]) -> Result<Values> {
        let made = shares.iter().map(|share| Values::of_circuit(share, self.to()));
        made.reduce(Values::followed_by).ok_or_else(|| defect("a tagged circuit has no output"))
    }

    /// The server's shares of the results, output by output, and the keys of the client's.
    pub(super) fn garbled(&self, shares: &[GarblerShare]) -> Result<(Share, Keys)> {
        let low = self.low as u64 & mask(self.to());
        let values = shares.iter().flat_map(|share| &share.values);
        let values = values.map(|value| value.wrapping_add(low)).collect();
        let keys = shares.iter().map(|share| Keys::of_circuit(share, self.to()));
        let keys = keys.reduce(Keys::followed_by);
        let keys = keys.ok_or_else(|| defect("a tagged circuit has no output"))?;
        Ok((Share::new(values, self.to()), keys))
    }
}

/// Evaluates on the client's committed bits, of which plane `i` has bit `i` of every share.
///
/// # Errors
/// [`Error::Internal`] for bits of other shares, [`Error::Peer`], [`Error::Transport`].
pub fn client(ch: &mut Channel, plan: &Checked, bits: &ClientBits) -> Result<Values> {
    let labels = plan.in_order(bits.labels(plan.planes()));
    let next = |len| ch.receive::<Chunk>(&len).map(|chunk| chunk.0);
    plan.evaluated(&evaluate_arriving(&plan.batch, &labels, next)?)
}

/// Garbles for the bits that the client has committed to and the server's shares `x`; returns the
/// server's shares of the results and the keys of the client's. Output bits count what `weights` say, a
/// vector for each output, or what their places say where there are none.
///
/// # Errors
/// [`Error::Misuse`] for shares of another plan, [`Error::Internal`] for bits or weights of another plan,
/// [`Error::Transport`].
pub fn server(
    ch: &mut Channel,
    plan: &Checked,
    keys: &MacKeys,
    bits: &ServerBits,
    (x, weights): (&Share, &[Weights]),
    rng: &mut Random,
) -> Result<(Share, Keys)> {
    if (x.len(), x.bits()) != (plan.inputs, plan.from) {
        return Err(Error::misuse("a share that does not fit its tagged circuit"));
    }
    let (zeros, entered) = (plan.in_order(bits.zeros(plan.planes())), plan.entered(x));
    let send = &mut |chunk| ch.send(&Chunk::new(chunk));
    let shares = match weights {
        [] => garble(&plan.batch, keys, &zeros, &entered, rng, send)?,
        _ => garble_weighted(&plan.batch, keys, &zeros, (&entered, weights), rng, send)?,
    };
    plan.garbled(&shares)
}
