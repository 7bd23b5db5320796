//! AES-128 in counter mode under eight keys, each for a stream of the same length.

use ring::aes128::Aes128;
use ring::simd::Level;
#[cfg(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128")))]
use ring::simd::Width;
use zeroize::Zeroizing;

use super::aes::{NONE, Schedule, schedule};
#[cfg(target_arch = "x86_64")]
use super::kernels::{narrow, wide, wider};
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
use super::sliced;
use super::{EIGHT, Eight};

/// The streams of eight secret keys.
pub(crate) struct Streams {
    level: Level,
    counters: Vec<Eight>,
    keys: Zeroizing<Eight>,
    schedule: Zeroizing<Schedule>,
}

impl Streams {
    /// Makes room for the counters of streams of `len` bytes each.
    pub(crate) fn new(level: Level, len: usize) -> Self {
        let eights = len.div_ceil(16 * EIGHT) as u128;
        let counters = (0..eights).map(|at| std::array::from_fn(|i| 8 * at + i as u128)).collect();
        let (keys, schedule) = (Zeroizing::new([0; 8]), Zeroizing::new(NONE));
        Self { level, counters, keys, schedule }
    }

    /// Room for one stream.
    pub(crate) fn room(&self) -> Zeroizing<Vec<Eight>> {
        Zeroizing::new(vec![[0; 8]; self.counters.len()])
    }

    /// Takes new keys.
    pub(crate) fn set(&mut self, keys: &Eight) {
        *self.keys = *keys;
        schedule(self.level, keys, &mut self.schedule);
    }

    /// Writes the stream of key number `lane`, below 8, to `out`.
    pub(crate) fn write(&self, lane: usize, out: &mut [Eight]) {
        #[cfg(target_arch = "x86_64")]
        match (self.level.width(), self.level.vaes()) {
            (Width::Scalar, _) => {}
            // SAFETY: the level proves the presence of AVX2 and VAES.
            (_, true) => return unsafe { wide::stream(&self.schedule, lane, &self.counters, out) },
            // SAFETY: the level proves the presence of AVX-512 and AES-NI.
            (Width::Avx512, _) => {
                return unsafe { wider::stream(&self.schedule, lane, &self.counters, out) };
            }
            // SAFETY: the level proves the presence of AVX2 and AES-NI.
            _ => return unsafe { narrow::stream(&self.schedule, lane, &self.counters, out) },
        }
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        if self.level.width() == Width::Simd128 {
            return sliced::stream(&self.schedule, lane, &self.counters, out);
        }
        let cipher = Aes128::new(&self.keys[lane].to_le_bytes());
        for (out, counters) in out.iter_mut().zip(&self.counters) {
            let mut blocks = counters.map(u128::to_le_bytes);
            cipher.encrypt(&mut blocks);
            *out = blocks.map(u128::from_ne_bytes);
        }
    }
}

/// The bytes of blocks.
pub(crate) fn bytes(blocks: &[Eight]) -> &[u8] {
    // SAFETY: integers have no padding, and bytes no alignment.
    unsafe { std::slice::from_raw_parts(blocks.as_ptr().cast(), size_of_val(blocks)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::cipher::{BlockCipherEncrypt, KeyInit};
    use aes::{Aes128Enc, Block};
    use ring::{Prg, Random, Seed};

    #[test]
    fn every_level_writes_the_stream_of_a_generator() {
        let mut rng = Random::seeded(1);
        for len in [1, 128, 129, 1000] {
            let keys: Eight = std::array::from_fn(|_| rng.block());
            for level in Level::available() {
                let mut streams = Streams::new(level, len);
                streams.set(&keys);
                let mut out = streams.room();
                for (lane, key) in keys.iter().enumerate() {
                    streams.write(lane, &mut out);
                    // A generator's counter is the upper half of the block.
                    let cipher = Aes128Enc::new(&key.to_le_bytes().into());
                    for (counter, got) in bytes(&out).as_chunks::<16>().0.iter().enumerate() {
                        let mut block: Block = (counter as u128).to_le_bytes().into();
                        cipher.encrypt_block(&mut block);
                        assert_eq!(block.as_slice(), got);
                    }
                }
            }
        }
        let mut first = [0; 16];
        Prg::new(&Seed([5; 16]), 0).fill(&mut first);
        let mut streams = Streams::new(Level::best(), 16);
        streams.set(&[u128::from_le_bytes([5; 16]); 8]);
        let mut out = streams.room();
        streams.write(3, &mut out);
        assert_eq!(bytes(&out)[..16], first);
    }

    /// The kernel for two blocks per vector, on machines without VAES as well.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn two_blocks_per_vector_give_the_same() {
        use super::super::kernels::paired;
        if Level::best().width() == Width::Scalar {
            return;
        }
        let mut rng = Random::seeded(2);
        let keys: Eight = std::array::from_fn(|_| rng.block());
        let mut streams = Streams::new(Level::best(), 300);
        streams.set(&keys);
        let (mut wanted, mut got) = (streams.room(), streams.room());
        for lane in 0..8 {
            streams.write(lane, &mut wanted);
            // SAFETY: the level proves the presence of AVX2 and AES-NI.
            unsafe { paired::stream(&streams.schedule, lane, &streams.counters, &mut got) };
            assert_eq!(got, wanted);
        }
    }
}
