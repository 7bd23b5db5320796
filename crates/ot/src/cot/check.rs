//! The consistency check of SoftSpoken's corrections, against a receiver that sends others than
//! the protocol says.
//!
//! | | |
//! |---|---|
//! | In | both: the columns of a message's correlations, and its corrections; the last 128 correlations are spent on the check |
//! | Out | receiver: 48 bytes for its message; sender: whether they fit; both: public offsets for the rows |
//! | Reveals | a hash of the choice bits that the spent ones mask |
//! | Security | a receiver whose corrections are of different choice bits passes with probability 2^-128, but for what it guesses of Delta; BLAKE3 within SHA-256 as random oracle |
//! | Cost | 128 correlations and 48 bytes a message ([`WORDS`]) |
//! | Paper | Roy, SoftSpokenOT, CRYPTO 2022 (ePrint 2022/192), section 4; the challenge is a hash of what was sent (Fiat, Shamir), and the hashed columns are sent as a digest, as Baum et al. do (CRYPTO 2023, ePrint 2023/996) |
//!
//! A column of 128 rows is an element of GF(2^128). The columns of each grain get a random weight out of a
//! hash of everything sent so far, a slice of 64 grains at a time, and the weighted sums of `q`, `t` and `c` must
//! fit as `q`, `t` and `c` do: `sum q = sum t + Delta*sum c`, column by column. Wrong corrections add a product with
//! a weight that was drawn after them, those of the last slice that has any, so that nothing sent earlier or later
//! cancels it. The choice bits that are spent have a random weight as well.
//!
//! The hash gives each row an offset too, which both parties add to `q_i` and `t_i`. A receiver
//! chooses its trees, and with them `t_i`, before it knows the offsets, so that it cannot choose
//! what [`crate::hash`] hashes.
//!
//! Corrections are hashed by BLAKE3, which takes a slice in parallel (O'Connor, Aumasson, Neves, Wilcox-O'Hearn,
//! "BLAKE3: one function, fast everywhere", 2020), and its digest by SHA-256 with the state before.

use ring::simd::Level;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::softspoken::GRAIN;
use crate::block::{mask_of_secret, of_words, to_words};
use crate::session::Domain;
use crate::simd::products::weighted_sums;
use crate::simd::stream::Streams;
use crate::simd::transpose::Columns;
use crate::simd::{EIGHT, Eight};

/// Words of a message that the check takes: two of the choice bits' sum, four of a digest.
pub(crate) const WORDS: usize = 6;

/// One party's end of the check.
pub(crate) struct Check {
    level: Level,
    domain: Domain,
    /// Hash of everything sent so far.
    transcript: [u8; 32],
    /// Corrections of a slice as bytes.
    bytes: Vec<u8>,
    /// Weights and offsets of the eights of a slice, each under a key of its own.
    stream: Streams,
    /// The next eight of the slice.
    next: usize,
    /// Weights and offsets of an eight.
    challenge: Zeroizing<Vec<Eight>>,
    /// Weighted sums of the columns, and of the choice bits at the receiver.
    sums: Zeroizing<[u128; 128]>,
    choices: Zeroizing<[u128; 1]>,
}

impl Check {
    /// `trees` is a hash of all that made the trees.
    pub(crate) fn new(level: Level, domain: Domain, trees: [u8; 32]) -> Self {
        let stream = Streams::new(level, 16 * (EIGHT + EIGHT * GRAIN));
        let challenge = stream.room();
        let sums = Zeroizing::new([0; 128]);
        let choices = Zeroizing::new([0]);
        let bytes = Vec::new();
        let next = EIGHT;
        Self { level, domain, transcript: trees, bytes, stream, next, challenge, sums, choices }
    }

    /// Takes in the corrections of a slice, of at most eight eights.
    pub(crate) fn take_in(&mut self, corrections: &[u64]) {
        self.bytes.resize(size_of_val(corrections), 0);
        let (bytes, _) = self.bytes.as_chunks_mut();
        bytes.iter_mut().zip(corrections).for_each(|(to, word)| *to = word.to_le_bytes());
        let digest = blake3::hash(&self.bytes);
        self.transcript = self.domain.digest(b"corrects", &[&self.transcript, digest.as_bytes()]);
        let mut keys = [0; EIGHT];
        for (at, pair) in (0u8..).zip(keys.as_chunks_mut().0) {
            *pair = self.domain.blocks(b"weights ", &[&self.transcript, &[at]]);
        }
        self.stream.set(&keys);
        self.next = 0;
    }

    /// Makes the weights and offsets of the next eight of the slice, which has `used` grains.
    pub(crate) fn draw(&mut self, used: usize) {
        self.stream.write(self.next, &mut self.challenge);
        self.challenge[0][used..].fill(0);
        self.next += 1;
    }

    /// Adds the columns of the eight whose weights were drawn, which hold rows without offsets.
    pub(crate) fn add_columns(&mut self, columns: &Columns) {
        weighted_sums(self.level, &self.challenge[0], columns, &mut *self.sums);
    }

    /// Adds the choice bits of the eight whose weights were drawn.
    pub(crate) fn add_choices(&mut self, choices: &Eight) {
        let column = std::slice::from_ref(choices);
        weighted_sums(self.level, &self.challenge[0], column, &mut *self.choices);
    }

    /// Returns what is added to the rows of the eight whose weights were drawn.
    pub(crate) fn offsets(&self) -> &[u128] {
        self.challenge[1..].as_flattened()
    }

    /// The receiver's part of a message, all of which was added.
    pub(crate) fn prove(&mut self) -> [u64; WORDS] {
        let [sum] = std::mem::take(&mut *self.choices);
        let [a, b, c, d] = self.digest();
        let [low, high] = to_words(sum);
        [low, high, a, b, c, d]
    }

    /// Whether the receiver's part fits what was added, `delta` being the sender's.
    pub(crate) fn fits(&mut self, delta: u128, proof: &[u64; WORDS]) -> bool {
        let [low, high, digest @ ..] = proof;
        let sum = of_words([*low, *high]);
        for (bit, column) in self.sums.iter_mut().enumerate() {
            *column ^= sum & mask_of_secret((delta >> bit) & 1);
        }
        self.digest().ct_eq(digest).into()
    }

    /// A digest of the sums of all columns, which are zero afterwards.
    fn digest(&mut self) -> [u64; 4] {
        let sums = Zeroizing::new(std::mem::replace(&mut *self.sums, [0; 128]));
        let bytes = Zeroizing::new(sums.map(u128::to_le_bytes));
        self.domain.words(b"row sums", &[&self.transcript, bytes.as_flattened()])
    }
}
