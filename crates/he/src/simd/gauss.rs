//! Samples by inversion of a distribution's table.

use ring::word::spread;

use super::{Level, Width};

/// Adds `factor` times a sample to each sum: 63 bits of its word are compared with the
/// whole table, the remaining bit is the sign.
pub(crate) fn invert<const N: usize>(
    level: Level,
    sums: &mut [i64],
    words: &[u64],
    table: &[u64; N],
    factor: i64,
) {
    match level.0 {
        Width::Scalar => each(sums, words, table, factor),
        // SAFETY: the level says that the instructions exist.
        #[cfg(target_arch = "x86_64")]
        Width::Fma256 => unsafe { each256(sums, words, table, factor) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Width::Fma512 => unsafe { each512(sums, words, table, factor) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => each(sums, words, table, factor),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn each256<const N: usize>(sums: &mut [i64], words: &[u64], table: &[u64; N], factor: i64) {
    each(sums, words, table, factor);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
fn each512<const N: usize>(sums: &mut [i64], words: &[u64], table: &[u64; N], factor: i64) {
    each(sums, words, table, factor);
}

/// Samples that are compared with an entry of the table together.
const LANES: usize = 16;

#[inline(always)]
fn each<const N: usize>(sums: &mut [i64], words: &[u64], table: &[u64; N], factor: i64) {
    let (whole, rest) = sums.as_chunks_mut::<LANES>();
    let (words, last) = words.as_chunks::<LANES>();
    for (sums, words) in whole.iter_mut().zip(words) {
        lanes(sums, words, table, factor);
    }
    for (sum, word) in rest.iter_mut().zip(last) {
        lanes(std::slice::from_mut(sum), &[*word], table, factor);
    }
}

#[inline(always)]
fn lanes<const L: usize, const N: usize>(
    sums: &mut [i64],
    words: &[u64; L],
    table: &[u64; N],
    factor: i64,
) {
    let levels = words.map(|word| word >> 1);
    let mut magnitudes = [N as u64; L];
    for bound in table {
        for lane in 0..L {
            magnitudes[lane] -= levels[lane].wrapping_sub(*bound) >> 63;
        }
    }
    for lane in 0..L {
        let sign = spread(words[lane] & 1);
        let sample = (magnitudes[lane] ^ sign).wrapping_sub(sign) as i64;
        sums[lane] += factor * sample;
    }
}
