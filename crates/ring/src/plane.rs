//! Bit planes: one bit of many integers, 64 to a word.

/// Bit `bit` of each word, packed 64 to a word, appended to `out`.
pub fn gather_words(words: &[u64], bit: u32, out: &mut Vec<u64>) {
    let pack = |chunk: &[u64]| {
        chunk.iter().rev().fold(0, |packed, word| (packed << 1) | ((word >> bit) & 1))
    };
    out.extend(words.chunks(64).map(pack));
}

/// Adds bit `i` of `plane` to bit `bit` of `words[i]`.
pub fn scatter_words(plane: &[u64], bit: u32, words: &mut [u64]) {
    for (chunk, packed) in words.chunks_mut(64).zip(plane) {
        for (at, word) in chunk.iter_mut().enumerate() {
            *word |= ((packed >> at) & 1) << bit;
        }
    }
}

/// Bit `bit` of each byte, packed 64 to a word, appended to `out`.
pub fn gather(bytes: &[u8], bit: u32, out: &mut Vec<u64>) {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const MOVE: u64 = 0x0102_0408_1020_4080;
    let pack = |chunk: &[u8]| {
        let mut padded = [0; 64];
        padded[..chunk.len()].copy_from_slice(chunk);
        let (eights, _) = padded.as_chunks::<8>();
        let eight =
            |bytes: &[u8; 8]| ((u64::from_le_bytes(*bytes) >> bit) & LOW).wrapping_mul(MOVE) >> 56;
        eights.iter().rev().fold(0, |packed, bytes| (packed << 8) | eight(bytes))
    };
    out.extend(bytes.chunks(64).map(pack));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn planes_hold_every_bit(words in prop::collection::vec(any::<u64>(), 0..300), bit in 0u32..64) {
            let mut plane = Vec::new();
            gather_words(&words, bit, &mut plane);
            prop_assert_eq!(plane.len(), words.len().div_ceil(64));
            let bytes: Vec<u8> = words.iter().map(|word| *word as u8).collect();
            let mut low = Vec::new();
            gather(&bytes, bit % 8, &mut low);
            let mut back = vec![0; words.len()];
            scatter_words(&plane, bit, &mut back);
            for (i, word) in words.iter().enumerate() {
                prop_assert_eq!(back[i], word & (1 << bit));
                prop_assert_eq!((low[i / 64] >> (i % 64)) & 1, (word >> (bit % 8)) & 1);
            }
        }
    }
}
