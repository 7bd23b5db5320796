//! Half-gates and projections on a group of instances.
//!
//! An AND gate takes two keys: the garbler's half hashes the left label under one, the
//! evaluator's half the right label under the other (Zahur, Rosulek, Evans, "Two halves
//! make a whole", EUROCRYPT 2015; `TG`, `TE`, `WG`, `WE` as there). A projection takes one
//! (Ball, Malkin, Rosulek, "Garbling gadgets", CCS 2016). The colour of a label is its
//! lowest bit; Delta's is 1.

use ot::gates::{GateHash, hash_input};
use ring::simd::Level;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A label for each instance of the group.
pub(crate) type Labels<const L: usize> = [u128; L];

/// All ones for colour 1, else zero.
#[inline]
const fn spread(label: u128) -> u128 {
    (label & 1).wrapping_neg()
}

/// The garbler's end of a group of `L` instances (1 or 8).
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct GarblerGates<const L: usize> {
    delta: u128,
    #[zeroize(skip)]
    hash: GateHash,
    blocks: [u128; 32],
}

impl<const L: usize> GarblerGates<L> {
    /// Instances that share a key, twice: both labels of each are hashed under it.
    const SPREAD: u32 = (2 * L).ilog2();

    pub(crate) fn new(level: Level, delta: u128, salt: u128) -> Self {
        Self { delta, hash: GateHash::new(salt, level), blocks: [0; 32] }
    }

    /// Inputs of the hash: both labels of every instance.
    #[inline]
    fn fill(&mut self, half: usize, zeros: &Labels<L>) {
        let delta = hash_input(self.delta, 0);
        let (low, high) = self.blocks[2 * L * half..][..2 * L].split_at_mut(L);
        for (lane, ((low, high), zero)) in low.iter_mut().zip(high).zip(zeros).enumerate() {
            *low = hash_input(*zero, lane as u64);
            *high = *low ^ delta;
        }
    }

    /// Hashes the inputs with the next keys.
    #[inline]
    fn hash(&mut self, keys: usize) {
        let first = self.hash.next(keys);
        let count = (2 * L * keys).next_multiple_of(8);
        self.hash.hash(first, Self::SPREAD, &mut self.blocks[..count]);
    }

    /// The zero labels of `a and b`, and both halves' tables.
    #[inline]
    pub(crate) fn and(
        &mut self,
        a: &Labels<L>,
        b: &Labels<L>,
        tables: &mut [[u128; L]; 2],
    ) -> Labels<L> {
        self.fill(0, a);
        self.fill(1, b);
        self.hash(2);
        let mut out = [0; L];
        let hashes = &self.blocks;
        for lane in 0..L {
            let [a0, a1, b0, b1] = [0, 1, 2, 3].map(|quarter| hashes[quarter * L + lane]);
            let (pa, pb) = (spread(a[lane]), spread(b[lane]));
            let tg = a0 ^ a1 ^ (pb & self.delta);
            let te = b0 ^ b1 ^ a[lane];
            let wg = a0 ^ (pa & tg);
            let we = b0 ^ (pb & (te ^ a[lane]));
            out[lane] = wg ^ we;
            tables[0][lane] = tg;
            tables[1][lane] = te;
        }
        out
    }

    /// For each instance the hashes of the labels of colour 0 and of colour 1, and whether
    /// colour 0 stands for a one.
    pub(crate) fn project(&mut self, zeros: &Labels<L>) -> Zeroizing<[(u128, u128, u64); L]> {
        self.fill(0, zeros);
        self.hash(1);
        let mut out = Zeroizing::new([(0, 0, 0); L]);
        for (lane, out) in out.iter_mut().enumerate() {
            let swap = (self.blocks[lane] ^ self.blocks[L + lane]) & spread(zeros[lane]);
            let (zero, one) = (self.blocks[lane] ^ swap, self.blocks[L + lane] ^ swap);
            *out = (zero, one, zeros[lane] as u64 & 1);
        }
        out
    }
}

/// The evaluator's end.
pub(crate) struct EvaluatorGates<const L: usize> {
    hash: GateHash,
    blocks: [u128; 16],
}

impl<const L: usize> EvaluatorGates<L> {
    pub(crate) fn new(level: Level, salt: u128) -> Self {
        Self { hash: GateHash::new(salt, level), blocks: [0; 16] }
    }

    #[inline]
    fn fill(&mut self, half: usize, labels: &Labels<L>) {
        let blocks = self.blocks[L * half..][..L].iter_mut();
        for (lane, (block, label)) in blocks.zip(labels).enumerate() {
            *block = hash_input(*label, lane as u64);
        }
    }

    /// The labels of `a and b`.
    #[inline]
    pub(crate) fn and(
        &mut self,
        a: &Labels<L>,
        b: &Labels<L>,
        tables: &[[u128; L]; 2],
    ) -> Labels<L> {
        self.fill(0, a);
        self.fill(1, b);
        let first = self.hash.next(2);
        self.hash.hash(first, L.ilog2(), &mut self.blocks[..(2 * L).next_multiple_of(8)]);
        let mut out = [0; L];
        for lane in 0..L {
            let wg = self.blocks[lane] ^ (spread(a[lane]) & tables[0][lane]);
            let we = self.blocks[L + lane] ^ (spread(b[lane]) & (tables[1][lane] ^ a[lane]));
            out[lane] = wg ^ we;
        }
        out
    }

    /// For each instance the hash of its label, and the label's colour.
    pub(crate) fn project(&mut self, labels: &Labels<L>) -> [(u128, u64); L] {
        self.fill(0, labels);
        let first = self.hash.next(1);
        self.hash.hash(first, 3, &mut self.blocks[..8]);
        std::array::from_fn(|lane| (self.blocks[lane], labels[lane] as u64 & 1))
    }
}
