//! Words of up to 128 bits on the wire: their low 64 bits packed, then the rest packed.

use ring::pack::{pack_into, packed_len, unpack};
use wire::{Error, Result};

/// The low `bits` ones, 1 to 128.
#[inline]
pub(crate) const fn mask(bits: u32) -> u128 {
    u128::MAX >> (128 - bits)
}

/// The widths of the two parts of words of `bits` bits.
const fn parts(bits: u32) -> (u32, u32) {
    if bits > 64 { (64, bits - 64) } else { (bits, 0) }
}

/// Returns the number of bytes of `count` words of `bits` bits.
pub(crate) const fn wide_len(count: usize, bits: u32) -> usize {
    let (low, high) = parts(bits);
    packed_len(count, low) + packed_len(count, high)
}

/// Appends `words`, each below 2^bits.
pub(crate) fn pack_wide(out: &mut Vec<u8>, words: &[u128], bits: u32) {
    let (low, high) = parts(bits);
    let narrow: Vec<u64> = words.iter().map(|word| *word as u64).collect();
    pack_into(out, &narrow, low);
    if high > 0 {
        let rest: Vec<u64> = words.iter().map(|word| (*word >> 64) as u64).collect();
        pack_into(out, &rest, high);
    }
}

/// Reads `count` words.
///
/// # Errors
/// [`Error::Peer`] for another length and for padding that is not zero.
pub(crate) fn unpack_wide(bytes: &[u8], count: usize, bits: u32) -> Result<Vec<u128>> {
    let (low, high) = parts(bits);
    let (first, second) = bytes.split_at(packed_len(count, low).min(bytes.len()));
    let bad = || Error::peer("zero padding", "other bits");
    let mut words: Vec<u128> =
        unpack(first, count, low).ok_or_else(bad)?.into_iter().map(u128::from).collect();
    if high > 0 {
        let rest = unpack(second, count, high).ok_or_else(bad)?;
        words.iter_mut().zip(rest).for_each(|(word, rest)| *word |= u128::from(rest) << 64);
    }
    Ok(words)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ring::Random;

    #[test]
    fn words_of_every_width_come_back() {
        let mut rng = Random::seeded(1);
        for bits in 1..=128 {
            for count in [1, 7, 8, 33] {
                let words: Vec<u128> = (0..count).map(|_| rng.block() & mask(bits)).collect();
                let mut bytes = Vec::new();
                pack_wide(&mut bytes, &words, bits);
                assert_eq!(bytes.len(), wide_len(count, bits));
                assert_eq!(unpack_wide(&bytes, count, bits).unwrap(), words);
                bytes.pop();
                assert!(unpack_wide(&bytes, count, bits).is_err());
            }
        }
    }
}
