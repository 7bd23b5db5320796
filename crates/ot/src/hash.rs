//! The hash that turns correlations into pads.
//!
//! `H(x; key, tweak) = E_key(y) xor y` with `y = sigma(x) xor tweak`: the
//! Matyas-Meyer-Oseas form of Guo, Katz, Wang, Weng, Yu, "Better concrete
//! security for half-gates garbling (in the multi-instance setting)", CRYPTO
//! 2020, with AES-128 as E. Keys are `session key xor index`, the index being the
//! position of the group's first correlation in the stream of this session and
//! direction; the session key is a hash of both parties' nonces and the
//! direction. No key is used by two groups, two directions or two sessions.
//!
//! *Tweakable circular correlation robust in the ideal-cipher model.* Under one
//! key the inputs are `sigma(T xor L_a(Delta)) xor tweak`, `T` known to the
//! receiver, `L_a` the multiplication by the field element whose bits are `a = j
//! xor c`. `L_a` is linear and invertible for `a != 0`, as is `L_a xor L_b` for
//! `a != b`, and sigma is linear and bijective: two inputs with different `a` meet,
//! or one meets a query of the adversary, for one Delta in 2^128 each, whatever
//! public constant the tweak adds. Inputs with equal `a` belong to different
//! elements and meet only when their `T` differ by a fixed constant (2^-128, `T` being
//! pseudo-random: SoftSpoken's check adds offsets that a receiver does not know when it
//! chooses its trees; equal `T` are kept apart by the tweak). Sigma is an orthomorphism (`sigma(x) xor x` is bijective too), so that a
//! mask that contains Delta itself does not cancel the feed-forward. A key serves
//! at most [`PADS_PER_KEY`] pads, which bounds the gain of a search for Delta over many
//! pads to 4 bits: an element of a wider table takes several keys, `session key xor index xor
//! part * 2^64` for pads `16 * part` and up.

use ring::simd::Level;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::session::Domain;
use crate::simd::EIGHT;
use crate::simd::aes::Hasher;

/// Most pads hashed at a time: those of one key at the largest width.
pub(crate) const BATCH: usize = 256;

/// The most pads that one key makes.
pub(crate) const PADS_PER_KEY: usize = 16;

/// Elements with `2^choice_bits` pads each that share a key.
pub(crate) const fn elements_per_key(choice_bits: u32) -> usize {
    if choice_bits >= 4 { 1 } else { PADS_PER_KEY >> choice_bits }
}

/// Number of the key of pad `pad` among those of its element.
pub(crate) const fn part_of(pad: usize) -> u128 {
    (pad / PADS_PER_KEY) as u128
}

/// The hash of one session and direction. Its key is public.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PadHash {
    key: u128,
}

impl PadHash {
    pub(crate) fn new(domain: &Domain) -> Self {
        let [key, _] = domain.blocks(b"pad hash", &[]);
        Self { key }
    }

    /// A hash with a key of its own, for correlations that come from a dealer.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) const fn with_key(key: u128) -> Self {
        Self { key }
    }

    /// Hashes with eight keys ready at a time.
    pub(crate) fn pads(&self, level: Level) -> Correlations {
        Correlations { key: self.key, hasher: Hasher::new(level), blocks: [0; BATCH] }
    }
}

/// Correlations in the making. Wiped on drop.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Correlations {
    #[zeroize(skip)]
    key: u128,
    /// Its keys tell the receiver's choices where tables have more than [`PADS_PER_KEY`] entries.
    hasher: Hasher,
    /// The inputs (as [`tweaked`] makes them), then the pads.
    pub(crate) blocks: [u128; BATCH],
}

impl Correlations {
    /// Readies the keys of eight groups: the first has its first correlation at
    /// `index` of the stream, the others follow `step` correlations apart.
    pub(crate) fn set_keys(&mut self, index: u64, step: usize) {
        let indices = (0..EIGHT as u64).map(|group| index.wrapping_add(group * step as u64));
        let mut keys = [0; EIGHT];
        keys.iter_mut().zip(indices).for_each(|(key, index)| *key = self.key ^ u128::from(index));
        self.hasher.set(keys);
    }

    /// Readies up to eight keys, each given by the index of an element's first correlation and
    /// its part of the element's pads ([`part_of`]).
    pub(crate) fn set_parts(&mut self, parts: impl Iterator<Item = (u64, u128)>) {
        let mut keys = Zeroizing::new([0; EIGHT]);
        for (key, (index, part)) in keys.iter_mut().zip(parts) {
            *key = self.key ^ u128::from(index) ^ part << 64;
        }
        self.hasher.set(*keys);
    }

    /// Hashes the inputs from number `start` on in place, eight times [`PADS_PER_KEY`] of them at
    /// most, as many under each key.
    pub(crate) fn hash_parts(&mut self, start: usize) {
        let most = (start + EIGHT * PADS_PER_KEY).min(BATCH);
        self.hasher.hash(0, PADS_PER_KEY.ilog2(), &mut self.blocks[start..most]);
    }

    /// Hashes the first `count` inputs in place: groups of `2^spread` each, the
    /// first under key number `first`.
    pub(crate) fn hash(&mut self, first: usize, spread: u32, count: usize) -> &[u128] {
        self.hasher.hash(first, spread, &mut self.blocks[..count.next_multiple_of(EIGHT)]);
        &self.blocks[..count]
    }
}

/// `sigma(x) xor tweak`, sigma(high, low) = (high xor low, high). The tweak of pad
/// `j` of the group's `lane`-th element is `lane * 2^m + j`.
#[inline]
pub(crate) const fn tweaked(x: u128, tweak: u64) -> u128 {
    let high = x >> 64;
    let low = x & (u64::MAX as u128);
    (((high ^ low) << 64) | high) ^ (tweak as u128)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionId;
    use ring::Random;
    use wire::Role;

    fn pad(hash: PadHash, index: u64, x: u128, tweak: u64) -> u128 {
        let mut pads = hash.pads(Level::SCALAR);
        pads.set_keys(index, 1);
        pads.blocks[0] = tweaked(x, tweak);
        pads.hash(0, 0, 1)[0]
    }

    #[test]
    fn pads_depend_on_everything() {
        let hash = |session, role| PadHash::new(&Domain::new(SessionId([session; 32]), role));
        let base = hash(1, Role::Client);
        let pads = [
            pad(base, 0, 7, 0),
            pad(base, 1, 7, 0),
            pad(base, 0, 6, 0),
            pad(base, 0, 7, 1),
            pad(hash(2, Role::Client), 0, 7, 0),
            pad(hash(1, Role::Server), 0, 7, 0),
        ];
        assert!((1..pads.len()).all(|i| !pads[..i].contains(&pads[i])));
    }

    #[test]
    fn full_groups_equal_their_parts() {
        let mut rng = Random::seeded(1);
        let hash = PadHash::with_key(rng.block());
        let inputs: Vec<u128> = (0..128).map(|_| rng.block()).collect();
        let wanted = |(i, x)| pad(hash, 9 + 5 * (i as u64 / 16), x, i as u64);
        let wanted: Vec<u128> = inputs.iter().copied().enumerate().map(wanted).collect();
        for level in Level::available() {
            let mut pads = hash.pads(level);
            pads.set_keys(9, 5);
            for (to, (x, tweak)) in pads.blocks.iter_mut().zip(inputs.iter().zip(0..)) {
                *to = tweaked(*x, tweak);
            }
            assert_eq!(pads.hash(0, 4, 128), wanted);
        }
    }

    #[test]
    fn sigma_is_an_orthomorphism() {
        let x = Random::seeded(2).block();
        let sigma = tweaked(x, 0);
        // Both images determine high and low.
        let (high, low) = (x >> 64, x & u128::from(u64::MAX));
        assert_eq!(sigma, ((high ^ low) << 64) | high);
        assert_eq!(sigma ^ x, (low << 64) | (high ^ low));
    }
}
