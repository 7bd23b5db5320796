//! Packing of k-bit integers, little-endian and without gaps. The padding bits
//! of the last byte are zero; anything else is refused, so that every list of
//! integers has exactly one encoding.

use crate::lane::Lane;
use crate::plane;
use crate::simd::{Level, bits};
use crate::word::mask;

/// Bytes that `count` integers of `bits` bits take.
pub const fn packed_len(count: usize, bits: u32) -> usize {
    ((count as u128 * bits as u128).div_ceil(8)) as usize
}

/// Appends `values` (each below 2^bits) to `out`.
pub fn pack_into(out: &mut Vec<u8>, values: &[u64], bits: u32) {
    debug_assert!(values.iter().all(|value| value & !mask(bits) == 0));
    let start = out.len();
    // Room for the last word to be written whole.
    out.resize(start + packed_len(values.len(), bits) + 8, 0);
    let to = &mut out[start..];
    match bits {
        1 => pack_bits(to, values),
        8 => pack_bytes::<1>(to, values),
        16 => pack_bytes::<2>(to, values),
        32 => pack_bytes::<4>(to, values),
        64 => pack_bytes::<8>(to, values),
        _ => bits::pack(Level::best(), to, values, bits),
    }
    out.truncate(start + packed_len(values.len(), bits));
}

/// Appends `values` in narrower lanes, each below 2^bits, as [`pack_into`] does.
pub fn pack_lanes<T: Lane>(out: &mut Vec<u8>, values: &[T], bits: u32) {
    debug_assert!(values.iter().all(|value| value.wide() & !mask(bits) == 0));
    let start = out.len();
    // Room for the last word to be written whole.
    out.resize(start + packed_len(values.len(), bits) + 8, 0);
    bits::pack(Level::best(), &mut out[start..], values, bits);
    out.truncate(start + packed_len(values.len(), bits));
}

/// Reads integers of `bits` bits into narrower lanes. Of `bytes` that are too short the rest
/// is zeros; whether their padding is zero is for the caller to know.
pub fn unpack_lanes<T: Lane>(bytes: &[u8], values: &mut [T], bits: u32) {
    bits::unpack(Level::best(), bytes, values, bits);
}

/// Whether `bytes` are those of `count` integers of `bits` bits.
pub fn is_canonical(bytes: &[u8], count: usize, bits: u32) -> bool {
    bytes.len() == packed_len(count, bits) && padding(bytes, count, bits) == 0
}

/// `to` has room for a whole last word.
fn pack_bits(to: &mut [u8], values: &[u64]) {
    let mut words = Vec::with_capacity(values.len().div_ceil(64));
    plane::gather_words(values, 0, &mut words);
    let to = to.as_chunks_mut().0.iter_mut();
    to.zip(words).for_each(|(to, word)| *to = word.to_le_bytes());
}

fn pack_bytes<const BYTES: usize>(to: &mut [u8], values: &[u64]) {
    for (to, value) in to.as_chunks_mut::<BYTES>().0.iter_mut().zip(values) {
        to.copy_from_slice(&value.to_le_bytes()[..BYTES]);
    }
}

/// Reads `count` integers of `bits` bits; `None` when the length is wrong or a
/// padding bit is set.
pub fn unpack(bytes: &[u8], count: usize, bits: u32) -> Option<Vec<u64>> {
    if !is_canonical(bytes, count, bits) {
        return None;
    }
    let mut values = vec![0; count];
    match bits {
        1 => unpack_bits(bytes, &mut values),
        8 => unpack_bytes::<1>(bytes, &mut values),
        16 => unpack_bytes::<2>(bytes, &mut values),
        32 => unpack_bytes::<4>(bytes, &mut values),
        64 => unpack_bytes::<8>(bytes, &mut values),
        _ => bits::unpack(Level::best(), bytes, &mut values, bits),
    }
    Some(values)
}

/// The padding bits of the last byte; the length is right.
fn padding(bytes: &[u8], count: usize, bits: u32) -> u8 {
    let used = (count as u128 * u128::from(bits) % 8) as u32;
    match (used, bytes.last()) {
        (1.., Some(last)) => last >> used,
        _ => 0,
    }
}

fn unpack_bits(bytes: &[u8], values: &mut [u64]) {
    let (whole, tail) = bytes.as_chunks();
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    let words = whole.iter().chain([&last]).map(|bytes| u64::from_le_bytes(*bytes));
    plane::scatter_words(&words.collect::<Vec<_>>(), 0, values);
}

fn unpack_bytes<const BYTES: usize>(bytes: &[u8], values: &mut [u64]) {
    for (value, from) in values.iter_mut().zip(bytes.as_chunks::<BYTES>().0) {
        let mut word = [0; 8];
        word[..BYTES].copy_from_slice(from);
        *value = u64::from_le_bytes(word);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Random;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn unpack_undoes_pack(words: Vec<u64>, bits in 1u32..=64) {
            let values: Vec<u64> = words.iter().map(|w| w & mask(bits)).collect();
            let mut bytes = vec![0xaa];
            pack_into(&mut bytes, &values, bits);
            prop_assert_eq!(bytes.len(), 1 + packed_len(values.len(), bits));
            prop_assert_eq!(unpack(&bytes[1..], values.len(), bits).unwrap(), values);
        }

        #[test]
        fn long_lists_agree_with_single_bits(seed: u64, count in 0usize..700, bits in 1u32..=64) {
            let values = Random::seeded(seed).uniform(count, bits);
            let mut bytes = Vec::new();
            pack_into(&mut bytes, &values, bits);
            let bit = |at: usize| u64::from(bytes[at / 8] >> (at % 8)) & 1;
            let one = |i: usize| (0..bits as usize).fold(0, |v, b| v | (bit(i * bits as usize + b) << b));
            prop_assert!((0..count).map(one).eq(values.iter().copied()));
            prop_assert_eq!(unpack(&bytes, count, bits).unwrap(), values);
        }

        #[test]
        fn narrower_lanes_pack_alike(seed: u64, count in 0usize..300, bits in 1u32..=16) {
            let values = Random::seeded(seed).uniform(count, bits);
            let mut wanted = Vec::new();
            pack_into(&mut wanted, &values, bits);
            let narrow: Vec<u16> = values.iter().map(|value| *value as u16).collect();
            let (mut bytes, mut back) = (Vec::new(), vec![0u16; count]);
            pack_lanes(&mut bytes, &narrow, bits);
            prop_assert!(bytes == wanted && is_canonical(&bytes, count, bits));
            unpack_lanes(&bytes, &mut back, bits);
            prop_assert_eq!(back, narrow);
        }

        #[test]
        fn what_unpacks_has_one_encoding(bytes: Vec<u8>, count in 0usize..40, bits in 1u32..=64) {
            if let Some(values) = unpack(&bytes, count, bits) {
                let mut again = Vec::new();
                pack_into(&mut again, &values, bits);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
