//! The garbler.
//!
//! | | |
//! |---|---|
//! | In | a batch; zero labels of the evaluator's inputs |
//! | Out | tables; later, for the garbler's bits, their labels and its shares of the outputs |
//! | Security | semi-honest; hash as in `ot::gates`, a fresh Delta and salt for each garbling |
//! | Cost | 32 bytes for each AND gate, a word of its ring for each output bit, the salt |
//! | Paper | Zahur, Rosulek, Evans, EUROCRYPT 2015; Ball, Malkin, Rosulek, CCS 2016 (projections) |
//!
//! An output bit of weight `w` becomes shares without another gate. Its label of colour 0
//! hashes to the evaluator's share `v_0 = H(L_0)`; the other share, `v_1 = v_0 +- w`, is
//! sent masked: `v_1 - H(L_1)`. The garbler's share is what colour 0 stands for, less
//! `v_0`. Neither share nor label depends on the bit the evaluator does not have.

use std::fmt;

use ot::gates::GateHash;
use ring::pack::pack_into;
use ring::simd::Level;
use ring::word::select;
use ring::{Bits, Prg, Random, Seed};
use wire::{Error, Result};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::batch::{Batch, LANES};
use crate::circuit::{Circuit, Output, Wire};
use crate::gates::{Labels, colours};
use crate::ring_share::Ring;
use crate::tables::Writer;

/// Domain of the zero labels.
const LABELS: u64 = u64::from_le_bytes(*b"gc label");

/// A garbler before it garbles: the secrets of one garbling.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Garbler {
    #[zeroize(skip)]
    batch: Batch,
    #[zeroize(skip)]
    pub(crate) level: Level,
    delta: u128,
    salt: u128,
    seed: Seed,
}

/// A garbler after it garbled, waiting for its own bits. Consumed by them: labels of both
/// values of a bit would reveal Delta, and with it everything. Once is fine,
/// ```
/// fn once(garbling: tacit_gc::Garbling, bits: &[ring::Bits]) -> wire::Result<Vec<Vec<u64>>> {
///     Ok(garbling.finish(bits)?.1)
/// }
/// ```
/// twice does not compile:
/// ```compile_fail,E0382
/// fn twice(garbling: tacit_gc::Garbling, bits: &[ring::Bits]) -> wire::Result<()> {
///     garbling.finish(bits)?;
///     garbling.finish(bits).map(drop)
/// }
/// ```
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Garbling {
    #[zeroize(skip)]
    batch: Batch,
    delta: u128,
    seed: Seed,
    shares: Vec<Vec<u64>>,
}

/// Labels and the garbler's shares, a list for each output.
pub type Finished = (Zeroizing<Vec<u128>>, Vec<Vec<u64>>);

impl Garbler {
    /// Draws a Delta, a salt and the garbler's own zero labels.
    pub fn new(batch: &Batch, rng: &mut Random) -> Self {
        let [delta, salt] = [rng.block() | 1, rng.block()];
        Self { batch: batch.clone(), level: Level::best(), delta, salt, seed: rng.seed() }
    }

    /// Returns the difference of the two labels of every bit. Secret.
    pub fn delta(&self) -> u128 {
        self.delta
    }

    /// Garbles. `evaluator` holds the zero labels of the evaluator's bits, bit after bit,
    /// each for all instances; they are uniform. `sink` gets the tables in chunks of
    /// [`crate::tables::CHUNK`] bytes.
    ///
    /// # Errors
    /// [`Error::Internal`] for another number of labels; whatever `sink` returns.
    pub fn garble(
        self,
        evaluator: &[u128],
        sink: &mut dyn FnMut(Vec<u8>) -> Result<()>,
    ) -> Result<Garbling> {
        if evaluator.len() != self.batch.evaluator_bits() {
            return Err(Error::internal("other labels than the evaluator has bits"));
        }
        let mut out = Writer::new(sink);
        out.write(&self.salt.to_le_bytes())?;
        let shares = match self.batch.count() {
            1 => Run::<1>::new(&self, evaluator).garble(&mut out)?,
            _ => Run::<LANES>::new(&self, evaluator).garble(&mut out)?,
        };
        out.finish()?;
        let (batch, seed) = (self.batch.clone(), self.seed.clone());
        Ok(Garbling { batch, delta: self.delta, seed, shares })
    }
}

/// One garbling, a group of `L` instances at a time.
struct Run<'a, const L: usize> {
    batch: &'a Batch,
    delta: u128,
    evaluator: &'a [u128],
    prg: Prg,
    hash: GateHash,
    slots: Zeroizing<Vec<Labels<L>>>,
    shares: Vec<Vec<u64>>,
}

impl<'a, const L: usize> Run<'a, L> {
    fn new(garbler: &'a Garbler, evaluator: &'a [u128]) -> Self {
        let batch = &garbler.batch;
        let room = |_: &Ring| Vec::with_capacity(batch.count());
        Self {
            batch,
            delta: garbler.delta,
            evaluator,
            prg: Prg::new(&garbler.seed, LABELS),
            hash: GateHash::new(garbler.salt, garbler.level),
            slots: Zeroizing::new(vec![[0; L]; batch.circuit().slots]),
            shares: batch.rings().iter().map(room).collect(),
        }
    }

    fn garble(mut self, out: &mut Writer<'_>) -> Result<Vec<Vec<u64>>> {
        for (start, lanes) in self.batch.groups() {
            self.load(start, lanes);
            let circuit = self.batch.circuit();
            garble_gates(circuit, &mut self.hash, self.delta, &mut self.slots, lanes, out)?;
            self.outputs(lanes, out)?;
        }
        Ok(std::mem::take(&mut self.shares))
    }

    /// The zero labels of all inputs, to their slots.
    fn load(&mut self, start: usize, lanes: usize) {
        let circuit = self.batch.circuit();
        let (count, own) = (self.batch.count(), circuit.garbler);
        let slots = self.slots.get_mut(1..).unwrap_or_default();
        let (ours, theirs) = slots.split_at_mut(own);
        ours.iter_mut().for_each(|slot| *slot = zeros(&mut self.prg));
        for (slot, labels) in theirs.iter_mut().zip(self.evaluator.chunks_exact(count)) {
            let labels = labels.get(start..start + lanes).unwrap_or_default();
            slot.iter_mut().zip(labels).for_each(|(slot, label)| *slot = *label);
        }
    }

    /// Projects every output to shares.
    fn outputs(&mut self, lanes: usize, out: &mut Writer<'_>) -> Result<()> {
        let batch = self.batch;
        for (at, (output, ring)) in batch.circuit().outputs.iter().zip(batch.rings()).enumerate() {
            let mut shares = [0; L];
            let mut words = Vec::with_capacity(output.bits.len() * lanes);
            for (bit, wire) in output.bits.iter().enumerate() {
                let weight = output.weight(bit);
                match wire.known() {
                    Some(one) => {
                        let sure = ring.of_signed(if one { weight } else { 0 });
                        shares.iter_mut().for_each(|share| *share = ring.add(*share, sure));
                    }
                    None => self.project(*wire, weight, *ring, &mut shares, &mut words, lanes),
                }
            }
            let mut bytes = Vec::new();
            pack_into(&mut bytes, &words, ring.bits());
            out.write(&bytes)?;
            self.shares[at].extend_from_slice(&shares[..lanes]);
            shares.zeroize();
        }
        Ok(())
    }

    /// Adds one output bit to the shares and its words to `words`.
    fn project(
        &mut self,
        wire: Wire,
        weight: i64,
        ring: Ring,
        shares: &mut [u64; L],
        words: &mut Vec<u64>,
        lanes: usize,
    ) {
        let mut flipped = Zeroizing::new([0; L]);
        let zeros = zeros_of(&self.slots, wire, self.delta, &mut flipped);
        let (plus, minus) = (ring.of_signed(weight), ring.of_signed(-weight));
        let hashes = colours(&mut self.hash, self.delta, zeros);
        for ((zero, one, meaning), share) in hashes[..lanes].iter().zip(shares) {
            let (v, mask) = (ring.draw(*zero), ring.draw(*one));
            let other = ring.add(v, select(*meaning, minus, plus));
            words.push(ring.subtract(other, mask));
            let own = ring.subtract(select(*meaning, plus, 0), v);
            *share = ring.add(*share, own);
        }
    }
}

/// Garbles the gates of `lanes` instances, from the zero labels of the inputs in `slots`.
pub(crate) fn garble_gates<const L: usize>(
    circuit: &Circuit,
    hash: &mut GateHash,
    delta: u128,
    slots: &mut [Labels<L>],
    lanes: usize,
    out: &mut Writer<'_>,
) -> Result<()> {
    let (mut tables, mut flipped) = ([[0; L]; 2], Zeroizing::new([[0; L]; 2]));
    for gate in &circuit.gates {
        if gate.is_and() {
            let [left, right] = &mut *flipped;
            let left = zeros_of(slots, gate.left, delta, left);
            let right = zeros_of(slots, gate.right, delta, right);
            let product = hash.garble(delta, [left, right], &mut tables);
            slots[gate.slot()] = product;
            out.write_blocks(tables.iter().map(|half| &half[..lanes]))?;
        } else {
            let (left, right) = (&slots[gate.left.node()], &slots[gate.right.node()]);
            let sum = std::array::from_fn(|lane| left[lane] ^ right[lane]);
            slots[gate.slot()] = sum;
        }
    }
    Ok(())
}

/// The zero labels of a wire: those in its slot, or if it is negated the others.
#[inline]
pub(crate) fn zeros_of<'a, const L: usize>(
    slots: &'a [Labels<L>],
    wire: Wire,
    delta: u128,
    flipped: &'a mut Labels<L>,
) -> &'a Labels<L> {
    let zeros = &slots[wire.node()];
    if !wire.is_negated() {
        return zeros;
    }
    flipped.iter_mut().zip(zeros).for_each(|(flipped, zero)| *flipped = zero ^ delta);
    flipped
}

/// The next labels of one input.
pub(crate) fn zeros<const L: usize>(prg: &mut Prg) -> Labels<L> {
    let mut bytes = Zeroizing::new([[0; 16]; L]);
    prg.fill(bytes.as_flattened_mut());
    let mut labels = [0; L];
    labels.iter_mut().zip(&*bytes).for_each(|(label, row)| *label = u128::from_le_bytes(*row));
    labels
}

impl Garbling {
    /// Returns what was garbled.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Returns the labels of the garbler's bits, bit after bit, each for all instances, as `bits`
    /// has them (a vector of `count` bits for each input bit), and the garbler's shares of the
    /// outputs.
    ///
    /// # Errors
    /// [`Error::Internal`] for other bits than the circuit has.
    pub fn finish(mut self, bits: &[Bits]) -> Result<Finished> {
        let fits = |plane: &Bits| plane.len() == self.batch.count();
        if bits.len() != self.batch.circuit().garbler || !bits.iter().all(fits) {
            return Err(Error::internal("other bits than the garbler has inputs"));
        }
        let labels = match self.batch.count() {
            1 => self.labels::<1>(bits),
            _ => self.labels::<LANES>(bits),
        };
        Ok((labels, std::mem::take(&mut self.shares)))
    }

    fn labels<const L: usize>(&self, bits: &[Bits]) -> Zeroizing<Vec<u128>> {
        let count = self.batch.count();
        let mut prg = Prg::new(&self.seed, LABELS);
        let mut labels = Zeroizing::new(vec![0; bits.len() * count]);
        for (start, lanes) in self.batch.groups() {
            for (plane, out) in bits.iter().zip(labels.chunks_exact_mut(count)) {
                let zeros: Labels<L> = zeros(&mut prg);
                // Groups of eight do not cross words.
                let word = plane.words().get(start / 64).map_or(0, |word| word >> (start % 64));
                let group = out[start..start + lanes].iter_mut().zip(zeros).enumerate();
                for (lane, (label, zero)) in group {
                    let one = u128::from((word >> lane) & 1).wrapping_neg();
                    *label = zero ^ (one & self.delta);
                }
            }
        }
        labels
    }
}

impl Output {
    /// The bits that are projected, with their weights, and the sum of the constant ones.
    pub(crate) fn projected(&self) -> impl Iterator<Item = (Wire, i64)> + '_ {
        let bits = self.bits.iter().enumerate().map(|(at, wire)| (*wire, self.weight(at)));
        bits.filter(|(wire, _)| wire.known().is_none())
    }
}

impl fmt::Debug for Garbler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Garbler({} x {:?})", self.batch.count(), self.batch.circuit())
    }
}

impl fmt::Debug for Garbling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Garbling({} x {:?})", self.batch.count(), self.batch.circuit())
    }
}
