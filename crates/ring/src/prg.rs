//! Pseudo-random generator: AES-128 in counter mode.

use std::fmt;

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::word::mask;

/// Blocks encrypted per call, enough to fill the AES pipeline.
const BATCH: usize = 16;

/// A 128-bit seed. Prints nothing.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Seed(pub [u8; 16]);

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(<hidden>)")
    }
}

/// The stream AES_seed(domain || counter). Two generators with the same seed and
/// different domains give independent streams.
pub struct Prg {
    cipher: Aes128,
    domain: u64,
    counter: u64,
    buffer: [u8; 16 * BATCH],
    used: usize,
}

impl Prg {
    /// The stream of `seed` in `domain`.
    pub fn new(seed: &Seed, domain: u64) -> Self {
        let cipher = Aes128::new(&seed.0.into());
        Self { cipher, domain, counter: 0, buffer: [0; 16 * BATCH], used: 16 * BATCH }
    }

    /// Fills `out` with the next bytes of the stream.
    pub fn fill(&mut self, out: &mut [u8]) {
        let mut rest = out;
        while !rest.is_empty() {
            if self.used == self.buffer.len() {
                self.refill();
            }
            let take = rest.len().min(self.buffer.len() - self.used);
            let (now, later) = rest.split_at_mut(take);
            now.copy_from_slice(&self.buffer[self.used..self.used + take]);
            self.used += take;
            rest = later;
        }
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// The next 128 bits.
    pub fn block(&mut self) -> u128 {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        u128::from_le_bytes(bytes)
    }

    /// A fresh seed drawn from this stream.
    pub fn seed(&mut self) -> Seed {
        let mut seed = Seed([0; 16]);
        self.fill(&mut seed.0);
        seed
    }

    /// `count` integers, each uniform below 2^bits.
    pub fn uniform(&mut self, count: usize, bits: u32) -> Vec<u64> {
        (0..count).map(|_| self.word() & mask(bits)).collect()
    }

    fn refill(&mut self) {
        let mut blocks = [Block::default(); BATCH];
        for block in &mut blocks {
            block[..8].copy_from_slice(&self.domain.to_le_bytes());
            block[8..].copy_from_slice(&self.counter.to_le_bytes());
            self.counter += 1;
        }
        self.cipher.encrypt_blocks(&mut blocks);
        for (out, block) in self.buffer.chunks_exact_mut(16).zip(&blocks) {
            out.copy_from_slice(block);
        }
        self.used = 0;
    }
}

impl Drop for Prg {
    fn drop(&mut self) {
        self.buffer.zeroize();
    }
}

impl fmt::Debug for Prg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prg(<hidden>)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_is_aes_in_counter_mode() {
        // FIPS 197, AES-128 with an all-zero key and block.
        let mut prg = Prg::new(&Seed([0; 16]), 0);
        assert_eq!(prg.block().to_le_bytes()[..4], [0x66, 0xe9, 0x4b, 0xd4]);
    }

    #[test]
    fn reading_in_pieces_gives_the_same_stream() {
        let seed = Seed([7; 16]);
        let (mut whole, mut pieces) = ([0; 1000], [0; 1000]);
        Prg::new(&seed, 3).fill(&mut whole);
        let mut prg = Prg::new(&seed, 3);
        for piece in pieces.chunks_mut(37) {
            prg.fill(piece);
        }
        assert_eq!(whole, pieces);
        assert_ne!(Prg::new(&seed, 4).block(), Prg::new(&seed, 3).block());
    }

    #[test]
    fn secrets_do_not_print() {
        assert_eq!(format!("{:?}", Seed([1; 16])), "Seed(<hidden>)");
    }
}
