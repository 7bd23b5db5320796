//! SoftSpokenOT over GF(2^k), k = 2, 4 or 8: correlations at 128/k - 1 bits each.
//!
//! | | |
//! |---|---|
//! | In | sender: Delta (128 bits), all leaves but one of 128/k trees; receiver: all leaves |
//! | Out | sender: `q_i`; receiver: random `c_i` and `t_i = q_i xor c_i*Delta` |
//! | Reveals | `u_j xor c`, uniform because the leaf the sender misses is in `u_j` |
//! | Security | semi-honest; AES-128 as pseudo-random generator |
//! | Cost | 63, 31 or 15 bits per correlation, receiver to sender, rounded up to 128 correlations ([`corrections_layout`]); 2, 4 or 32 AES blocks per correlation |
//! | Paper | Roy, "SoftSpokenOT: quieter OT extension from small-field silent VOLE in the minicrypt model", CRYPTO 2022 (ePrint 2022/192), repetition code |
//!
//! Tree `j` gives the receiver `u_j = sum_x r_x` and `v_j = sum_x x*r_x`, and the
//! sender `w_j = sum_x (x + Delta_j)*r_x = v_j + Delta_j*u_j`, for which leaf
//! `Delta_j` is not needed. `r_x` are bits, so that a product with `x` in GF(2^k)
//! is k columns, one per bit of `x`. The choice bits are `u_0`, which spares the
//! first correction.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use ring::word::{mask, spread};
use wire::{Packed, Segment};
use zeroize::Zeroizing;

use crate::block::transpose;
use crate::session::Domain;
use crate::tree::Leaves;

/// Correlations are made in multiples of this.
pub(crate) const GRAIN: usize = 128;
/// AES blocks taken from a leaf at a time.
const BLOCKS: usize = 64;
/// As bytes.
const ROW: usize = 16 * BLOCKS;
/// Grains in the longest message: enough to keep both parties busy at once.
const MESSAGE: usize = 8 * BLOCKS;

/// Receiver to sender, for each slice of up to 64 grains: the words `u_j xor c`,
/// j = 1 .. 128/k - 1.
pub(crate) type Corrections = Packed<0x36>;

/// The field of SoftSpoken: a larger one sends less and computes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// GF(2^2): 63 bits and 2 AES blocks per correlation.
    Gf4,
    /// GF(2^4): 31 bits and 4 AES blocks per correlation.
    Gf16,
    /// GF(2^8): 15 bits and 32 AES blocks per correlation.
    Gf256,
}

impl Field {
    /// Every field there is.
    pub const ALL: [Self; 3] = [Self::Gf4, Self::Gf16, Self::Gf256];

    /// The bits k of an element: those of Delta that a tree covers.
    pub const fn bits(self) -> usize {
        match self {
            Self::Gf4 => 2,
            Self::Gf16 => 4,
            Self::Gf256 => 8,
        }
    }

    /// Trees of one direction.
    pub const fn trees(self) -> usize {
        128 / self.bits()
    }

    /// Bits sent for each correlation.
    pub const fn sent_bits(self) -> usize {
        self.trees() - 1
    }

    /// The bits of Delta that belong to `tree`: the leaf that the sender misses.
    pub(crate) const fn part(self, delta: u128, tree: usize) -> u8 {
        ((delta >> (tree * self.bits())) as u64 & mask(self.bits() as u32)) as u8
    }
}

/// The grains of each message that together make at least `count` correlations.
pub(crate) fn messages(count: usize) -> impl Iterator<Item = usize> {
    let grains = count.div_ceil(GRAIN);
    (0..grains).step_by(MESSAGE).map(move |done| MESSAGE.min(grains - done))
}

/// Layout of the corrections for `grains` times 128 correlations.
pub(crate) fn corrections_layout(field: Field, grains: usize) -> Vec<Segment> {
    vec![Segment { count: grains * field.sent_bits() * GRAIN / 64, bits: 64 }]
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
    pub(crate) fn new(domain: &Domain, field: Field, trees: &[Leaves]) -> Self {
        Self { streams: Streams::new(domain, field, trees, 0), choices: Zeroizing::new([0; ROW]) }
    }

    /// Makes `grains * 128` correlations: appends `t_i` to `blocks`, `c_i` to
    /// `choices`.
    pub(crate) fn extend(
        &mut self,
        grains: usize,
        blocks: &mut Vec<u128>,
        choices: &mut Vec<u8>,
    ) -> Corrections {
        let field = self.streams.field;
        let mut corrections = Vec::with_capacity(grains * field.sent_bits() * GRAIN / 64);
        for used in slices(grains) {
            for tree in 0..field.trees() {
                self.streams.fold(tree);
                let sum = &self.streams.sum;
                if tree == 0 {
                    self.choices.copy_from_slice(&**sum);
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
    pub(crate) fn new(domain: &Domain, field: Field, trees: &[Leaves], delta: u128) -> Self {
        Self { streams: Streams::new(domain, field, trees, 1), delta: Zeroizing::new(delta) }
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
            for tree in 0..self.streams.field.trees() {
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
/// Stream `x` of tree `j` is `AES_leaf(start_j xor counter)`. `start_j` hashes
/// session, direction and tree, so that a search for the missing leaf serves one
/// tree of one session only.
struct Streams {
    field: Field,
    ciphers: Vec<Aes128Enc>,
    missing: usize,
    starts: Vec<u128>,
    counter: u64,
    leaf: Row,
    sum: Row,
    columns: Zeroizing<Vec<[u8; ROW]>>,
}

impl Streams {
    /// The first `missing` positions (0 or 1) of every tree are taken as zero
    /// streams.
    fn new(domain: &Domain, field: Field, trees: &[Leaves], missing: usize) -> Self {
        let known = trees.iter().flat_map(|leaves| &leaves[missing..]);
        let ciphers = known.map(|leaf| Aes128Enc::new(&leaf.to_le_bytes().into())).collect();
        let start = |tree: usize| domain.blocks(b"streams ", &[&[tree as u8]])[0];
        Self {
            field,
            ciphers,
            missing,
            starts: (0..field.trees()).map(start).collect(),
            counter: 0,
            leaf: Zeroizing::new([0; ROW]),
            sum: Zeroizing::new([0; ROW]),
            columns: Zeroizing::new(vec![[0; ROW]; 128]),
        }
    }

    /// Expands a tree: its columns `sum_x bit_b(x)*r_x` go to `columns`, the sum of
    /// all streams to `sum`.
    ///
    /// The leaves come in the order of the Gray code `g`, backwards. `g(i)` and
    /// `g(i - 1)` differ in the bit that `i` ends in, so that the sum of the streams
    /// from `g(i)` on, added to that bit's column for every `i`, is what the column
    /// shall hold (summation by parts).
    fn fold(&mut self, tree: usize) {
        let depth = self.field.bits();
        self.sum.fill(0);
        self.columns[tree * depth..][..depth].iter_mut().for_each(|column| column.fill(0));
        for i in (1..1usize << depth).rev() {
            self.expand(tree, i ^ (i >> 1));
            let column = &mut self.columns[tree * depth + i.trailing_zeros() as usize];
            add(&mut self.sum, &self.leaf);
            add(column, &self.sum);
        }
        if self.missing == 0 {
            self.expand(tree, 0);
            add(&mut self.sum, &self.leaf);
        }
    }

    /// The next blocks of stream `x` of `tree`.
    fn expand(&mut self, tree: usize, x: usize) {
        let known = (1 << self.field.bits()) - self.missing;
        let (out, _) = self.leaf.as_chunks_mut();
        for (at, block) in (self.counter..).zip(out.iter_mut()) {
            *block = (self.starts[tree] ^ u128::from(at)).to_le_bytes();
        }
        let cipher = &self.ciphers[tree * known + x - self.missing];
        cipher.encrypt_blocks(Block::cast_slice_from_core_mut(out));
    }

    /// Adds `Delta_j * correction` to the columns of `tree`.
    fn correct(&mut self, tree: usize, delta: u128, correction: &[u64]) {
        let depth = self.field.bits();
        for (bit, column) in self.columns[tree * depth..][..depth].iter_mut().enumerate() {
            let on = spread((delta >> (tree * depth + bit)) as u64 & 1);
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

    fn halves(field: Field, rng: &mut Random) -> (Sender, Receiver) {
        let domain = Domain::new(SessionId([9; 32]), Role::Client);
        let delta = rng.block();
        let leaves = 1 << field.bits();
        let tree = |_| Zeroizing::new((0..leaves).map(|_| rng.block()).collect());
        let all: Vec<Leaves> = (0..field.trees()).map(tree).collect();
        let known = |(tree, leaves): (usize, &Leaves)| {
            let hole = usize::from(field.part(delta, tree));
            let leaf = |y: usize| if y == 0 { 0 } else { leaves[y ^ hole] };
            Zeroizing::new((0..leaves.len()).map(leaf).collect())
        };
        let known: Vec<Leaves> = all.iter().enumerate().map(known).collect();
        (Sender::new(&domain, field, &known, delta), Receiver::new(&domain, field, &all))
    }

    fn core_against_core(field: Field) {
        let (mut sender, mut receiver) = halves(field, &mut Random::seeded(1));
        let delta = *sender.delta();
        let (mut t, mut q, mut c) = (Vec::new(), Vec::new(), Vec::new());
        for grains in [1, BLOCKS + 3, BLOCKS] {
            let corrections = receiver.extend(grains, &mut t, &mut c);
            let words: Vec<_> = corrections.0.iter().map(|(segment, _)| *segment).collect();
            assert_eq!(words, corrections_layout(field, grains));
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
    fn core_against_core_over_several_slices() {
        Field::ALL.into_iter().for_each(core_against_core);
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
