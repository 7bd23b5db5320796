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

use ring::pack::pack_into;
use ring::simd::Level;
use ring::word::select;
use ring::{Bits, Prg, Random, Seed};
use wire::{Error, Result};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::batch::{Batch, LANES};
use crate::circuit::{Output, Wire};
use crate::gates::{GarblerGates, Labels};
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

    /// The difference of the two labels of every bit. Secret.
    pub fn delta(&self) -> u128 {
        self.delta
    }

    /// Garbles. `evaluator` holds the zero labels of the evaluator's bits, bit after bit,
    /// each for all instances; they are uniform. `sink` gets the tables in chunks of
    /// [`crate::tables::CHUNK`] bytes.
    ///
    /// # Errors
    /// [`Error::Misuse`] for another number of labels; whatever `sink` returns.
    pub fn garble(
        self,
        evaluator: &[u128],
        sink: &mut dyn FnMut(Vec<u8>) -> Result<()>,
    ) -> Result<Garbling> {
        if evaluator.len() != self.batch.evaluator_bits() {
            return Err(Error::misuse("other labels than the evaluator has bits"));
        }
        let mut out = Writer::new(sink);
        out.buffer().extend_from_slice(&self.salt.to_le_bytes());
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
    gates: GarblerGates<L>,
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
            gates: GarblerGates::new(garbler.level, garbler.delta, garbler.salt),
            slots: Zeroizing::new(vec![[0; L]; batch.circuit().slots]),
            shares: batch.rings().iter().map(room).collect(),
        }
    }

    fn garble(mut self, out: &mut Writer<'_>) -> Result<Vec<Vec<u64>>> {
        for (start, lanes) in self.batch.groups() {
            self.load(start, lanes);
            self.gates(lanes, out)?;
            self.outputs(lanes, out.buffer());
            out.flush()?;
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

    #[inline]
    fn read(&self, wire: Wire) -> Labels<L> {
        let flip = u128::from(wire.is_negated()).wrapping_neg() & self.delta;
        self.slots[wire.node()].map(|label| label ^ flip)
    }

    fn gates(&mut self, lanes: usize, out: &mut Writer<'_>) -> Result<()> {
        let batch = self.batch;
        let mut tables = [[0; L]; 2];
        for gate in &batch.circuit().gates {
            if gate.is_and() {
                let (left, right) = (self.read(gate.left), self.read(gate.right));
                self.slots[gate.slot()] = self.gates.and(&left, &right, &mut tables);
                for half in &tables {
                    let bytes = half.map(u128::to_le_bytes);
                    out.buffer().extend_from_slice(bytes[..lanes].as_flattened());
                }
                out.flush()?;
            } else {
                let (left, right) = (&self.slots[gate.left.node()], &self.slots[gate.right.node()]);
                let sum = std::array::from_fn(|lane| left[lane] ^ right[lane]);
                self.slots[gate.slot()] = sum;
            }
        }
        Ok(())
    }

    /// Projects every output to shares.
    fn outputs(&mut self, lanes: usize, out: &mut Vec<u8>) {
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
            pack_into(out, &words, ring.bits());
            self.shares[at].extend_from_slice(&shares[..lanes]);
            shares.zeroize();
        }
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
        let zeros = self.read(wire);
        let (plus, minus) = (ring.of_signed(weight), ring.of_signed(-weight));
        let hashes = self.gates.project(&zeros);
        for ((zero, one, meaning), share) in hashes[..lanes].iter().zip(shares) {
            let (v, mask) = (ring.draw(*zero), ring.draw(*one));
            let other = ring.add(v, select(*meaning, minus, plus));
            words.push(ring.subtract(other, mask));
            let own = ring.subtract(select(*meaning, plus, 0), v);
            *share = ring.add(*share, own);
        }
    }
}

/// The next zero labels of one input.
fn zeros<const L: usize>(prg: &mut Prg) -> Labels<L> {
    std::array::from_fn(|_| prg.block())
}

impl Garbling {
    /// What was garbled.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// The labels of the garbler's bits, bit after bit, each for all instances, as `bits`
    /// has them (a vector of `count` bits for each input bit), and the garbler's shares of
    /// the outputs.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other bits than the circuit has.
    pub fn finish(mut self, bits: &[Bits]) -> Result<Finished> {
        let fits = |plane: &Bits| plane.len() == self.batch.count();
        if bits.len() != self.batch.circuit().garbler || !bits.iter().all(fits) {
            return Err(Error::misuse("other bits than the garbler has inputs"));
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
                let group = out[start..start + lanes].iter_mut().zip(zeros).zip(start..);
                for ((label, zero), instance) in group {
                    let one = u128::from(plane.get(instance)).wrapping_neg();
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
