//! Where Newton's iteration begins: the affine start, and those of others to compare it with.

use super::Result;
use super::newton::{Core, Interval, Newton, Wanted};

/// A first guess of an inverse square root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// `a - b*t`, the best line on each branch.
    #[default]
    Affine,
}

impl Start {
    /// The ratio of branches, if the range is split.
    pub fn ratio(self, ratio: u32) -> Option<u32> {
        Some(ratio)
    }

    /// Bits of t where the range is not split.
    pub fn bits(self) -> u32 {
        16
    }

    /// The program on `interval`.
    ///
    /// # Errors
    /// Where it diverges.
    pub fn core(self, newton: Newton, interval: Interval, wanted: Wanted) -> Result<Core> {
        newton.core(interval, wanted)
    }
}
