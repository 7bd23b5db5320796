//! The garbler's secrets.

use std::fmt;

use ring::Random;
use ring::word::mask;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bits of alpha: a tag is forged with probability 2^-40 at most.
pub const ALPHA_BITS: u32 = 40;

/// Delta, the difference of the labels of every bit, and alpha, the key of all tags. They serve one
/// session, and none after a check that failed. Prints nothing.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct MacKeys {
    delta: u128,
    alpha: u64,
}

impl MacKeys {
    /// Draws a fresh alpha. `delta` is that of the correlated OTs, whose lowest bit is 1.
    pub fn new(delta: u128, rng: &mut Random) -> Self {
        Self { delta: delta | 1, alpha: rng.word() & mask(ALPHA_BITS) }
    }

    /// Returns the difference of the two labels of every bit. Secret.
    pub fn delta(&self) -> u128 {
        self.delta
    }

    /// Returns alpha, below 2^40. Secret.
    pub fn alpha(&self) -> u64 {
        self.alpha
    }
}

impl fmt::Debug for MacKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKeys(<hidden>)")
    }
}
