//! Keys: integers in the order of 32-bit floating-point numbers.
//!
//! The bits of a positive number, read as an integer, are in the order of such numbers, and those
//! of a negative one in the opposite order. So the key of a number is its bits with the sign bit
//! flipped, or with all bits flipped if it is negative (Knuth, TAOCP 3, exercise 5.2.5-8, for
//! sorting by radix). Both zeros have one key, and what is no number is [`MISSING`].

use crate::ops::trees::MISSING;

const SIGN: u32 = 1 << 31;

/// Returns the key of a number, from 0x007f_ffff (minus infinity) to 0xff80_0000 (infinity);
/// [`MISSING`] of what is no number. The time depends on nothing but the kind of processor.
pub fn key(value: f32) -> i64 {
    let bits = value.to_bits();
    // A mask of ones where the number is negative.
    let negative = ((bits as i32) >> 31) as u32;
    let ordered = bits ^ (negative | SIGN);
    let magnitude = bits & !SIGN;
    let zero = mask(magnitude == 0);
    let missing = u64::from(mask(magnitude > f32::INFINITY.to_bits()));
    let missing = missing | missing << 32;
    let key = u64::from((ordered & !zero) | (SIGN & zero));
    ((key & !missing) | (MISSING as u64 & missing)) as i64
}

/// Ones where `condition` holds, without a branch.
fn mask(condition: bool) -> u32 {
    u32::from(condition).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_numbers() {
        let steps = [0u32, 1, 2, 0x007f_ffff, 0x0080_0000, 0x3f80_0000, 0x7f7f_ffff, 0x7f80_0000];
        let positive = steps.iter().map(|bits| f32::from_bits(*bits));
        let mut all: Vec<f32> = positive.clone().map(|value| -value).rev().collect();
        all.extend(positive);
        for a in &all {
            for b in &all {
                assert_eq!(a.partial_cmp(b), Some(key(*a).cmp(&key(*b))), "{a} {b}");
            }
        }
        assert_eq!(key(-0.0), key(0.0));
        assert_eq!((key(f32::NEG_INFINITY), key(f32::INFINITY)), (0x007f_ffff, 0xff80_0000));
    }

    #[test]
    fn what_is_no_number_is_missing() {
        for bits in [0x7fc0_0000, 0xffc0_0000, 0x7f80_0001, 0xffff_ffff] {
            assert_eq!(key(f32::from_bits(bits)), MISSING);
        }
    }
}
