//! Tags of the evaluator's committed bits.
//!
//! | | |
//! |---|---|
//! | In | the keys and zero labels `K` of `count` integers of `bits` bits; the evaluator's bits `b` and labels |
//! | Out | the evaluator's tags `m = alpha*v + beta` mod 2^modulus of `v`, the sum of `2^j * b_j`; the garbler's `beta` |
//! | Security | circular correlation robustness of the hash: a word is masked by the hash of the label that the evaluator does not have |
//! | Cost | a salt of 16 bytes, and `modulus - j` bits for bit j of each integer |
//! | Paper | correlated OT with additive correlations, Keller, Orsini, Scholl, CCS 2016 (MASCOT); tags mod 2^(k+s), Cramer et al., CRYPTO 2018 (SPDZ2k) |
//!
//! For bit j `beta_j = H(K)`, and the word sent is `alpha + H(K) - H(K xor Delta)`, so that the hash of
//! the label, with the word added where the bit is 1, is `alpha*b_j + beta_j`. As bit j counts `2^j`, only
//! its tag mod `2^(modulus - j)` matters.

use ot::gates::{GateHash, hash_input};
use ring::simd::Level;
use ring::{Bits, Random};
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::keys::MacKeys;
use super::wide::{mask, pack_wide, unpack_wide, wide_len};
use crate::batch::{LANES, SALT};
use crate::tables::{Tables, Writer};

/// Public sizes of integers whose bits are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitTags {
    count: usize,
    bits: u32,
    modulus: u32,
}

/// Keys or tags mod 2^modulus. Wiped on drop.
type Sums = Zeroizing<Vec<u128>>;

impl BitTags {
    /// Makes the plan of `count` integers of `bits` bits with tags mod `2^modulus`, where
    /// `1 <= bits <= modulus <= 128`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other widths and for more than 2^40 bytes.
    pub fn new(count: usize, bits: u32, modulus: u32) -> Result<Self> {
        let bytes = (count as u64).saturating_mul(16 * u64::from(bits));
        if bits == 0 || bits > modulus || modulus > 128 || bytes >> 40 != 0 {
            return Err(Error::misuse(format!(
                "tags mod 2^{modulus} of {count} integers of {bits} bits"
            )));
        }
        Ok(Self { count, bits, modulus })
    }

    /// Returns the number of integers.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of bits of each integer.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the number of bits of the tags.
    pub fn modulus(&self) -> u32 {
        self.modulus
    }

    /// Returns the number of labels: one for each bit of each integer, bit after bit.
    pub fn labels(&self) -> usize {
        self.bits as usize * self.count
    }

    /// Returns the number of bytes that the garbler sends.
    pub fn bytes(&self) -> usize {
        let words = |bit| wide_len(self.count, self.modulus - bit);
        SALT + (0..self.bits).map(words).sum::<usize>()
    }

    /// Makes the words of the bits with zero labels `zeros`, for `sink` in chunks of
    /// [`crate::tables::CHUNK`] bytes, and returns the keys beta of the integers.
    ///
    /// # Errors
    /// [`Error::Internal`] for another number of labels; whatever `sink` returns.
    pub fn garble(
        &self,
        keys: &MacKeys,
        zeros: &[u128],
        rng: &mut Random,
        sink: &mut dyn FnMut(Vec<u8>) -> Result<()>,
    ) -> Result<Sums> {
        self.garble_at(Level::best(), keys, zeros, rng, sink)
    }

    pub(super) fn garble_at(
        &self,
        level: Level,
        keys: &MacKeys,
        zeros: &[u128],
        rng: &mut Random,
        sink: &mut dyn FnMut(Vec<u8>) -> Result<()>,
    ) -> Result<Sums> {
        if zeros.len() != self.labels() {
            return Err(Error::internal("other labels than there are bits to tag"));
        }
        let (mut out, salt) = (Writer::new(sink), rng.block());
        out.write(&salt.to_le_bytes())?;
        let (mut hash, alpha) = (GateHash::new(salt, level), u128::from(keys.alpha()));
        let shift = hash_input(keys.delta(), 0);
        let mut betas = Zeroizing::new(vec![0u128; self.count]);
        let mut words = Vec::with_capacity(self.count);
        let mut blocks = Zeroizing::new([0; 2 * LANES]);
        for (bit, zeros) in (0..self.bits).zip(zeros.chunks_exact(self.count.max(1))) {
            let ring = mask(self.modulus - bit);
            words.clear();
            for (zeros, betas) in zeros.chunks(LANES).zip(betas.chunks_mut(LANES)) {
                let (low, high) = blocks.split_at_mut(LANES);
                for (lane, ((low, high), zero)) in low.iter_mut().zip(high).zip(zeros).enumerate() {
                    *low = hash_input(*zero, lane as u64);
                    *high = *low ^ shift;
                }
                let first = hash.next(1);
                hash.hash(first, 4, &mut *blocks);
                let (low, high) = blocks.split_at(LANES);
                for ((low, high), beta) in low.iter().zip(high).zip(betas) {
                    words.push(low.wrapping_sub(*high).wrapping_add(alpha) & ring);
                    *beta = beta.wrapping_add(low << bit);
                }
            }
            let mut bytes = Vec::with_capacity(wide_len(self.count, self.modulus - bit) + 8);
            pack_wide(&mut bytes, &words, self.modulus - bit);
            out.write(&bytes)?;
        }
        out.finish()?;
        betas.iter_mut().for_each(|beta| *beta &= mask(self.modulus));
        Ok(betas)
    }
}

/// Returns the tags of the integers with these bits, `bits` being a vector for each of their bits,
/// lowest first, and `labels` their labels, bit after bit. Words that were tampered with give other
/// tags.
///
/// # Errors
/// [`Error::Internal`] for other numbers of bits or labels or the words of another plan,
/// [`Error::Peer`] for padding that is not zero.
pub fn tags_of_bits(
    plan: &BitTags,
    words: Tables,
    bits: &[Bits],
    labels: &[u128],
) -> Result<Zeroizing<Vec<u128>>> {
    tags_at(Level::best(), plan, words, bits, labels)
}

pub(super) fn tags_at(
    level: Level,
    plan: &BitTags,
    mut words: Tables,
    bits: &[Bits],
    labels: &[u128],
) -> Result<Sums> {
    let fits = bits.len() == plan.bits as usize && bits.iter().all(|bit| bit.len() == plan.count);
    if !fits || labels.len() != plan.labels() || words.len() != plan.bytes() {
        return Err(Error::internal("bits, labels or words of other integers to tag"));
    }
    let mut salt = [0; SALT];
    words.read(&mut salt)?;
    let mut hash = GateHash::new(u128::from_le_bytes(salt), level);
    let mut tags = Zeroizing::new(vec![0u128; plan.count]);
    let mut blocks = Zeroizing::new([0; LANES]);
    let planes = bits.iter().zip(labels.chunks_exact(plan.count.max(1)));
    for (bit, (plane, labels)) in (0..plan.bits).zip(planes) {
        let mut bytes = vec![0; wide_len(plan.count, plan.modulus - bit)];
        words.read(&mut bytes)?;
        let sent = unpack_wide(&bytes, plan.count, plan.modulus - bit)?;
        let groups = labels.chunks(LANES).zip(tags.chunks_mut(LANES)).zip(sent.chunks(LANES));
        for (group, ((labels, tags), sent)) in groups.enumerate() {
            for (lane, (block, label)) in blocks.iter_mut().zip(labels).enumerate() {
                *block = hash_input(*label, lane as u64);
            }
            let first = hash.next(1);
            hash.hash(first, 3, &mut *blocks);
            // Groups of eight do not cross words.
            let chosen = plane.words().get(group / 8).map_or(0, |word| word >> (group % 8 * 8));
            let rows = tags.iter_mut().zip(sent).zip(&*blocks).enumerate();
            for (lane, ((tag, sent), block)) in rows {
                let one = ot::block::mask_of_secret(u128::from((chosen >> lane) & 1));
                *tag = tag.wrapping_add(block.wrapping_add(sent & one) << bit);
            }
        }
    }
    tags.iter_mut().for_each(|tag| *tag &= mask(plan.modulus));
    Ok(tags)
}
