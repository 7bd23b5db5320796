//! Intervals of integers, and the share widths that hold them.

/// What widths leave room for on either side of the interpreter's rescaled value. A protocol whose
/// result is less than so much from the quotient before it is rounded stays within it: the quotient
/// is at most a half from the interpreter's value, and results are integers.
pub const ROUNDING_SLACK: i128 = 2;

/// A closed interval of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The smallest integer.
    pub low: i128,
    /// The largest integer.
    pub high: i128,
}

impl Range {
    /// The interval that holds only zero.
    pub const ZERO: Self = Self { low: 0, high: 0 };

    /// The integers from `low` to `high`.
    pub fn new(low: i128, high: i128) -> Self {
        Self { low, high }
    }

    /// The smallest interval around some integers; zero when there are none.
    pub fn around(values: impl Iterator<Item = i128>) -> Self {
        let all = values.map(|value| Self::new(value, value)).reduce(Self::join);
        all.unwrap_or(Self::ZERO)
    }

    /// The smallest interval that holds both intervals.
    pub fn join(self, other: Self) -> Self {
        Self::new(self.low.min(other.low), self.high.max(other.high))
    }

    /// The interval of all sums of two values; saturates far above every width.
    pub fn plus(self, other: Self) -> Self {
        Self::new(self.low.saturating_add(other.low), self.high.saturating_add(other.high))
    }

    /// The interval of all products with `factor`; saturates far above every width.
    pub fn times(self, factor: i128) -> Self {
        let ends = [self.low.saturating_mul(factor), self.high.saturating_mul(factor)];
        Self::new(ends[0].min(ends[1]), ends[0].max(ends[1]))
    }

    /// The values after dropping `shift` bits of an accumulator that includes the rounding
    /// term, with what stochastic rounding may add.
    pub fn rescaled(self, shift: u32) -> Self {
        let slack = Self::new(-ROUNDING_SLACK, ROUNDING_SLACK);
        Self::new(self.low >> shift, self.high >> shift).plus(slack)
    }

    /// The values with the rounding term of `drop` low bits added.
    pub fn raised(self, drop: u32) -> Self {
        let half = i128::from(half(drop));
        self.plus(Self::new(half, half))
    }

    /// Returns the width for which `|v| <= 2^(width-1) - 1`; 128 when nothing holds it.
    pub fn width(self) -> u32 {
        let magnitude = self.low.unsigned_abs().max(self.high.unsigned_abs());
        129 - magnitude.leading_zeros()
    }

    /// Returns the width that holds differences of two values, as pools and argmax take them.
    pub fn difference_width(self) -> u32 {
        self.width() + 1
    }

    /// Returns whether all integers of `other` are in this interval.
    pub fn holds(self, other: Self) -> bool {
        self.low <= other.low && other.high <= self.high
    }
}

/// The rounding term of a shift.
pub(crate) fn half(shift: u32) -> i64 {
    if shift == 0 { 0 } else { 1 << (shift - 1) }
}

/// Returns an accumulator without its `shift` low bits, rounded to nearest; wraps mod 2^64.
pub fn rescale(accumulator: i64, shift: u32) -> i64 {
    accumulator.wrapping_add(half(shift)) >> shift
}
