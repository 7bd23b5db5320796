//! Packing of integers of any width.
//!
//! As many integers as a word holds are put together first, or taken apart last:
//! shifts that do not depend on each other, which the compiler turns into vector
//! instructions where the level has them.

use super::{Level, Width};
use crate::lane::Lane;
use crate::word::mask;

/// Packs `values` of `bits` bits (1 to that of a lane) to `out`, which has 8 bytes to spare.
pub(crate) fn pack<T: Lane>(level: Level, out: &mut [u8], values: &[T], bits: u32) {
    match level.width() {
        Width::Scalar => pack_any(out, values, bits),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level proves the presence of AVX2.
        _ => unsafe { pack_avx2(out, values, bits) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => pack_any(out, values, bits),
    }
}

/// Reads `values` of `bits` bits (1 to that of a lane) from `bytes`.
pub(crate) fn unpack<T: Lane>(level: Level, bytes: &[u8], values: &mut [T], bits: u32) {
    match level.width() {
        Width::Scalar => unpack_any(bytes, values, bits),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level proves the presence of AVX2.
        _ => unsafe { unpack_avx2(bytes, values, bits) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => unpack_any(bytes, values, bits),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn pack_avx2<T: Lane>(out: &mut [u8], values: &[T], bits: u32) {
    pack_any(out, values, bits);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn unpack_avx2<T: Lane>(bytes: &[u8], values: &mut [T], bits: u32) {
    unpack_any(bytes, values, bits);
}

#[inline(always)]
fn pack_any<T: Lane>(out: &mut [u8], values: &[T], bits: u32) {
    match bits {
        0..=4 => pack_groups::<T, 16>(out, values, bits),
        5..=8 => pack_groups::<T, 8>(out, values, bits),
        9..=16 => pack_groups::<T, 4>(out, values, bits),
        17..=32 => pack_groups::<T, 2>(out, values, bits),
        _ => pack_groups::<T, 1>(out, values, bits),
    }
}

#[inline(always)]
fn unpack_any<T: Lane>(bytes: &[u8], values: &mut [T], bits: u32) {
    match bits {
        0..=4 => unpack_groups::<T, 16>(bytes, values, bits),
        5..=8 => unpack_groups::<T, 8>(bytes, values, bits),
        9..=16 => unpack_groups::<T, 4>(bytes, values, bits),
        17..=32 => unpack_groups::<T, 2>(bytes, values, bits),
        _ => unpack_groups::<T, 1>(bytes, values, bits),
    }
}

/// `GROUP * bits` is at most 64.
#[inline(always)]
fn pack_groups<T: Lane, const GROUP: usize>(out: &mut [u8], values: &[T], bits: u32) {
    let (groups, tail) = values.as_chunks::<GROUP>();
    let mut words = out.as_chunks_mut::<8>().0.iter_mut();
    let mut place = |word: u64| {
        if let Some(to) = words.next() {
            *to = word.to_le_bytes();
        }
    };
    let (mut buffer, mut held) = (0, 0);
    let mut add = |word: u64, width: u32| {
        buffer |= word << held;
        held += width;
        if held >= 64 {
            place(buffer);
            held -= 64;
            // The bits of `word` that did not fit; none when all did.
            buffer = (word >> (width - held - 1)) >> 1;
        }
    };
    let width = GROUP as u32 * bits;
    for group in groups {
        let shifted = (0u32..).zip(group).map(|(i, value)| value.wide() << (i * bits));
        add(shifted.fold(0, |word, value| word | value), width);
    }
    tail.iter().for_each(|value| add(value.wide(), bits));
    last(out, values.len(), bits, buffer);
}

/// Writes what is left of the last, incomplete word.
#[inline(always)]
fn last(out: &mut [u8], count: usize, bits: u32, buffer: u64) {
    let done = (count as u128 * u128::from(bits) / 64 * 8) as usize;
    let rest = out.get_mut(done..).unwrap_or_default();
    rest.iter_mut().zip(buffer.to_le_bytes()).for_each(|(to, byte)| *to = byte);
}

/// `GROUP * bits` is at most 64.
#[inline(always)]
fn unpack_groups<T: Lane, const GROUP: usize>(bytes: &[u8], values: &mut [T], bits: u32) {
    let (groups, tail) = values.as_chunks_mut::<GROUP>();
    let low = mask(bits);
    let width = GROUP * bits as usize;
    let mut at = 0;
    for group in groups {
        let word = window(bytes, at);
        (0u32..).zip(group).for_each(|(i, value)| *value = T::of((word >> (i * bits)) & low));
        at += width;
    }
    for value in tail {
        *value = T::of(window(bytes, at) & low);
        at += bits as usize;
    }
}

/// The 64 bits from bit `at` on, zeros beyond the end.
#[inline(always)]
fn window(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at / 8..).unwrap_or_default();
    let wide = match rest.first_chunk::<16>() {
        Some(bytes) => u128::from_le_bytes(*bytes),
        None => {
            let mut padded = [0; 16];
            padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            u128::from_le_bytes(padded)
        }
    };
    (wide >> (at % 8)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn every_level_packs_alike() {
        let mut rng = Random::seeded(1);
        for (bits, count) in (1..=64).flat_map(|bits| [0, 1, 15, 200].map(|count| (bits, count))) {
            let values = rng.uniform(count, bits);
            let run = |level| {
                let mut bytes = vec![0; (count * bits as usize).div_ceil(8) + 8];
                pack(level, &mut bytes, &values, bits);
                let mut back = vec![0; count];
                unpack(level, &bytes, &mut back, bits);
                assert_eq!(back, values, "{level:?}, {bits} bits");
                bytes
            };
            let wanted = run(Level::SCALAR);
            assert!(Level::available().into_iter().all(|level| run(level) == wanted));
        }
    }
}
