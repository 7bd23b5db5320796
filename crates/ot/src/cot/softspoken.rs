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

use ring::plane::scatter;
use ring::simd::Level;
use ring::word::mask;
use wire::{Packed, Segment, tags};
use zeroize::Zeroizing;

use super::tree::Leaves;
use crate::session::Domain;
use crate::simd::aes::Ciphers;
use crate::simd::transpose::{Columns, transpose};
use crate::simd::{EIGHT, Eight};

/// The number of correlations is a multiple of this.
pub(crate) const GRAIN: usize = 128;
/// Grains in a slice of a message.
const SLICE: usize = 64;
/// Grains in the longest message: enough to keep both parties busy at once.
const MESSAGE: usize = 8 * SLICE;

/// Receiver to sender, for each slice of up to 64 grains: the words `u_j xor c`,
/// j = 1 .. 128/k - 1.
pub(crate) type Corrections = Packed<{ tags::SOFTSPOKEN_CORRECTIONS }>;

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

    /// Returns the bits k of an element: those of Delta that a tree covers.
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

    /// Returns the number of bits sent for each correlation.
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
    choices: Zeroizing<Eight>,
}

/// The sender's trees and Delta.
pub(crate) struct Sender {
    streams: Streams,
    delta: Zeroizing<u128>,
}

impl Receiver {
    /// Makes the receiver's end from the leaves of all trees.
    pub(crate) fn new(domain: &Domain, field: Field, trees: &[Leaves]) -> Self {
        Self::at_level(Level::best(), domain, field, trees)
    }

    pub(crate) fn at_level(level: Level, domain: &Domain, field: Field, trees: &[Leaves]) -> Self {
        let streams = Streams::new(level, domain, field, trees, 0);
        Self { streams, choices: Zeroizing::new([0; EIGHT]) }
    }

    /// Makes `grains * 128` correlations: appends `t_i` to `blocks`, `c_i` to
    /// `choices`.
    pub(crate) fn extend(
        &mut self,
        grains: usize,
        blocks: &mut Vec<u128>,
        choices: &mut Vec<u8>,
    ) -> Corrections {
        let mut corrections = vec![0; grains * self.streams.field.sent_bits() * GRAIN / 64];
        let mut rest = corrections.as_mut_slice();
        for slice in parts(grains, SLICE) {
            let (now, later) = rest.split_at_mut(slice * self.streams.field.sent_bits() * 2);
            rest = later;
            for (done, used) in offsets(slice) {
                self.expand(now, slice, done, used);
                self.streams.rows(used, blocks);
                self.choose(used, choices);
            }
        }
        Packed::one(corrections, 64)
    }

    /// Folds all trees for `used` grains of a slice, and writes their corrections
    /// from the `done`-th place of each row of `slice` blocks on.
    fn expand(&mut self, corrections: &mut [u64], slice: usize, done: usize, used: usize) {
        self.choices.copy_from_slice(self.streams.fold(0));
        let rows = corrections.chunks_exact_mut(2 * slice);
        for (tree, row) in (1..self.streams.field.trees()).zip(rows) {
            let sum = self.streams.fold(tree);
            let masked = sum.iter().zip(&*self.choices).map(|(u, c)| u ^ c);
            let (out, _) = row[2 * done..][..2 * used].as_chunks_mut();
            out.iter_mut().zip(masked).for_each(|(out, x)| *out = [x as u64, (x >> 64) as u64]);
        }
    }

    /// Appends the choice bits of `used` grains.
    fn choose(&self, used: usize, choices: &mut Vec<u8>) {
        let words = self.choices.iter().flat_map(|c| [*c as u64, (c >> 64) as u64]);
        let mut plane = Zeroizing::new([0; 2 * EIGHT]);
        plane.iter_mut().zip(words).for_each(|(word, c)| *word = c);
        let start = choices.len();
        choices.resize(start + used * GRAIN, 0);
        scatter(&plane[..2 * used], 0, &mut choices[start..]);
    }
}

impl Sender {
    /// Makes the sender's end from `delta` and the punctured leaves of all trees, whose
    /// position 0 is missing.
    pub(crate) fn new(domain: &Domain, field: Field, trees: &[Leaves], delta: u128) -> Self {
        Self::at_level(Level::best(), domain, field, trees, delta)
    }

    pub(crate) fn at_level(
        level: Level,
        domain: &Domain,
        field: Field,
        trees: &[Leaves],
        delta: u128,
    ) -> Self {
        let streams = Streams::new(level, domain, field, trees, 1);
        Self { streams, delta: Zeroizing::new(delta) }
    }

    /// Global difference of all correlations.
    pub(crate) fn delta(&self) -> Zeroizing<u128> {
        self.delta.clone()
    }

    /// The layout of the corrections for `grains` times 128 correlations.
    pub(crate) fn corrections_layout(&self, grains: usize) -> Vec<Segment> {
        corrections_layout(self.streams.field, grains)
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
        let slices = corrections.chunks(SLICE * self.streams.field.sent_bits() * 2);
        for (slice, corrections) in parts(grains, SLICE).zip(slices) {
            for (done, used) in offsets(slice) {
                self.streams.fold(0);
                let rows = corrections.chunks_exact(2 * slice);
                for (tree, row) in (1..self.streams.field.trees()).zip(rows) {
                    self.streams.fold(tree);
                    self.streams.correct(tree, *self.delta, &row[2 * done..][..2 * used]);
                }
                self.streams.rows(used, blocks);
            }
        }
    }
}

/// `count` as parts of `most` and a rest.
fn parts(count: usize, most: usize) -> impl Iterator<Item = usize> {
    (0..count).step_by(most).map(move |done| most.min(count - done))
}

/// Start and length of the eights of a slice.
fn offsets(slice: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..slice).step_by(EIGHT).zip(parts(slice, EIGHT))
}

/// The leaves' key streams and the 128 columns they add up to.
///
/// Stream `x` of tree `j` is `AES_leaf(start_j xor counter)`. `start_j` hashes
/// session, direction and tree, so that a search for the missing leaf serves one
/// tree of one session only.
struct Streams {
    field: Field,
    level: Level,
    /// The leaves of a tree are in the order that [`Streams::fold`] takes them.
    ciphers: Ciphers,
    known: usize,
    starts: Vec<u128>,
    counter: u64,
    sum: Zeroizing<Eight>,
    columns: Zeroizing<Columns>,
}

impl Streams {
    /// The first `missing` positions (0 or 1) of every tree are taken as zero
    /// streams.
    fn new(level: Level, domain: &Domain, field: Field, trees: &[Leaves], missing: usize) -> Self {
        let gray = |i: usize| i ^ (i >> 1);
        let order = || (missing..1 << field.bits()).rev().map(gray);
        let known = order().len();
        let mut leaves = Zeroizing::new(Vec::with_capacity(known * trees.len()));
        leaves.extend(trees.iter().flat_map(|tree| order().map(|x| tree[x])));
        let start = |tree: usize| domain.blocks(b"streams ", &[&[tree as u8]])[0];
        Self {
            field,
            level,
            ciphers: Ciphers::new(level, &leaves),
            known,
            starts: (0..field.trees()).map(start).collect(),
            counter: 0,
            sum: Zeroizing::new([0; EIGHT]),
            columns: Zeroizing::new([[0; EIGHT]; 128]),
        }
    }

    /// Expands eight grains of a tree: its columns `sum_x bit_b(x)*r_x` go to
    /// `columns`, the sum of all known streams is returned.
    ///
    /// The leaves come in the order of the Gray code `g`, backwards. `g(i)` and
    /// `g(i - 1)` differ in the bit that `i` ends in, so that the sum of the streams
    /// from `g(i)` on, added to that bit's column for every `i`, is what the column
    /// shall hold (summation by parts).
    fn fold(&mut self, tree: usize) -> &Eight {
        let mut counters = [0; EIGHT];
        for (at, counter) in (self.counter..).zip(&mut counters) {
            *counter = self.starts[tree] ^ u128::from(at);
        }
        let depth = self.field.bits();
        let columns = &mut self.columns[tree * depth..][..depth];
        columns.fill([0; EIGHT]);
        let leaves = tree * self.known..(tree + 1) * self.known;
        self.ciphers.fold(leaves, &counters, columns, &mut self.sum);
        &self.sum
    }

    /// Adds `Delta_j * correction` to the columns of `tree`.
    fn correct(&mut self, tree: usize, delta: u128, correction: &[u64]) {
        let depth = self.field.bits();
        for (bit, column) in self.columns[tree * depth..][..depth].iter_mut().enumerate() {
            let on = ((delta >> (tree * depth + bit)) & 1).wrapping_neg();
            for (block, [low, high]) in column.iter_mut().zip(correction.as_chunks().0) {
                *block ^= (u128::from(*low) | (u128::from(*high) << 64)) & on;
            }
        }
    }

    /// Appends the first `used` grains of the columns as rows, and moves on.
    fn rows(&mut self, used: usize, out: &mut Vec<u128>) {
        let start = out.len();
        out.resize(start + used * GRAIN, 0);
        if let Some(squares) = out[start..].as_chunks_mut().0.as_chunks_mut().0.first_mut() {
            transpose(self.level, &mut self.columns, squares);
        } else {
            let mut squares = Zeroizing::new([[0; GRAIN]; EIGHT]);
            transpose(self.level, &mut self.columns, &mut squares);
            out[start..].copy_from_slice(&squares.as_flattened()[..used * GRAIN]);
        }
        self.counter += used as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Extension;
    use ring::Random;

    fn core_against_core(levels: [Level; 2], field: Field) {
        let Extension { mut sender, mut receiver } =
            Extension::new(levels, field, &mut Random::seeded(1));
        let delta = *sender.delta();
        let (mut t, mut q, mut c) = (Vec::new(), Vec::new(), Vec::new());
        for grains in [1, SLICE + 3, SLICE] {
            let corrections = receiver.extend(grains, &mut t, &mut c);
            let words: Vec<_> = corrections.0.iter().map(|(segment, _)| *segment).collect();
            assert_eq!(words, corrections_layout(field, grains));
            sender.extend(grains, corrections, &mut q);
        }
        assert_eq!([t.len(), q.len(), c.len()], [(2 * SLICE + 4) * GRAIN; 3]);
        for ((t, q), c) in t.iter().zip(&q).zip(&c) {
            assert_eq!(t ^ q, delta & u128::from(*c).wrapping_neg());
        }
        let ones: usize = c.iter().map(|c| usize::from(*c)).sum();
        assert!(ones.abs_diff(c.len() / 2) < 6 * 65, "{ones} of {}", c.len());
    }

    #[test]
    fn core_against_core_over_several_slices() {
        for level in Level::available() {
            let levels = [level, Level::SCALAR];
            Field::ALL.into_iter().for_each(|field| core_against_core(levels, field));
        }
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
