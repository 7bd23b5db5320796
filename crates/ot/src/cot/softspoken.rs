//! SoftSpokenOT over GF(2^k), k = 2, 4 or 8: correlations at 128/k - 1 bits each.
//!
//! | | |
//! |---|---|
//! | In | sender: Delta (128 bits), all leaves but one of 128/k trees; receiver: all leaves |
//! | Out | sender: `q_i`; receiver: random `c_i` and `t_i = q_i xor c_i*Delta` |
//! | Reveals | `u_j xor c`, uniform because the leaf the sender misses is in `u_j` |
//! | Security | malicious, by the check of `check.rs`; AES-128 as pseudo-random generator |
//! | Cost | 63, 31 or 15 bits per correlation, receiver to sender, rounded up to 128 correlations, and as much as for 128 more a message ([`corrections_layout`]); 2, 4 or 32 AES blocks per correlation |
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
use wire::{Error, Packed, Result, Segment, tags};
use zeroize::{Zeroize, Zeroizing};

use super::check::{Check, WORDS};
use super::tree::Leaves;
use crate::block::{mask_of_secret, of_words, to_words};
use crate::session::Domain;
use crate::simd::aes::Ciphers;
use crate::simd::transpose::{Columns, Squares, transpose};
use crate::simd::{EIGHT, Eight};

/// The number of correlations is a multiple of this.
pub(crate) const GRAIN: usize = 128;
/// Eights in a slice of a message.
const EIGHTS: usize = 8;
/// Grains in a slice.
const SLICE: usize = EIGHTS * EIGHT;
/// Grains in the longest message: enough to keep both parties busy at once.
const MESSAGE: usize = 8 * SLICE;

/// Receiver to sender, for each slice of up to 64 grains: the words `u_j xor c`,
/// j = 1 .. 128/k - 1. The last grain is spent on the check, whose words follow.
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
    vec![Segment { count: words(field, grains) + WORDS, bits: 64 }]
}

/// Words of the corrections for `grains` times 128 correlations, and for those of the check.
const fn words(field: Field, grains: usize) -> usize {
    (grains + 1) * field.sent_bits() * GRAIN / 64
}

/// The receiver's trees.
pub(crate) struct Receiver {
    streams: Streams,
    check: Check,
    /// The choice bits of each eight of a slice.
    choices: Zeroizing<[Eight; EIGHTS]>,
}

/// The sender's trees and Delta.
pub(crate) struct Sender {
    streams: Streams,
    check: Check,
    delta: Zeroizing<u128>,
}

impl Receiver {
    /// Makes the receiver's end from the leaves of all trees and a hash of what made them.
    pub(crate) fn new(domain: &Domain, field: Field, trees: (&[Leaves], [u8; 32])) -> Self {
        Self::at_level(Level::best(), domain, field, trees)
    }

    pub(crate) fn at_level(
        level: Level,
        domain: &Domain,
        field: Field,
        (trees, hash): (&[Leaves], [u8; 32]),
    ) -> Self {
        let streams = Streams::new(level, domain, field, trees, EIGHTS, 0);
        let check = Check::new(level, *domain, hash);
        Self { streams, check, choices: Zeroizing::new([[0; EIGHT]; EIGHTS]) }
    }

    /// Makes `grains * 128` correlations: appends `t_i` to `blocks`, `c_i` to
    /// `choices`, both of which have room for 128 more.
    pub(crate) fn extend(
        &mut self,
        grains: usize,
        blocks: &mut Vec<u128>,
        choices: &mut Vec<u8>,
    ) -> Corrections {
        let mut corrections = vec![0; words(self.streams.field, grains)];
        let mut rest = corrections.as_mut_slice();
        for slice in parts(grains + 1, SLICE) {
            let (now, later) = rest.split_at_mut(slice * self.streams.field.sent_bits() * 2);
            rest = later;
            for (eight, (done, used)) in offsets(slice).enumerate() {
                self.expand(eight, now, slice, done, used);
            }
            self.check.take_in(now);
            for (eight, (_, used)) in offsets(slice).enumerate() {
                self.check.draw(used);
                self.check.add_columns(&self.streams.columns[eight]);
                self.check.add_choices(&self.choices[eight]);
                self.streams.rows(eight, used, self.check.offsets(), blocks);
                self.choose(eight, used, choices);
            }
        }
        drop_last(blocks);
        drop_last(choices);
        corrections.extend(self.check.prove());
        Packed::one(corrections, 64)
    }

    /// Folds all trees for `used` grains of an eight of a slice, and writes their corrections
    /// from the `done`-th place of each row of `slice` blocks on.
    fn expand(
        &mut self,
        eight: usize,
        corrections: &mut [u64],
        slice: usize,
        done: usize,
        used: usize,
    ) {
        let choices = &mut self.choices[eight];
        choices.copy_from_slice(self.streams.fold(eight, 0));
        let rows = corrections.chunks_exact_mut(2 * slice);
        for (tree, row) in (1..self.streams.field.trees()).zip(rows) {
            let sum = self.streams.fold(eight, tree);
            let masked = sum.iter().zip(&*choices).map(|(u, c)| u ^ c);
            let (out, _) = row[2 * done..][..2 * used].as_chunks_mut();
            out.iter_mut().zip(masked).for_each(|(out, x)| *out = to_words(x));
        }
        self.streams.counter += used as u64;
    }

    /// Appends the choice bits of `used` grains of an eight.
    fn choose(&self, eight: usize, used: usize, choices: &mut Vec<u8>) {
        let words = self.choices[eight].iter().flat_map(|c| to_words(*c));
        let mut plane = Zeroizing::new([0; 2 * EIGHT]);
        plane.iter_mut().zip(words).for_each(|(word, c)| *word = c);
        let start = choices.len();
        choices.resize(start + used * GRAIN, 0);
        scatter(&plane[..2 * used], 0, &mut choices[start..]);
    }
}

impl Sender {
    /// Makes the sender's end from `delta`, the punctured leaves of all trees, whose
    /// position 0 is missing, and a hash of what made them.
    pub(crate) fn new(
        domain: &Domain,
        field: Field,
        trees: (&[Leaves], [u8; 32]),
        delta: u128,
    ) -> Self {
        Self::at_level(Level::best(), domain, field, trees, delta)
    }

    pub(crate) fn at_level(
        level: Level,
        domain: &Domain,
        field: Field,
        (trees, hash): (&[Leaves], [u8; 32]),
        delta: u128,
    ) -> Self {
        let streams = Streams::new(level, domain, field, trees, 1, 1);
        let check = Check::new(level, *domain, hash);
        Self { streams, check, delta: Zeroizing::new(delta) }
    }

    /// Global difference of all correlations.
    pub(crate) fn delta(&self) -> Zeroizing<u128> {
        self.delta.clone()
    }

    /// The layout of the corrections for `grains` times 128 correlations.
    pub(crate) fn corrections_layout(&self, grains: usize) -> Vec<Segment> {
        corrections_layout(self.streams.field, grains)
    }

    /// The other end of [`Receiver::extend`]: appends `q_i` to `blocks`, which has room for 128
    /// more.
    ///
    /// # Errors
    /// [`Error::Peer`] when the corrections are of different choice bits, or have another layout
    /// than that for `grains`.
    pub(crate) fn extend(
        &mut self,
        grains: usize,
        corrections: Corrections,
        blocks: &mut Vec<u128>,
    ) -> Result<()> {
        if self.unchecked(grains, corrections, blocks) {
            return Ok(());
        }
        Err(Error::peer("corrections of one choice each", "corrections that do not fit"))
    }

    /// Extends, and returns whether the corrections fit.
    fn unchecked(
        &mut self,
        grains: usize,
        corrections: Corrections,
        blocks: &mut Vec<u128>,
    ) -> bool {
        let corrections = corrections.into_values().next().unwrap_or_default();
        let Some((mut rest, proof)) = corrections.split_last_chunk() else { return false };
        if rest.len() != words(self.streams.field, grains) {
            return false;
        }
        for slice in parts(grains + 1, SLICE) {
            let (now, later) = rest.split_at(slice * self.streams.field.sent_bits() * 2);
            rest = later;
            self.check.take_in(now);
            for (done, used) in offsets(slice) {
                self.streams.fold(0, 0);
                for (tree, row) in (1..).zip(part(now, slice, done, used)) {
                    self.streams.fold(0, tree);
                    self.streams.correct(tree, *self.delta, row);
                }
                self.streams.counter += used as u64;
                self.check.draw(used);
                self.check.add_columns(&self.streams.columns[0]);
                self.streams.rows(0, used, self.check.offsets(), blocks);
            }
        }
        drop_last(blocks);
        self.check.fits(*self.delta, proof)
    }
}

/// The corrections of all trees for `used` grains of a slice, from the `done`-th on.
fn part(
    corrections: &[u64],
    slice: usize,
    done: usize,
    used: usize,
) -> impl Iterator<Item = &[u64]> {
    corrections.chunks_exact(2 * slice).map(move |row| &row[2 * done..][..2 * used])
}

/// Wipes and drops the correlations that the check spent.
fn drop_last<T: Zeroize>(items: &mut Vec<T>) {
    let kept = items.len().saturating_sub(GRAIN);
    items[kept..].iter_mut().for_each(Zeroize::zeroize);
    items.truncate(kept);
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
    /// The columns of each eight that is held: a receiver holds those of a slice, a sender one.
    columns: Zeroizing<Vec<Columns>>,
    /// The rows of an eight.
    squares: Zeroizing<Squares>,
}

impl Streams {
    /// Holds the columns of so many eights. The first `missing` positions (0 or 1) of every tree are taken as
    /// zero streams.
    fn new(
        level: Level,
        domain: &Domain,
        field: Field,
        trees: &[Leaves],
        eights: usize,
        missing: usize,
    ) -> Self {
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
            columns: Zeroizing::new(vec![[[0; EIGHT]; 128]; eights]),
            squares: Zeroizing::new([[0; GRAIN]; EIGHT]),
        }
    }

    /// Expands eight grains of a tree: its columns `sum_x bit_b(x)*r_x` go to those
    /// of `eight`, the sum of all known streams is returned.
    ///
    /// The leaves come in the order of the Gray code `g`, backwards. `g(i)` and
    /// `g(i - 1)` differ in the bit that `i` ends in, so that the sum of the streams
    /// from `g(i)` on, added to that bit's column for every `i`, is what the column
    /// shall hold (summation by parts).
    fn fold(&mut self, eight: usize, tree: usize) -> &Eight {
        let mut counters = [0; EIGHT];
        for (at, counter) in (self.counter..).zip(&mut counters) {
            *counter = self.starts[tree] ^ u128::from(at);
        }
        let depth = self.field.bits();
        let columns = &mut self.columns[eight][tree * depth..][..depth];
        columns.fill([0; EIGHT]);
        let leaves = tree * self.known..(tree + 1) * self.known;
        self.ciphers.fold(leaves, &counters, columns, &mut self.sum);
        &self.sum
    }

    /// Adds `Delta_j * correction` to the columns of `tree` of the first eight.
    fn correct(&mut self, tree: usize, delta: u128, correction: &[u64]) {
        let depth = self.field.bits();
        for (bit, column) in self.columns[0][tree * depth..][..depth].iter_mut().enumerate() {
            let on = mask_of_secret((delta >> (tree * depth + bit)) & 1);
            for (block, words) in column.iter_mut().zip(correction.as_chunks().0) {
                *block ^= of_words(*words) & on;
            }
        }
    }

    /// Appends the first `used` grains of the columns of `eight` as rows, each with its offset.
    fn rows(&mut self, eight: usize, used: usize, offsets: &[u128], out: &mut Vec<u128>) {
        transpose(self.level, &mut self.columns[eight], &mut self.squares);
        let rows = &self.squares.as_flattened()[..used * GRAIN];
        out.extend(rows.iter().zip(offsets).map(|(row, offset)| row ^ offset));
    }
}

#[cfg(test)]
mod tests;
