//! The check that the receiver's trees are the sender's, against a sender that sends other blocks
//! than the protocol says.
//!
//! | | |
//! |---|---|
//! | In | the leaves of each tree: all at the sender, all but one and that one xor Delta at the receiver |
//! | Out | receiver: whether there are leaves of the sender's that all of its own fit |
//! | Reveals | nothing to the sender but that the session goes on, which tells it that what it guessed of a position is right |
//! | Security | a sender whose trees fit two positions in different ways passes for both with probability at most 2^-126; AES-128 as ideal cipher, SHA-256 as random oracle |
//! | Cost | 16 bytes a tree and 32 a message, sender to receiver; one AES block and half a product in GF(2^128) a leaf |
//! | Paper | Boyle et al., "Efficient two-round OT extension and silent non-interactive secure computation", CCS 2019, section 5 (tags of leaves and their digest); de Castro, Polychroniadou, "Lightweight, maliciously secure verifiable function secret sharing", EUROCRYPT 2022 |
//!
//! Each leaf has a tag, `H(leaf)` under a key of the tree's own. The sender sends the sum of a tree's
//! tags, from which the receiver finds the tag that it misses. Both then add the tags up by a universal hash with random
//! weights, out of a hash of all that was sent for the tree, and compare a digest of the sums of a
//! message's trees. The weights come after the blocks are fixed, so that different tags do not give the
//! same sum. The hash is `sum (x + w)(y + v)` over pairs of tags `x`, `y` and weights `w`, `v`: if only one
//! tag changes, the difference has a weight as a factor.
//!
//! A sender can still send blocks that fit only some positions of a tree. The session then ends
//! unless the position is one of them: it guesses, and the digest tells it no more than that. docs/protocols/ferret.md
//! shows that the leaves of all positions that pass are the same.

use ring::simd::Level;
use subtle::ConstantTimeEq;
use wire::{Error, Result};
use zeroize::Zeroizing;

use crate::session::Domain;
use crate::simd::aes::Hasher;
use crate::simd::products::paired_sums;
use crate::simd::{EIGHT, Eight};

/// Words of the digest at the end of a message.
pub(crate) const WORDS: usize = 4;

/// Tags that are added up at a time.
const COLUMN: usize = 2 * EIGHT;

/// Adds up tags with weights.
pub(crate) struct Weigher {
    level: Level,
    domain: Domain,
    /// Key of the refill's trees.
    refill: u128,
    hasher: Hasher,
    sums: Zeroizing<Vec<u128>>,
}

impl Weigher {
    /// Weighs trees of at most `2^depth` leaves of the refill with this key.
    pub(crate) fn new(level: Level, domain: Domain, refill: u128, depth: usize) -> Self {
        let sums = Zeroizing::new(vec![0; (1 << depth) / COLUMN]);
        Self { level, domain, refill, hasher: Hasher::new(level), sums }
    }

    /// The weighted sum of the `tags` of tree number `tree` of its refill, `sent` being all blocks that
    /// were sent for it. The tags, a power of two and at least sixteen, are overwritten.
    ///
    /// Sixteen of them, each plus a weight, are multiplied in pairs and added up, all by the same
    /// weights; then every sixteen sums by other weights, until one is left.
    pub(crate) fn weigh(&mut self, tree: usize, sent: &[u128], tags: &mut [u128]) -> u128 {
        let mut bytes = Vec::with_capacity(size_of_val(sent));
        sent.iter().for_each(|block| bytes.extend_from_slice(&block.to_le_bytes()));
        let number = (tree as u64).to_le_bytes();
        let parts: [&[u8]; 3] = [&self.refill.to_le_bytes(), &number, &bytes];
        let [key, _] = self.domain.blocks(b"leaf wts", &parts);
        self.hasher.set([key; EIGHT]);
        let (mut left, mut counter) = (tags.len(), 0);
        while left > 1 {
            let weights = [self.weights(&mut counter), self.weights(&mut counter)];
            let columns = left.div_ceil(COLUMN);
            tags[left..columns * COLUMN].fill(0);
            let sums = &mut self.sums[..columns];
            sums.fill(0);
            let (eights, _) = tags[..columns * COLUMN].as_chunks();
            paired_sums(self.level, &weights, eights.as_chunks().0, sums);
            tags[..columns].copy_from_slice(sums);
            left = columns;
        }
        tags[0]
    }

    /// The next eight weights, which are public.
    fn weights(&self, counter: &mut u128) -> Eight {
        let mut weights = std::array::from_fn(|at| *counter + at as u128);
        *counter += EIGHT as u128;
        self.hasher.hash(0, 0, &mut weights);
        weights
    }
}

/// The digest of a message whose trees have these weighted sums.
pub(crate) fn digest(domain: &Domain, sums: &[u128]) -> [u64; WORDS] {
    let mut bytes = Zeroizing::new(Vec::with_capacity(size_of_val(sums)));
    sums.iter().for_each(|sum| bytes.extend_from_slice(&sum.to_le_bytes()));
    domain.words(b"leaf sum", &[&bytes])
}

/// Compares the receiver's sums with the sender's digest: the only branch on them, which is a function of its own so
/// that measurements of constant time can name it.
///
/// # Errors
/// [`Error::Peer`] when they do not fit.
#[inline(never)]
pub(crate) fn verify(domain: &Domain, sums: &[u128], sent: &[u64]) -> Result<()> {
    if digest(domain, sums).ct_eq(sent).into() {
        return Ok(());
    }
    Err(Error::peer("trees that fit their digest", "other blocks"))
}
