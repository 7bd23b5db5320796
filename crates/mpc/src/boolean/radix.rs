//! Digits in which a comparison reads its integers: how wide they are decides rounds and bytes.

use wire::{Error, Result};

/// Width of a digit of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Radix {
    /// One bit.
    Two,
    /// Two bits.
    Four,
    /// Three bits.
    Eight,
    /// Four bits: fewer rounds, more bytes.
    Sixteen,
    /// Five bits. This and wider ones take bytes and work in the hundreds an element, and are
    /// for few elements on links with delay.
    R32,
    /// Six bits.
    R64,
    /// Seven bits.
    R128,
    /// Eight bits.
    R256,
}

impl Radix {
    /// The widths that a plan chooses among where nothing is known of the link.
    pub const ALL: [Self; 4] = [Self::Two, Self::Four, Self::Eight, Self::Sixteen];

    /// Every width, in ascending order.
    const EVERY: [Self; 8] = [
        Self::Two,
        Self::Four,
        Self::Eight,
        Self::Sixteen,
        Self::R32,
        Self::R64,
        Self::R128,
        Self::R256,
    ];

    /// Returns the width of a digit.
    pub const fn bits(self) -> u32 {
        self as u32 + 1
    }

    /// Digits of so many bits, 1 to 8.
    ///
    /// # Errors
    /// [`Error::Misuse`] for others.
    pub fn of_bits(bits: u32) -> Result<Self> {
        let known = Self::EVERY.into_iter().find(|radix| radix.bits() == bits);
        known.ok_or_else(|| Error::misuse("digits of a comparison have 1 to 8 bits"))
    }
}
