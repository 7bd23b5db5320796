//! The ring that a share lives in.

use ring::Modulus;
use ring::word::mask;

/// A public ring of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// Mod 2^bits, 1 to 64 bits.
    Power(u32),
    /// Mod a number below 2^62, mostly a prime.
    Prime(Modulus),
}

impl Ring {
    /// Returns whether the width is one that shares have.
    pub const fn is_legal(self) -> bool {
        match self {
            Self::Power(bits) => 1 <= bits && bits <= 64,
            Self::Prime(_) => true,
        }
    }

    /// Returns the number of bits of the largest element.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Power(bits) => bits,
            Self::Prime(modulus) => modulus.bits(),
        }
    }

    /// Returns whether `word` is the canonical name of an element.
    pub const fn contains(self, word: u64) -> bool {
        match self {
            Self::Power(bits) => word & !mask(bits) == 0,
            Self::Prime(modulus) => word < modulus.value(),
        }
    }

    /// Returns the element that `word` stands for. Constant time.
    pub const fn reduce(self, word: u64) -> u64 {
        match self {
            Self::Power(bits) => word & mask(bits),
            Self::Prime(modulus) => modulus.reduce(word),
        }
    }

    /// Returns `x + y` of elements. Constant time.
    pub const fn add(self, x: u64, y: u64) -> u64 {
        match self {
            Self::Power(bits) => x.wrapping_add(y) & mask(bits),
            Self::Prime(modulus) => modulus.add(x, y),
        }
    }

    /// Returns `x - y` of elements. Constant time.
    pub const fn subtract(self, x: u64, y: u64) -> u64 {
        match self {
            Self::Power(bits) => x.wrapping_sub(y) & mask(bits),
            Self::Prime(modulus) => modulus.subtract(x, y),
        }
    }

    /// Returns a signed integer's element. Constant time.
    pub const fn of_signed(self, x: i64) -> u64 {
        match self {
            Self::Power(bits) => x as u64 & mask(bits),
            Self::Prime(modulus) => modulus.of_signed(x),
        }
    }

    /// Returns a uniform element from a uniform block: its low bits, or mod p the integer part of
    /// `block * p / 2^128`. Each element's probability differs from 1/p by at most 2^-128, the
    /// whole from uniform by at most 2^-66. Constant time.
    pub const fn draw(self, block: u128) -> u64 {
        match self {
            Self::Power(bits) => block as u64 & mask(bits),
            Self::Prime(modulus) => {
                let p = modulus.value() as u128;
                let low = (block as u64 as u128 * p) >> 64;
                (((block >> 64) * p + low) >> 64) as u64
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn prime(p: u64) -> Ring {
        Ring::Prime(Modulus::new(p).unwrap())
    }

    #[test]
    fn blocks_spread_evenly_over_a_prime() {
        let ring = prime(17);
        assert_eq!(ring.draw(0), 0);
        assert_eq!(ring.draw(u128::MAX), 16);
        for element in 0..17u128 {
            let first = (element << 64).div_ceil(17) << 64;
            assert!(u128::from(ring.draw(first)) == element);
        }
        assert_eq!(Ring::Power(5).draw(0x1_0000_0000_0000_0025), 5);
    }

    #[test]
    fn arithmetic_is_that_of_the_ring() {
        assert_eq!(Ring::Power(8).add(250, 10), 4);
        assert_eq!(Ring::Power(8).of_signed(-3), 253);
        assert_eq!(Ring::Power(64).subtract(0, 1), u64::MAX);
        assert_eq!(prime(17).subtract(3, 5), 15);
        assert_eq!(prime(17).of_signed(-3), 14);
        assert!(prime(17).contains(16) && !prime(17).contains(17));
        assert_eq!((prime(17).reduce(40), Ring::Power(4).reduce(40)), (6, 8));
        assert!(!Ring::Power(0).is_legal() && !Ring::Power(65).is_legal());
        assert_eq!((prime(17).bits(), Ring::Power(9).bits()), (5, 9));
    }
}
