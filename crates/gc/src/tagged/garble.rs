//! The garbler of circuits with tagged outputs.
//!
//! | | |
//! |---|---|
//! | In | the keys; zero labels of the evaluator's committed bits; the garbler's bits |
//! | Out | tables; for each output bit string shares `z = z_s + v` mod 2^k, and beta of the tag of `v` |
//! | Security | circular correlation robustness of the hash with Delta, which the OTs share: labels and pads are hashed under other keys |
//! | Cost | a seed of 16 bytes, 195 bits for each AND gate, `2k + 40` bits for each output bit |
//! | Paper | Rosulek, Roy, CRYPTO 2021 (gates); Ball, Malkin, Rosulek, CCS 2016 (projections); Cramer et al., SPDZ2k, CRYPTO 2018 (tags mod 2^(k+s)) |
//!
//! The garbler knows its bits beforehand, so that the labels which the evaluator gets for them come
//! out of a public seed, and no label is sent. They do not depend on the bits; the zero labels do.
//!
//! An output bit of weight `w` becomes a value and its tag without another gate. Its label of
//! colour 0 hashes to a uniform `v_0` mod 2^k and a uniform tag `m_0`; what colour 0 stands for less
//! `v_0` is the garbler's share, and `beta = m_0 - alpha*v_0`. The other value, `v_1 = v_0 +- w` mod
//! 2^k, and its tag `alpha*v_1 + beta` are sent masked by the hash of the label of colour 1. Value and tag
//! are uniform whichever label the evaluator has. What a bit counts may be a secret of the garbler's
//! ([`garble_weighted`]), another one in each instance: it enters nothing but `v_1` and the garbler's share.

use std::fmt;

use ot::gates::GateHash;
use ring::simd::Level;
use ring::{Bits, Prg, Random, Seed};
use wire::{Error, Result};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::batch::TaggedBatch;
use super::keys::{ALPHA_BITS, MacKeys};
use super::switched::{Rings, Switched};
use super::wide::{mask, pack_wide};
use crate::batch::LANES;
use crate::circuit::{Output, Switch, Wire};
use crate::garble::{zeros, zeros_of};
use crate::gates::{Labels, colours};
use crate::tables::Writer;
use crate::three_halves::garble_gates;

/// Domain of the garbler's labels.
const LABELS: u64 = u64::from_le_bytes(*b"tg label");
/// Domain of the salt of the hash.
const SALTS: u64 = u64::from_le_bytes(*b"tg  salt");

/// The garbler's part of an output, of all instances. Prints only its length.
#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
pub struct GarblerShare {
    /// The garbler's summands of the results, mod 2^k.
    pub values: Vec<u64>,
    /// The keys beta of the evaluator's summands, mod 2^(k + 40).
    pub betas: Vec<u128>,
}

/// What the bits of an output count, mod 2^k: a word for each instance of its first bit, then those of the
/// next.
pub type Weights = Zeroizing<Vec<u64>>;

/// The garbler's bits, or what their labels are drawn from where the bits come later (`ahead.rs`).
#[derive(Clone, Copy)]
pub(super) enum Entered<'a> {
    Bits(&'a [Bits]),
    Later(&'a Seed),
}

/// What the garbler enters, and what bits of outputs count where that is its secret; no weights where they
/// count what their places say.
type Ours<'a> = (Entered<'a>, &'a [Weights]);

/// Garbles `batch` under fresh keys of the hash. `evaluator` holds the zero labels of the
/// evaluator's bits, bit after bit, each for all instances; `bits` the garbler's bits, a vector of
/// `count` bits for each. `sink` gets the tables in chunks of [`crate::tables::CHUNK`] bytes.
///
/// # Errors
/// [`Error::Internal`] for other numbers of labels or bits; whatever `sink` returns.
pub fn garble(
    batch: &TaggedBatch,
    keys: &MacKeys,
    evaluator: &[u128],
    bits: &[Bits],
    rng: &mut Random,
    sink: &mut dyn FnMut(Vec<u8>) -> Result<()>,
) -> Result<Vec<GarblerShare>> {
    garble_at(Level::best(), batch, keys, evaluator, (Entered::Bits(bits), &[]), rng, sink)
}

/// [`garble`] of outputs whose bits count what `weights` say, a vector for each output. The evaluator does
/// the same as for other garblings, and learns no weight.
///
/// # Errors
/// As [`garble`]; [`Error::Internal`] for other numbers of weights, and for output bits that are constant or have a switch.
pub fn garble_weighted(
    batch: &TaggedBatch,
    keys: &MacKeys,
    evaluator: &[u128],
    (bits, weights): (&[Bits], &[Weights]),
    rng: &mut Random,
    sink: &mut dyn FnMut(Vec<u8>) -> Result<()>,
) -> Result<Vec<GarblerShare>> {
    fitting(batch, weights)?;
    garble_at(Level::best(), batch, keys, evaluator, (Entered::Bits(bits), weights), rng, sink)
}

/// Refuses weights that are not one for each bit of each output and instance.
pub(super) fn fitting(batch: &TaggedBatch, weights: &[Weights]) -> Result<()> {
    let outputs = batch.circuit().outputs.iter().enumerate();
    let fits = |((at, output), weights): ((usize, &Output), &Weights)| {
        let bits = batch.circuit().output_bits(at);
        let plain = bits == output.bits.len() && output.switch.is_none();
        plain && weights.len() == bits * batch.count()
    };
    if weights.len() != outputs.len() || !outputs.zip(weights).all(fits) {
        return Err(Error::internal("other weights than outputs have bits"));
    }
    Ok(())
}

pub(super) fn garble_at(
    level: Level,
    batch: &TaggedBatch,
    keys: &MacKeys,
    evaluator: &[u128],
    (entered, weights): Ours<'_>,
    rng: &mut Random,
    sink: &mut dyn FnMut(Vec<u8>) -> Result<()>,
) -> Result<Vec<GarblerShare>> {
    if let Entered::Bits(bits) = entered {
        entering(batch, bits)?;
    }
    if evaluator.len() != batch.evaluator_bits() {
        return Err(Error::internal("other labels than the evaluator has bits"));
    }
    let mut out = Writer::new(sink);
    let seed = rng.seed();
    out.write(&seed.0)?;
    let shares = match batch.count() {
        1 => Run::<1>::new(level, batch, keys, (evaluator, (entered, weights)), &seed)
            .garble(&mut out)?,
        _ => Run::<LANES>::new(level, batch, keys, (evaluator, (entered, weights)), &seed)
            .garble(&mut out)?,
    };
    out.finish()?;
    Ok(shares)
}

/// Refuses bits that are not the garbler's inputs.
pub(super) fn entering(batch: &TaggedBatch, bits: &[Bits]) -> Result<()> {
    let fits = |plane: &Bits| plane.len() == batch.count();
    if bits.len() != batch.circuit().garbler || !bits.iter().all(fits) {
        return Err(Error::internal("other bits than the garbler has inputs"));
    }
    Ok(())
}

/// The labels that the evaluator gets for the garbler's bits, and the hash of a garbling.
pub(super) fn public(seed: &Seed, level: Level) -> (Prg, GateHash) {
    let salt = Prg::new(seed, SALTS).block();
    (labels(seed), GateHash::new(salt, level))
}

/// The labels of the garbler's bits that are drawn from a seed.
pub(super) fn labels(seed: &Seed) -> Prg {
    Prg::new(seed, LABELS)
}

/// Makes labels of a group's bits their zero labels, and zero labels those of the bits.
pub(super) fn turned<const L: usize>(
    slot: &mut Labels<L>,
    plane: &Bits,
    start: usize,
    delta: u128,
) {
    // Groups of eight do not cross words.
    let word = plane.words().get(start / 64).map_or(0, |word| word >> (start % 64));
    for (lane, label) in slot.iter_mut().enumerate() {
        *label ^= ot::block::mask_of_secret(u128::from((word >> lane) & 1)) & delta;
    }
}

/// One garbling, a group of `L` instances at a time.
struct Run<'a, const L: usize> {
    batch: &'a TaggedBatch,
    keys: &'a MacKeys,
    evaluator: &'a [u128],
    bits: Option<&'a [Bits]>,
    weights: &'a [Weights],
    prg: Prg,
    hash: GateHash,
    slots: Zeroizing<Vec<Labels<L>>>,
    shares: Vec<GarblerShare>,
}

impl<'a, const L: usize> Run<'a, L> {
    fn new(
        level: Level,
        batch: &'a TaggedBatch,
        keys: &'a MacKeys,
        (evaluator, (entered, weights)): (&'a [u128], Ours<'a>),
        seed: &Seed,
    ) -> Self {
        let (known, hash) = public(seed, level);
        let (prg, bits) = match entered {
            Entered::Bits(bits) => (known, Some(bits)),
            Entered::Later(secret) => (labels(secret), None),
        };
        let slots = Zeroizing::new(vec![[0; L]; batch.circuit().slots]);
        let room = |_: &u32| GarblerShare {
            values: Vec::with_capacity(batch.count()),
            betas: Vec::with_capacity(batch.count()),
        };
        let shares = batch.bits().iter().map(room).collect();
        Self { batch, keys, evaluator, bits, weights, prg, hash, slots, shares }
    }

    fn garble(mut self, out: &mut Writer<'_>) -> Result<Vec<GarblerShare>> {
        let (circuit, delta) = (self.batch.circuit(), self.keys.delta());
        for (start, lanes) in self.batch.groups() {
            self.load(start, lanes);
            garble_gates(circuit, &mut self.hash, delta, &mut self.slots, lanes, out)?;
            for at in 0..circuit.outputs.len() {
                self.output(at, (start, lanes), out)?;
            }
        }
        Ok(std::mem::take(&mut self.shares))
    }

    /// The zero labels of all inputs, to their slots.
    fn load(&mut self, start: usize, lanes: usize) {
        let (count, delta) = (self.batch.count(), self.keys.delta());
        let slots = self.slots.get_mut(1..).unwrap_or_default();
        let (ours, theirs) = slots.split_at_mut(self.batch.circuit().garbler);
        ours.iter_mut().for_each(|slot| *slot = zeros(&mut self.prg));
        for (slot, plane) in ours.iter_mut().zip(self.bits.unwrap_or_default()) {
            turned(slot, plane, start, delta);
        }
        for (slot, labels) in theirs.iter_mut().zip(self.evaluator.chunks_exact(count)) {
            let labels = labels.get(start..start + lanes).unwrap_or_default();
            slot.iter_mut().zip(labels).for_each(|(slot, label)| *slot = *label);
        }
    }

    /// Projects output `at`, and writes its words: values, then tags.
    fn output(
        &mut self,
        at: usize,
        (start, lanes): (usize, usize),
        out: &mut Writer<'_>,
    ) -> Result<()> {
        let batch = self.batch;
        let Some(output) = batch.circuit().outputs.get(at) else { return Ok(()) };
        let ring = mask(batch.bits()[at]) as u64;
        let mut sums = Zeroizing::new([(0u64, 0u128); L]);
        let mut words = Words::with_room(batch.words(at) * lanes);
        if let Some(switch) = output.switch {
            self.switched(at, (output, switch), &mut sums[..lanes], &mut words);
        }
        let always = if output.switch.is_some() { &[][..] } else { &output.bits };
        let secret = self.weights.get(at).map(|weights| weights.chunks_exact(batch.count()));
        let mut secret = secret.into_iter().flatten();
        for (bit, wire) in always.iter().enumerate() {
            let mut weights = Zeroizing::new([output.weight(bit) as u64; L]);
            match wire.known() {
                Some(one) => {
                    let sure = if one { weights[0] } else { 0 };
                    sums.iter_mut().for_each(|(sum, _)| *sum = sum.wrapping_add(sure));
                }
                None => {
                    let own = secret.next().and_then(|words| words.get(start..start + lanes));
                    let own = weights.iter_mut().zip(own.unwrap_or_default());
                    own.for_each(|(weight, own)| *weight = own & ring);
                    self.project(at, *wire, &weights[..lanes], &mut sums[..lanes], &mut words);
                }
            }
        }
        let mut bytes = Vec::with_capacity(batch.word_bytes(at, lanes));
        pack_wide(&mut bytes, &words.values, batch.bits()[at]);
        pack_wide(&mut bytes, &words.tags, batch.tag_bits(at));
        out.write(&bytes)?;
        let share = &mut self.shares[at];
        share.values.extend(sums[..lanes].iter().map(|(value, _)| value & ring));
        let tag_ring = mask(batch.tag_bits(at));
        share.betas.extend(sums[..lanes].iter().map(|(_, beta)| beta & tag_ring));
        Ok(())
    }

    /// Adds the bits of output `at`, which have a switch, to the shares and their words to `words`.
    fn switched(
        &mut self,
        at: usize,
        (output, switch): (&Output, Switch),
        sums: &mut [(u64, u128)],
        words: &mut Words,
    ) {
        let (keys, lanes) = (self.keys, sums.len());
        let rings = Rings::new(self.batch.bits()[at], self.batch.tag_bits(at));
        let mut flipped = Zeroizing::new([[0; L]; 2]);
        let [of_switch, of_bit] = &mut *flipped;
        let on = zeros_of(&self.slots, switch.on, keys.delta(), of_switch);
        let mut all = Switched::new(keys, rings, on);
        let mut push = |value, tag| words.push(value, tag);
        for (bit, wire) in output.bits.iter().enumerate() {
            let zeros = zeros_of(&self.slots, *wire, keys.delta(), of_bit);
            let weight = output.weight(bit) as u64;
            all.project(&mut self.hash, zeros, weight, lanes, &mut push);
        }
        all.finish(&mut self.hash, sums, &mut push);
        let weights = [switch.weight as u64; L];
        self.project(at, switch.more, &weights[..lanes], sums, words);
    }

    /// Adds one output bit to the shares and its words to `words`.
    fn project(
        &mut self,
        at: usize,
        wire: Wire,
        weights: &[u64],
        sums: &mut [(u64, u128)],
        words: &mut Words,
    ) {
        let bits = self.batch.bits()[at];
        let (ring, tag_ring) = (mask(bits) as u64, mask(bits + ALPHA_BITS));
        let alpha = u128::from(self.keys.alpha());
        let mut flipped = Zeroizing::new([0; L]);
        let zeros = zeros_of(&self.slots, wire, self.keys.delta(), &mut flipped);
        let hashes = colours(&mut self.hash, self.keys.delta(), zeros);
        let lanes = hashes.iter().zip(weights).zip(sums);
        for (((zero, one, meaning), weight), (value, beta)) in lanes {
            // All ones where colour 0 stands for a one.
            let is_one = ot::block::mask_of_secret(u128::from(*meaning)) as u64;
            let (v_0, m_0) = (*zero as u64 & ring, zero >> bits & tag_ring);
            let step = (weight ^ is_one).wrapping_sub(is_one);
            let v_1 = v_0.wrapping_add(step) & ring;
            let key = m_0.wrapping_sub(alpha * u128::from(v_0));
            let m_1 = alpha.wrapping_mul(u128::from(v_1)).wrapping_add(key);
            let sent = u128::from(v_1.wrapping_sub(*one as u64) & ring);
            words.push(sent, m_1.wrapping_sub(one >> bits) & tag_ring);
            *value = value.wrapping_add(weight & is_one).wrapping_sub(v_0);
            *beta = beta.wrapping_add(key);
        }
    }
}

/// The masked words of one output of a group.
struct Words {
    values: Vec<u128>,
    tags: Vec<u128>,
}

impl Words {
    fn with_room(count: usize) -> Self {
        Self { values: Vec::with_capacity(count), tags: Vec::with_capacity(count) }
    }

    fn push(&mut self, value: u128, tag: u128) {
        self.values.push(value);
        self.tags.push(tag);
    }
}

impl fmt::Debug for GarblerShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GarblerShare(<{} values>)", self.values.len())
    }
}
