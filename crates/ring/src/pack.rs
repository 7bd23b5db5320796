//! Packing of k-bit integers, little-endian and without gaps. The padding bits
//! of the last byte are zero; anything else is refused, so that every list of
//! integers has exactly one encoding.

use crate::word::mask;

/// Bytes that `count` integers of `bits` bits take.
pub const fn packed_len(count: usize, bits: u32) -> usize {
    ((count as u128 * bits as u128).div_ceil(8)) as usize
}

/// Appends `values` (each below 2^bits) to `out`.
pub fn pack_into(out: &mut Vec<u8>, values: &[u64], bits: u32) {
    out.reserve(packed_len(values.len(), bits) + 16);
    let end = out.len() + packed_len(values.len(), bits);
    let (mut buffer, mut held) = (0u128, 0u32);
    for &value in values {
        debug_assert_eq!(value & !mask(bits), 0);
        buffer |= u128::from(value) << held;
        held += bits;
        if held >= 64 {
            out.extend_from_slice(&(buffer as u64).to_le_bytes());
            buffer >>= 64;
            held -= 64;
        }
    }
    out.extend_from_slice(&(buffer as u64).to_le_bytes());
    out.truncate(end);
}

/// Reads `count` integers of `bits` bits; `None` when the length is wrong or a
/// padding bit is set.
pub fn unpack(bytes: &[u8], count: usize, bits: u32) -> Option<Vec<u64>> {
    if bytes.len() != packed_len(count, bits) {
        return None;
    }
    let (mut buffer, mut held) = (0u128, 0u32);
    let mut input = bytes.chunks(8);
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        if held < bits {
            let chunk = input.next()?;
            let mut word = [0u8; 8];
            word.get_mut(..chunk.len())?.copy_from_slice(chunk);
            buffer |= u128::from(u64::from_le_bytes(word)) << held;
            held += 8 * chunk.len() as u32;
        }
        values.push(buffer as u64 & mask(bits));
        buffer >>= bits;
        held = held.checked_sub(bits)?;
    }
    (buffer == 0).then_some(values)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
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
        fn what_unpacks_has_one_encoding(bytes: Vec<u8>, count in 0usize..40, bits in 1u32..=64) {
            if let Some(values) = unpack(&bytes, count, bits) {
                let mut again = Vec::new();
                pack_into(&mut again, &values, bits);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
