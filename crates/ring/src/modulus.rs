//! Integers mod a public number below 2^62, without division or branches on the values.

use crate::word::select;

/// A public modulus with its reciprocal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulus {
    value: u64,
    /// floor(2^64 / value).
    reciprocal: u64,
}

impl Modulus {
    /// The modulus `value`, from 2 to 2^62 - 1; `None` outside that range.
    pub const fn new(value: u64) -> Option<Self> {
        if value < 2 || value >> 62 != 0 {
            return None;
        }
        // floor(2^64 / v) is floor((2^64 - 1) / v), or one more when v divides 2^64.
        let reciprocal = u64::MAX / value + (value.is_power_of_two() as u64);
        Some(Self { value, reciprocal })
    }

    /// The number itself.
    pub const fn value(self) -> u64 {
        self.value
    }

    /// Bits of the largest residue.
    pub const fn bits(self) -> u32 {
        u64::BITS - (self.value - 1).leading_zeros()
    }

    /// `x` mod this, in `0..value`.
    pub const fn reduce(self, x: u64) -> u64 {
        let quotient = ((x as u128 * self.reciprocal as u128) >> 64) as u64;
        // The quotient is at most one too small.
        self.once(x.wrapping_sub(quotient.wrapping_mul(self.value)))
    }

    /// `x` mod this, for `x` below twice the modulus.
    pub const fn once(self, x: u64) -> u64 {
        let less = x.wrapping_sub(self.value);
        select(less >> 63, x, less)
    }

    /// A signed integer's residue.
    pub const fn of_signed(self, x: i64) -> u64 {
        let magnitude = self.reduce(x.unsigned_abs());
        let negative = (x as u64) >> 63;
        select(negative, self.once(self.value - magnitude), magnitude)
    }

    /// `x + y` of residues.
    pub const fn add(self, x: u64, y: u64) -> u64 {
        self.once(x + y)
    }

    /// `x - y` of residues.
    pub const fn subtract(self, x: u64, y: u64) -> u64 {
        self.once(x + (self.value - y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_out_of_range_are_refused() {
        for value in [0, 1, 1 << 62, u64::MAX] {
            assert_eq!(Modulus::new(value), None);
        }
    }

    proptest! {
        #[test]
        fn residues_are_those_of_division(
            value in prop_oneof![2u64..1000, 2u64..(1 << 62), Just(1 << 32), Just((1 << 62) - 1)],
            x in any::<u64>(),
            y in any::<u64>(),
        ) {
            let modulus = Modulus::new(value).ok_or_else(|| TestCaseError::fail("range"))?;
            prop_assert_eq!(modulus.reduce(x), x % value);
            prop_assert_eq!(modulus.reduce(u64::MAX), u64::MAX % value);
            let (a, b) = (x % value, y % value);
            prop_assert_eq!(modulus.add(a, b), (a + b) % value);
            prop_assert_eq!(modulus.subtract(a, b), (a + value - b) % value);
            let signed = i128::from(x as i64).rem_euclid(i128::from(value));
            prop_assert_eq!(i128::from(modulus.of_signed(x as i64)), signed);
            prop_assert!(a <= u64::MAX >> (64 - modulus.bits()));
        }
    }
}
