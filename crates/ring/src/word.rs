//! Residues mod 2^bits kept in `u64` lanes. All functions are branch-free.

/// The low `bits` ones, `1 <= bits <= 64`.
#[inline]
pub const fn mask(bits: u32) -> u64 {
    debug_assert!(bits >= 1 && bits <= 64);
    u64::MAX >> (64 - bits)
}

/// The representative of `x` mod 2^bits in `[-2^(bits-1), 2^(bits-1))`.
#[inline]
pub const fn signed(x: u64, bits: u32) -> i64 {
    ((x << (64 - bits)) as i64) >> (64 - bits)
}

/// `x` mod 2^bits.
#[inline]
pub const fn reduce(x: i64, bits: u32) -> u64 {
    x as u64 & mask(bits)
}

/// Bit `index` of `x`, as 0 or 1.
#[inline]
pub const fn bit(x: u64, index: u32) -> u64 {
    (x >> index) & 1
}

/// All ones when `bit` is 1, zero when it is 0.
#[inline]
pub const fn spread(bit: u64) -> u64 {
    bit.wrapping_neg()
}

/// `if_one` when `bit` is 1, `if_zero` when it is 0, without a branch.
#[inline]
pub const fn select(bit: u64, if_one: u64, if_zero: u64) -> u64 {
    if_zero ^ (spread(bit) & (if_one ^ if_zero))
}

/// Number of bits of the smallest two's-complement width that holds `x`.
pub const fn signed_width(x: i64) -> u32 {
    let magnitude = if x < 0 { !x } else { x };
    65 - magnitude.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn signed_and_reduce_are_inverse(x: i64, bits in 1u32..=64) {
            let r = reduce(x, bits);
            prop_assert_eq!(reduce(signed(r, bits), bits), r);
            prop_assert_eq!(signed_width(x) <= bits, signed(r, bits) == x);
        }

        #[test]
        fn select_selects(a: u64, b: u64) {
            prop_assert_eq!((select(1, a, b), select(0, a, b)), (a, b));
        }
    }
}
