//! Pseudo-random generator: AES-128 in counter mode.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::aes128::Aes128;
use crate::word::mask;

/// Blocks encrypted per call, enough to fill the AES pipeline.
const BATCH: usize = 64;

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
    counters: Counters,
    buffer: [u8; 16 * BATCH],
    used: usize,
}

/// The blocks domain || counter.
struct Counters {
    domain: u64,
    next: u64,
}

impl Counters {
    fn write(&mut self, out: &mut [u8; 16 * BATCH]) {
        let (blocks, _) = out.as_chunks_mut::<16>();
        for (block, counter) in blocks.iter_mut().zip(self.next..) {
            let value = u128::from(self.domain) | (u128::from(counter) << 64);
            *block = value.to_le_bytes();
        }
        self.next += BATCH as u64;
    }
}

impl Prg {
    /// The stream of `seed` in `domain`.
    pub fn new(seed: &Seed, domain: u64) -> Self {
        let cipher = Aes128::new(&seed.0);
        let counters = Counters { domain, next: 0 };
        Self { cipher, counters, buffer: [0; 16 * BATCH], used: 16 * BATCH }
    }

    /// Fills `out` with the next bytes of the stream.
    pub fn fill(&mut self, out: &mut [u8]) {
        let held = out.len().min(self.buffer.len() - self.used);
        let (start, rest) = out.split_at_mut(held);
        self.read(start);
        let (batches, end) = rest.as_chunks_mut();
        for batch in batches {
            self.counters.write(batch);
            self.cipher.encrypt(batch.as_chunks_mut().0);
        }
        if !end.is_empty() {
            self.refill();
            self.read(end);
        }
    }

    /// Bytes that the buffer holds.
    fn read(&mut self, out: &mut [u8]) {
        out.copy_from_slice(&self.buffer[self.used..][..out.len()]);
        self.used += out.len();
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }

    /// The next 128 bits.
    pub fn block(&mut self) -> u128 {
        u128::from_le_bytes(self.bytes())
    }

    /// The next few bytes, mostly without a call.
    #[inline]
    fn bytes<const COUNT: usize>(&mut self) -> [u8; COUNT] {
        if let Some(bytes) = self.buffer[self.used..].first_chunk() {
            self.used += COUNT;
            return *bytes;
        }
        let mut bytes = [0; COUNT];
        self.fill(&mut bytes);
        bytes
    }

    /// A fresh seed drawn from this stream.
    pub fn seed(&mut self) -> Seed {
        let mut seed = Seed([0; 16]);
        self.fill(&mut seed.0);
        seed
    }

    /// `count` integers, each uniform below 2^bits.
    pub fn uniform(&mut self, count: usize, bits: u32) -> Vec<u64> {
        let mut values = vec![0; count];
        let mut bytes = Zeroizing::new([0; 16 * BATCH]);
        for values in values.chunks_mut(2 * BATCH) {
            let bytes = &mut bytes[..8 * values.len()];
            self.fill(bytes);
            for (value, bytes) in values.iter_mut().zip(bytes.as_chunks().0) {
                *value = u64::from_le_bytes(*bytes) & mask(bits);
            }
        }
        values
    }

    fn refill(&mut self) {
        self.counters.write(&mut self.buffer);
        self.cipher.encrypt(self.buffer.as_chunks_mut().0);
        self.used = 0;
    }
}

/// Fills `out` with the blocks AES_key(tweak), AES_key(tweak xor 1), ...: a short stream of its own
/// for each of many keys, none of which needs a generator.
pub fn expand(key: u128, tweak: u128, out: &mut [[u8; 16]]) {
    for (block, counter) in out.iter_mut().zip(0u128..) {
        *block = (tweak ^ counter).to_le_bytes();
    }
    Aes128::new(&key.to_le_bytes()).encrypt(out);
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
        let (mut whole, mut pieces) = ([0; 9000], [0; 9000]);
        Prg::new(&seed, 3).fill(&mut whole);
        for size in [37, 1024, 2500] {
            let mut prg = Prg::new(&seed, 3);
            pieces.chunks_mut(size).for_each(|piece| prg.fill(piece));
            assert_eq!(whole, pieces);
        }
        let mut prg = Prg::new(&seed, 3);
        let words: Vec<u64> = (0..1000).map(|_| prg.word() & mask(20)).collect();
        assert_eq!(Prg::new(&seed, 3).uniform(1000, 20), words);
        assert_ne!(Prg::new(&seed, 4).block(), Prg::new(&seed, 3).block());
    }

    #[test]
    fn short_streams_are_aes_in_counter_mode() {
        let seed = Seed([9; 16]);
        let mut blocks = [[0; 16]; 5];
        expand(u128::from_le_bytes(seed.0), 7, &mut blocks);
        // Blocks of domain 7 whose counters are 0.
        for (at, block) in blocks.iter().enumerate() {
            assert_eq!(Prg::new(&seed, 7 ^ at as u64).block().to_le_bytes(), *block);
        }
    }

    #[test]
    fn secrets_do_not_print() {
        assert_eq!(format!("{:?}", Seed([1; 16])), "Seed(<hidden>)");
    }
}
