//! The hash of garbled gates, under keys that nothing else uses.
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
//! bound its gain to 4 bits, as they do for pads. A garbler that gave every gate of every
//! instance the same key would lose as many bits as its tables have.

use ring::simd::Level;

use crate::hash::tweaked;
use crate::simd::EIGHT;
use crate::simd::aes::Hasher;

/// Hashes with a run of keys, eight ready at a time. The keys are public.
pub struct GateHash {
    salt: u128,
    /// Keys made so far.
    made: u64,
    /// Of the eight at hand.
    used: usize,
    hasher: Hasher,
}

impl GateHash {
    /// Keys `salt xor 0`, `salt xor 1`, ...
    pub fn new(salt: u128, level: Level) -> Self {
        Self { salt, made: 0, used: EIGHT, hasher: Hasher::new(level) }
    }

    /// Takes the next `count` keys, 1 or 2, and returns the number of the first, as
    /// [`GateHash::hash`] wants it. Pairs start at an even number; a key may be left out.
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
}

/// What is hashed for label `x` of instance `lane` of a group, 0 to 7. Linear in `x` for
/// lane 0.
#[inline]
pub const fn hash_input(x: u128, lane: u64) -> u128 {
    tweaked(x, lane)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;

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
