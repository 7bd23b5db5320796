//! Long pads: streams as long as a vector, made out of pads of one block.
//!
//! A correlation is hashed once, to 128 bits ([`Entry::Pair`](crate::Entry) of two words). An
//! oblivious transfer of a longer vector takes these bits as the key of AES in counter mode,
//! whose output is pseudo-random as long as the hash is. A pad is the key of one stream only.
//! A stream of at most 16 bytes is the pad itself; which of both applies depends on the length
//! alone, which is public.

use ring::simd::Level;
use zeroize::Zeroizing;

use crate::simd::EIGHT;
use crate::simd::stream::{Streams, bytes};

/// Bytes of a pad.
const PAD: usize = 16;

/// A generator of key streams that all have the same length.
pub struct Keystream {
    len: usize,
    streams: Streams,
}

impl Keystream {
    /// Makes a generator of streams of `len` bytes.
    pub fn new(len: usize) -> Self {
        Self { len, streams: Streams::new(Level::best(), len) }
    }

    /// Calls `each` for every element of `ots`, in order, with its index and the streams
    /// of its `N` pads (1, 2, 4 or 8).
    pub fn each<const N: usize>(
        &mut self,
        ots: &[[u128; N]],
        mut each: impl FnMut(usize, [&[u8]; N]),
    ) {
        const { assert!(N > 0 && EIGHT.is_multiple_of(N)) };
        if self.len <= PAD {
            for (at, pads) in ots.iter().enumerate() {
                let pads = Zeroizing::new(pads.map(u128::to_le_bytes));
                each(at, std::array::from_fn(|i| &pads[i][..self.len]));
            }
            return;
        }
        let mut out: [_; N] = std::array::from_fn(|_| self.streams.room());
        let at_once = EIGHT / N;
        for (group, ots) in ots.chunks(at_once).enumerate() {
            let mut keys = Zeroizing::new([0; EIGHT]);
            keys.iter_mut().zip(ots.as_flattened()).for_each(|(to, from)| *to = *from);
            self.streams.set(&keys);
            for at in 0..ots.len() {
                for (i, out) in out.iter_mut().enumerate() {
                    self.streams.write(N * at + i, out);
                }
                let streams = std::array::from_fn(|i| &bytes(&out[i])[..self.len]);
                each(group * at_once + at, streams);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;

    #[test]
    fn both_ends_see_the_same_stream() {
        let mut rng = Random::seeded(1);
        for (len, count) in [(1, 9), (16, 3), (17, 5), (300, 11)] {
            let pairs: Vec<[u128; 2]> = (0..count).map(|_| [rng.block(), rng.block()]).collect();
            let mut sent = Vec::new();
            Keystream::new(len).each(&pairs, |at, [zero, one]| {
                assert_eq!(at, sent.len());
                sent.push([zero.to_vec(), one.to_vec()]);
            });
            assert!(sent.iter().flatten().all(|stream| stream.len() == len));
            let opened: Vec<[u128; 1]> =
                pairs.iter().enumerate().map(|(i, p)| [p[i % 2]]).collect();
            let mut seen = 0;
            Keystream::new(len).each(&opened, |at, [stream]| {
                assert_eq!(stream, sent[at][at % 2]);
                seen += 1;
            });
            assert_eq!((seen, sent.len()), (count, count));
            assert!(len < 16 || sent[0][0] != sent[0][1]);
        }
    }
}
