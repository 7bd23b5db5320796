//! Indices out of a key stream, scaled to the length of a table.

use ring::simd::Level;
#[cfg(target_arch = "x86_64")]
use ring::simd::Width;

/// Bits of an index before it is scaled.
pub(crate) const BITS: u32 = 21;
/// Indices in a word of the key stream, from the low bits on.
pub(crate) const EACH: usize = 3;

const MASK: u64 = (1 << BITS) - 1;

/// Writes the places in a table of `length` that the indices of `words` stand for: index number `third` of each word to
/// `out[third]`. They are rounded down after `rounding` has been added, which is below `length`, as that is below 2^32.
pub(crate) fn places<const N: usize>(
    level: Level,
    words: &[u64; N],
    length: u32,
    rounding: u32,
    out: &mut [[u32; N]; EACH],
) {
    #[cfg(target_arch = "x86_64")]
    if level.width() != Width::Scalar {
        // SAFETY: the level proves the presence of AVX2.
        return unsafe { wide(words, length, rounding, out) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = level;
    portable(words, length, rounding, out);
}

/// Inlined into functions that are compiled for wider vectors.
#[inline(always)]
fn portable<const N: usize>(
    words: &[u64; N],
    length: u32,
    rounding: u32,
    out: &mut [[u32; N]; EACH],
) {
    for (third, out) in out.iter_mut().enumerate() {
        for (out, word) in out.iter_mut().zip(words) {
            let index = (word >> (BITS * third as u32)) & MASK;
            *out = ((index * u64::from(length) + u64::from(rounding)) >> BITS) as u32;
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn wide<const N: usize>(words: &[u64; N], length: u32, rounding: u32, out: &mut [[u32; N]; EACH]) {
    portable(words, length, rounding, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;

    #[test]
    fn all_levels_agree() {
        let mut rng = Random::seeded(1);
        let mut words: [u64; 24] = std::array::from_fn(|_| rng.block() as u64);
        words[3..5].copy_from_slice(&[0, u64::MAX]);
        for (length, rounding) in [(1, 0), (41_984, 41_983), (617_472, 5), (u32::MAX, u32::MAX - 1)]
        {
            let mut expected = [[0; 24]; EACH];
            portable(&words, length, rounding, &mut expected);
            assert!(expected.as_flattened().iter().all(|place| *place < length));
            assert_eq!([expected[0][3], expected[0][4]], [rounding >> BITS, length - 1]);
            for level in Level::available() {
                let mut out = [[0; 24]; EACH];
                places(level, &words, length, rounding, &mut out);
                assert_eq!(out, expected, "{level:?} {length}");
            }
        }
    }
}
