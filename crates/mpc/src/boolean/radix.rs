//! Digits in which a comparison reads its integers: how wide they are decides rounds and bytes.

use wire::{Error, Result};

/// How a comparison reads its integers: the width of its digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Digits of widths chosen for the comparison, chained into one message and without gates. For
    /// links with delay.
    Chain,
    /// Carries that go from bit to bit, a gate each: the fewest bytes of all, and a round for each
    /// bit. For many elements on links that are slow rather than far.
    Ripple,
}

impl Radix {
    /// The widths that a plan chooses among where nothing is known of the link.
    pub const ALL: [Self; 4] = [Self::Two, Self::Four, Self::Eight, Self::Sixteen];

    /// Every width that all digits have, in ascending order.
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

    /// The variants whose digits have no one width, with their names.
    const NAMED: [(Self, &'static str); 2] = [(Self::Chain, "chain"), (Self::Ripple, "ripple")];

    /// Returns those whose digits have no one width.
    pub fn without_width() -> impl Iterator<Item = Self> + Clone {
        Self::NAMED.into_iter().map(|(radix, _)| radix)
    }

    /// Returns the one without a width that has this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|(_, known)| *known == name).map(|(radix, _)| radix)
    }

    /// Returns the name of one without a width.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMED.into_iter().find(|(radix, _)| *radix == self).map(|(_, name)| name)
    }

    /// Returns the width of a digit in bits, 1 to 8; none for a chain, whose digits differ, and for
    /// carries, which have none.
    pub const fn digit_bits(self) -> Option<u32> {
        match self {
            Self::Chain | Self::Ripple => None,
            width => Some(width as u32 + 1),
        }
    }

    /// Digits of so many bits, 1 to 8.
    ///
    /// # Errors
    /// [`Error::Misuse`] for others.
    pub fn of_bits(bits: u32) -> Result<Self> {
        let known = Self::EVERY.into_iter().find(|radix| radix.digit_bits() == Some(bits));
        known.ok_or_else(|| Error::misuse("digits of a comparison have 1 to 8 bits"))
    }
}
