//! Half-gates, and their hash under keys that nothing else uses.
//!
//! An AND gate takes two keys: the garbler's half hashes the left label under one, the
//! evaluator's half the right label under the other (Zahur, Rosulek, Evans, "Two halves
//! make a whole", EUROCRYPT 2015; `TG`, `TE`, `WG`, `WE` as there). The colour of a label
//! is its lowest bit, and Delta's is 1.
//!
//! `H(x; key, lane) = E_key(y) xor y` with `y = sigma(x) xor lane`, as in `hash.rs`; the
//! MITCCRH of Guo, Katz, Wang, Weng, Yu, "Better concrete security for half-gates garbling
//! (in the multi-instance setting)", CRYPTO 2020. Keys are `salt xor counter`: the salt is
//! 128 bits, public and fresh for each garbling, the counter says which half of which gate
//! of which eight instances. No key serves twice.
//!
//! *Why eight instances may share a key.* Under one key the inputs are `sigma(L xor
//! a*Delta) xor lane`, for `a` 0 and 1, and at most eight lanes: 16 of them. Two of one
//! lane differ by sigma(Delta), which is never zero. Two of different lanes meet, as an
//! input meets a query of the adversary, when labels differ by a fixed constant or one
//! that Delta makes: 2^-128 each, labels being pseudo-random and independent across lanes.
//! A key that serves `B` hashes lets a search try `B` of them for a Delta at a time, so 16
//! bound its gain to 4 bits, as they do for pads. Under one key for all gates it would
//! grow with their number.

use ring::simd::Level;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::hash::tweaked;
use crate::simd::EIGHT;
use crate::simd::aes::Hasher;
#[cfg(target_arch = "x86_64")]
use crate::simd::three_halves::{PLACES, Parts};
use crate::three_halves::Table;

/// A label of each of `L` instances that share a key: 1 or 8.
pub type Labels<const L: usize> = [u128; L];

/// Most blocks of a gate of eight instances.
const BLOCKS: usize = 6 * EIGHT;

/// Hashes with a run of keys, eight ready at a time. The keys are public.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct GateHash {
    #[zeroize(skip)]
    salt: u128,
    /// The number of keys made so far.
    #[zeroize(skip)]
    made: u64,
    /// How many of the eight keys at hand are used up.
    #[zeroize(skip)]
    used: usize,
    #[zeroize(skip)]
    hasher: Hasher,
    /// What is hashed outside of the kernels.
    blocks: [u128; BLOCKS],
}

impl GateHash {
    /// Keys `salt xor 0`, `salt xor 1`, ...
    pub fn new(salt: u128, level: Level) -> Self {
        Self { salt, made: 0, used: EIGHT, hasher: Hasher::new(level), blocks: [0; BLOCKS] }
    }

    /// Takes the next `count` keys, 1, 2 or 4, and returns the number of the first, as
    /// [`GateHash::hash`] wants it. It is a multiple of `count`; keys may be left out.
    #[inline]
    pub fn next(&mut self, count: usize) -> usize {
        self.used = self.used.next_multiple_of(count);
        if self.used + count > EIGHT {
            self.refill();
        }
        self.used += count;
        self.used - count
    }

    fn refill(&mut self) {
        let mut keys = [0; EIGHT];
        for (key, counter) in keys.iter_mut().zip(self.made..) {
            *key = self.salt ^ u128::from(counter);
        }
        self.made += EIGHT as u64;
        self.used = 0;
        self.hasher.set(keys);
    }

    /// Replaces every block `y` by `E_key(y) xor y`: groups of `2^spread` blocks, the first
    /// under key number `first`, the next under the next one. A multiple of eight blocks;
    /// those beyond the keys taken are hashed under any key and mean nothing.
    #[inline]
    pub fn hash(&self, first: usize, spread: u32, blocks: &mut [u128]) {
        self.hasher.hash(first, spread, blocks);
    }

    /// The first `count` blocks, at most 48, to be written and then hashed.
    #[inline]
    pub(crate) fn blocks(&mut self, count: usize) -> &mut [u128] {
        &mut self.blocks[..count]
    }

    /// Hashes the first `count` blocks as [`GateHash::hash`] does.
    #[inline]
    pub(crate) fn hash_blocks(&mut self, first: usize, spread: u32, count: usize) -> &[u128] {
        self.hasher.hash(first, spread, &mut self.blocks[..count.next_multiple_of(EIGHT)]);
        &self.blocks[..count]
    }

    /// From the zero labels of `a` and `b` those of `a and b`, and the tables `TG`, `TE`.
    /// Takes two keys.
    #[inline]
    pub fn garble<const L: usize>(
        &mut self,
        delta: u128,
        operands: [&Labels<L>; 2],
        tables: &mut [Labels<L>; 2],
    ) -> Labels<L> {
        let (first, mut out) = (self.next(2), [0; L]);
        if let (Some(operands), [Some(tg), Some(te)], Some(to)) =
            (eights(operands), tables.each_mut().map(eight_mut), eight_mut(&mut out))
            && self.hasher.garble(first, &delta, operands, [tg, te], to)
        {
            return out;
        }
        let blocks = &mut self.blocks;
        let shift = hash_input(delta, 0);
        for (half, labels) in operands.into_iter().enumerate() {
            let (low, high) = blocks[2 * L * half..][..2 * L].split_at_mut(L);
            for (lane, ((low, high), label)) in low.iter_mut().zip(high).zip(labels).enumerate() {
                *low = hash_input(*label, lane as u64);
                *high = *low ^ shift;
            }
        }
        let hashed = &mut blocks[..(4 * L).next_multiple_of(EIGHT)];
        self.hasher.hash(first, (2 * L).ilog2(), hashed);
        for lane in 0..L {
            let [a0, a1, b0, b1] = [0, 1, 2, 3].map(|quarter| blocks[quarter * L + lane]);
            let [a, b] = operands.map(|labels| labels[lane]);
            let (tg, te) = (a0 ^ a1 ^ (colour(b) & delta), b0 ^ b1 ^ a);
            out[lane] = a0 ^ (colour(a) & tg) ^ b0 ^ (colour(b) & (te ^ a));
            (tables[0][lane], tables[1][lane]) = (tg, te);
        }
        out
    }

    /// From labels of `a` and `b` and the tables the labels of `a and b`. Takes two keys.
    #[inline]
    pub fn evaluate<const L: usize>(
        &mut self,
        operands: [&Labels<L>; 2],
        tables: &[Labels<L>; 2],
    ) -> Labels<L> {
        let (first, mut out) = (self.next(2), [0; L]);
        if let (Some(operands), Some(both), Some(to)) =
            (eights(operands), eights(tables.each_ref()), eight_mut(&mut out))
            && self.hasher.evaluate(first, operands, both, to)
        {
            return out;
        }
        let blocks = &mut self.blocks;
        for (half, labels) in operands.into_iter().enumerate() {
            for (lane, (block, label)) in blocks[L * half..].iter_mut().zip(labels).enumerate() {
                *block = hash_input(*label, lane as u64);
            }
        }
        let hashed = &mut blocks[..(2 * L).next_multiple_of(EIGHT)];
        self.hasher.hash(first, L.ilog2(), hashed);
        for lane in 0..L {
            let [a, b] = operands.map(|labels| labels[lane]);
            let wg = blocks[lane] ^ (colour(a) & tables[0][lane]);
            let we = blocks[L + lane] ^ (colour(b) & (tables[1][lane] ^ a));
            out[lane] = wg ^ we;
        }
        out
    }
}

#[cfg(target_arch = "x86_64")]
impl GateHash {
    /// Garbles eight instances in three halves under keys `first` to `first + 2`; false, and nothing done, of other
    /// numbers and at the portable level.
    #[inline]
    pub(crate) fn garble_three<const L: usize>(
        &self,
        first: usize,
        delta: u128,
        operands: [&Labels<L>; 2],
        table: &mut Table<L>,
        out: &mut Labels<L>,
    ) -> bool {
        let (mut thirds, mut controls) = ([0; EIGHT], [0; EIGHT]);
        let (Some(operands), Some(pairs), Some(out)) =
            (eights(operands), eight_mut(&mut table.pairs), eight_mut(out))
        else {
            return false;
        };
        let parts = Parts { pairs, thirds: &mut thirds, controls: &mut controls };
        if !self.hasher.garble_three(first, &delta, operands, parts, out) {
            return false;
        }
        table.bits = [0; 3];
        for (lane, (third, controls)) in thirds.iter().zip(controls).enumerate() {
            table.thirds[lane] = *third as u64;
            for (bits, place) in table.bits.iter_mut().zip(PLACES) {
                *bits |= ((controls >> place) as u8 & 1) << lane;
            }
        }
        true
    }

    /// Evaluates what [`GateHash::garble_three`] garbled; false likewise.
    #[inline]
    pub(crate) fn evaluate_three<const L: usize>(
        &self,
        first: usize,
        operands: [&Labels<L>; 2],
        table: &Table<L>,
        out: &mut Labels<L>,
    ) -> bool {
        let (Some([left, right]), Some([pairs, _]), Some(out)) =
            (eights(operands), eights([&table.pairs; 2]), eight_mut(out))
        else {
            return false;
        };
        let (mut thirds, mut controls) = ([0; EIGHT], [0; EIGHT]);
        for (lane, (third, controls)) in thirds.iter_mut().zip(&mut controls).enumerate() {
            *third = u128::from(table.thirds[lane]);
            for (bits, place) in table.bits.iter().zip(PLACES) {
                *controls |= u128::from(bits >> lane & 1) << place;
            }
        }
        let parts = Parts { pairs, thirds: &thirds, controls: &controls };
        self.hasher.evaluate_three(first, [left, right], parts, out)
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl GateHash {
    pub(crate) fn garble_three<const L: usize>(
        &self,
        _: usize,
        _: u128,
        _: [&Labels<L>; 2],
        _: &mut Table<L>,
        _: &mut Labels<L>,
    ) -> bool {
        false
    }

    pub(crate) fn evaluate_three<const L: usize>(
        &self,
        _: usize,
        _: [&Labels<L>; 2],
        _: &Table<L>,
        _: &mut Labels<L>,
    ) -> bool {
        false
    }
}

/// All ones for colour 1, else zero.
#[inline]
const fn colour(label: u128) -> u128 {
    (label & 1).wrapping_neg()
}

/// Eight labels, if there are as many.
#[inline]
fn eights<const L: usize>(labels: [&Labels<L>; 2]) -> Option<[&Labels<EIGHT>; 2]> {
    let [left, right] = labels.map(|labels| labels.as_slice().try_into().ok());
    left.zip(right).map(|(left, right)| [left, right])
}

#[inline]
fn eight_mut<const L: usize>(labels: &mut Labels<L>) -> Option<&mut Labels<EIGHT>> {
    labels.as_mut_slice().try_into().ok()
}

/// Returns what is hashed for label `x` of instance `lane` of a group, 0 to 7. Linear in `x` for
/// lane 0.
#[inline]
pub const fn hash_input(x: u128, lane: u64) -> u128 {
    tweaked(x, lane)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;

    /// The kernels for eight instances against the portable code, and what both are for.
    #[test]
    fn half_gates_multiply_at_every_level() {
        let mut rng = Random::seeded(2);
        let (salt, delta) = (rng.block(), rng.block() | 1);
        let labels: [[u128; EIGHT]; 2] =
            std::array::from_fn(|_| std::array::from_fn(|_| rng.block()));
        let mut all = Vec::new();
        for level in Level::available() {
            let (mut garbler, mut evaluator) =
                (GateHash::new(salt, level), GateHash::new(salt, level));
            for turn in 0..9u64 {
                let mut tables = [[0; EIGHT]; 2];
                let out = garbler.garble(delta, labels.each_ref(), &mut tables);
                all.push((turn, out, tables));
                // Bits of the operands of each instance, all four pairs over the turns.
                let bit = |half: u32, lane: usize| u128::from((turn + lane as u64) >> half & 1);
                let input = |half: usize| -> [u128; EIGHT] {
                    std::array::from_fn(|lane| {
                        labels[half][lane] ^ (bit(half as u32, lane) * delta)
                    })
                };
                let got = evaluator.evaluate([&input(0), &input(1)], &tables);
                let wanted =
                    (0..EIGHT).map(|lane| out[lane] ^ (bit(0, lane) * bit(1, lane) * delta));
                assert!(got.into_iter().eq(wanted), "{level:?}");
            }
        }
        assert!(all.iter().all(|(turn, out, tables)| {
            let (_, first, others) = &all[*turn as usize];
            (out, tables) == (first, others)
        }));
    }

    /// Key number by key number, as [`GateHash::next`] promises.
    #[test]
    fn every_level_uses_every_key_once() {
        let mut rng = Random::seeded(1);
        let (salt, input) = (rng.block(), rng.block());
        let single = |counter: u64| {
            let mut hasher = Hasher::new(Level::SCALAR);
            hasher.set([salt ^ u128::from(counter); EIGHT]);
            let mut blocks = [input; EIGHT];
            hasher.hash(0, 3, &mut blocks);
            blocks[0]
        };
        for level in Level::available() {
            let mut hash = GateHash::new(salt, level);
            let mut wanted = 0;
            for count in [2, 2, 1, 1, 1, 2, 1, 2, 1, 1, 2, 2] {
                let first = hash.next(count);
                wanted += wanted % count as u64;
                for spread in [4, 3, 1] {
                    let mut blocks = [input; 32];
                    let len = (count << spread).next_multiple_of(EIGHT);
                    hash.hash(first, spread, &mut blocks[..len]);
                    for (at, block) in blocks[..count << spread].iter().enumerate() {
                        let counter = wanted + (at >> spread) as u64;
                        assert_eq!(*block, single(counter), "{level:?} {counter}");
                    }
                }
                wanted += count as u64;
            }
        }
    }
}
