//! SoftSpokenOT over GF(2^4): correlations at 31 bits each.
//!
//! | | |
//! |---|---|
//! | In | sender: Delta (128 bits), all leaves but one of 32 trees; receiver: all leaves |
//! | Out | sender: `q_i`; receiver: random `c_i` and `t_i = q_i xor c_i*Delta` |
//! | Reveals | `u_k xor c`, uniform because the leaf the sender misses is in `u_k` |
//! | Security | semi-honest; AES-128 as pseudo-random generator |
//! | Cost | 31 bits per correlation, receiver to sender, rounded up to 128 correlations ([`corrections_layout`]) |
//! | Paper | Roy, "SoftSpokenOT: quieter OT extension from small-field silent VOLE in the minicrypt model", CRYPTO 2022 (ePrint 2022/192), k = 4, repetition code |
//!
//! Tree `k` gives the receiver `u_k = sum_x r_x` and `v_k = sum_x x*r_x`, and the
//! sender `w_k = sum_x (x + Delta_k)*r_x = v_k + Delta_k*u_k`, for which leaf
//! `Delta_k` is not needed. `r_x` are bits, so that a product with `x` in GF(2^4)
//! is four columns, one per bit of `x`. The choice bits are `u_0`, which spares the
//! first correction.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use ring::word::spread;
use wire::{Packed, Segment};
use zeroize::Zeroizing;

use crate::block::transpose;
use crate::session::Domain;
use crate::tree::{DEPTH, LEAVES, Leaves};

/// Trees: each covers four bits of Delta.
pub(crate) const TREES: usize = 128 / DEPTH;
/// Correlations are made in multiples of this.
pub(crate) const GRAIN: usize = 128;
/// AES blocks taken from a leaf at a time.
const BLOCKS: usize = 64;
/// As bytes.
const ROW: usize = 16 * BLOCKS;
/// Grains in the longest message: enough to keep both parties busy at once.
const MESSAGE: usize = 8 * BLOCKS;

/// Receiver to sender, for each slice of up to 64 grains: the words `u_k xor c`,
/// k = 1 .. 31.
pub(crate) type Corrections = Packed<0x36>;

/// The grains of each message that together make at least `count` correlations.
pub(crate) fn messages(count: usize) -> impl Iterator<Item = usize> {
    let grains = count.div_ceil(GRAIN);
    (0..grains).step_by(MESSAGE).map(move |done| MESSAGE.min(grains - done))
}

/// Layout of the corrections for `grains` times 128 correlations.
pub(crate) fn corrections_layout(grains: usize) -> Vec<Segment> {
    vec![Segment { count: grains * (TREES - 1) * GRAIN / 64, bits: 64 }]
}

/// The receiver's trees.
pub(crate) struct Receiver {
    streams: Streams,
    choices: Row,
}

/// The sender's trees and Delta.
pub(crate) struct Sender {
    streams: Streams,
    delta: Zeroizing<u128>,
}

type Row = Zeroizing<[u8; ROW]>;

impl Receiver {
    /// From the leaves of all trees.
    pub(crate) fn new(domain: &Domain, trees: &[Leaves]) -> Self {
        Self { streams: Streams::new(domain, trees, 0), choices: Zeroizing::new([0; ROW]) }
    }

    /// Makes `grains * 128` correlations: appends `t_i` to `blocks`, `c_i` to
    /// `choices`.
    pub(crate) fn extend(
        &mut self,
        grains: usize,
        blocks: &mut Vec<u128>,
        choices: &mut Vec<u8>,
    ) -> Corrections {
        let mut corrections = Vec::with_capacity(grains * (TREES - 1) * GRAIN / 64);
        for used in slices(grains) {
            for tree in 0..TREES {
                self.streams.fold(tree);
                let sum = &self.streams.leaves[0];
                if tree == 0 {
                    self.choices.copy_from_slice(sum);
                } else {
                    let masked = words(sum).zip(words(&self.choices)).map(|(u, c)| u ^ c);
                    corrections.extend(masked.take(2 * used));
                }
            }
            self.streams.rows(used, blocks);
            let bytes = self.choices.iter().take(16 * used);
            choices.extend(bytes.flat_map(|byte| (0..8).map(move |bit| (byte >> bit) & 1)));
        }
        Packed::one(corrections, 64)
    }
}

impl Sender {
    /// From `delta` and the punctured leaves of all trees, position 0 missing.
    pub(crate) fn new(domain: &Domain, trees: &[Leaves], delta: u128) -> Self {
        Self { streams: Streams::new(domain, trees, 1), delta: Zeroizing::new(delta) }
    }

    /// Global difference of all correlations.
    pub(crate) fn delta(&self) -> Zeroizing<u128> {
        self.delta.clone()
    }

    /// The other end of [`Receiver::extend`]: appends `q_i` to `blocks`.
    /// `corrections` has the layout for `grains`.
    pub(crate) fn extend(
        &mut self,
        grains: usize,
        corrections: Corrections,
        blocks: &mut Vec<u128>,
    ) {
        let corrections = corrections.into_values().next().unwrap_or_default();
        let mut rest = corrections.as_slice();
        for used in slices(grains) {
            for tree in 0..TREES {
                self.streams.fold(tree);
                if tree > 0 {
                    let (now, later) = rest.split_at((2 * used).min(rest.len()));
                    rest = later;
                    self.streams.correct(tree, *self.delta, now);
                }
            }
            self.streams.rows(used, blocks);
        }
    }
}

fn slices(grains: usize) -> impl Iterator<Item = usize> {
    (0..grains).step_by(BLOCKS).map(move |done| BLOCKS.min(grains - done))
}

fn words(row: &[u8; ROW]) -> impl Iterator<Item = u64> {
    row.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes))
}

/// The leaves' key streams and the 128 columns they add up to.
///
/// Stream `x` of tree `k` is `AES_leaf(start_k xor counter)`. `start_k` hashes
/// session, direction and tree, so that a search for the missing leaf serves one
/// tree of one session only.
struct Streams {
    ciphers: Vec<Aes128Enc>,
    missing: usize,
    starts: [u128; TREES],
    counter: u64,
    leaves: Zeroizing<Vec<[u8; ROW]>>,
    columns: Zeroizing<Vec<[u8; ROW]>>,
}

impl Streams {
    /// The first `missing` positions of every tree are taken as zero streams.
    fn new(domain: &Domain, trees: &[Leaves], missing: usize) -> Self {
        let known = trees.iter().flat_map(|leaves| &leaves[missing..]);
        let ciphers = known.map(|leaf| Aes128Enc::new(&leaf.to_le_bytes().into())).collect();
        let start = |tree: usize| domain.blocks(b"streams ", &[&[tree as u8]])[0];
        Self {
            ciphers,
            missing,
            starts: std::array::from_fn(start),
            counter: 0,
            leaves: Zeroizing::new(vec![[0; ROW]; LEAVES]),
            columns: Zeroizing::new(vec![[0; ROW]; TREES * DEPTH]),
        }
    }

    /// Expands a tree: its four columns `sum_x bit_b(x)*r_x` go to `columns`, the
    /// sum of all streams to `leaves[0]`.
    fn fold(&mut self, tree: usize) {
        self.expand(tree);
        for (bit, column) in self.columns[tree * DEPTH..][..DEPTH].iter_mut().enumerate() {
            column.fill(0);
            for pair in self.leaves.chunks_exact_mut(2 << bit) {
                let (even, odd) = pair.split_at_mut(1 << bit);
                add(column, &odd[0]);
                add(&mut even[0], &odd[0]);
            }
        }
    }

    fn expand(&mut self, tree: usize) {
        let mut counters = [Block::default(); BLOCKS];
        for (at, block) in (self.counter..).zip(&mut counters) {
            *block = (self.starts[tree] ^ u128::from(at)).to_le_bytes().into();
        }
        let (missing, known) = self.leaves.split_at_mut(self.missing);
        missing.iter_mut().for_each(|leaf| leaf.fill(0));
        let ciphers = &self.ciphers[tree * known.len()..][..known.len()];
        for (cipher, leaf) in ciphers.iter().zip(known) {
            let (out, _) = leaf.as_chunks_mut();
            let out = Block::cast_slice_from_core_mut(out);
            out.copy_from_slice(&counters);
            cipher.encrypt_blocks(out);
        }
    }

    /// Adds `Delta_k * correction` to the columns of `tree`.
    fn correct(&mut self, tree: usize, delta: u128, correction: &[u64]) {
        for (bit, column) in self.columns[tree * DEPTH..][..DEPTH].iter_mut().enumerate() {
            let on = spread((delta >> (tree * DEPTH + bit)) as u64 & 1);
            for (bytes, word) in column.as_chunks_mut().0.iter_mut().zip(correction) {
                *bytes = (u64::from_le_bytes(*bytes) ^ (word & on)).to_le_bytes();
            }
        }
    }

    /// Appends the first `used` grains of the columns as rows, and moves on.
    fn rows(&mut self, used: usize, out: &mut Vec<u128>) {
        let mut square = Zeroizing::new([0; 128]);
        for grain in 0..used {
            for (row, column) in square.iter_mut().zip(self.columns.iter()) {
                *row = column.as_chunks().0.get(grain).map_or(0, |b| u128::from_le_bytes(*b));
            }
            transpose(&mut square);
            out.extend_from_slice(&*square);
        }
        self.counter += used as u64;
    }
}

fn add(to: &mut [u8; ROW], from: &[u8; ROW]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to ^= from);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionId;
    use ring::Random;
    use wire::Role;

    #[test]
    fn core_against_core_over_several_slices() {
        let mut rng = Random::seeded(1);
        let domain = Domain::new(SessionId([9; 32]), Role::Client);
        let delta = rng.block();
        let all: Vec<Leaves> =
            (0..TREES).map(|_| Zeroizing::new(std::array::from_fn(|_| rng.block()))).collect();
        let known = |(tree, leaves): (usize, &Leaves)| {
            let hole = (delta >> (tree * DEPTH)) as usize % LEAVES;
            let leaf = |y: usize| if y == 0 { 0 } else { leaves[y ^ hole] };
            Zeroizing::new(std::array::from_fn(leaf))
        };
        let known: Vec<Leaves> = all.iter().enumerate().map(known).collect();
        let mut receiver = Receiver::new(&domain, &all);
        let mut sender = Sender::new(&domain, &known, delta);
        let (mut t, mut q, mut c) = (Vec::new(), Vec::new(), Vec::new());
        for grains in [1, BLOCKS + 3, BLOCKS] {
            let corrections = receiver.extend(grains, &mut t, &mut c);
            sender.extend(grains, corrections, &mut q);
        }
        assert_eq!([t.len(), q.len(), c.len()], [(2 * BLOCKS + 4) * GRAIN; 3]);
        for ((t, q), c) in t.iter().zip(&q).zip(&c) {
            assert_eq!(t ^ q, delta & u128::from(*c).wrapping_neg());
        }
        let ones: usize = c.iter().map(|c| usize::from(*c)).sum();
        assert!(ones.abs_diff(c.len() / 2) < 6 * 65, "{ones} of {}", c.len());
    }

    #[test]
    fn messages_cover_the_count_exactly() {
        for (count, wanted) in
            [(0, 0), (1, 1), (128, 1), (129, 2), (3 * MESSAGE * GRAIN + 1, 3 * MESSAGE + 1)]
        {
            assert_eq!(messages(count).sum::<usize>(), wanted);
            assert!(messages(count).all(|grains| (1..=MESSAGE).contains(&grains)));
        }
    }
}
