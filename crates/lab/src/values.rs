//! What goes in and comes out of an operation, and what its sizes leave open.

use mpc::compare::Radix;
use ring::Modulus;
use ring::word::signed;
use runtime::step::Action;
use wire::Result;

/// What goes in and comes out of a step.
pub(crate) type Planned = (Input, Output, Action);

/// Random signed values: `width` bits, not below `low`, shared mod 2^bits.
pub(crate) struct Input {
    pub(crate) count: usize,
    pub(crate) bits: u32,
    pub(crate) width: u32,
    pub(crate) low: i64,
    /// What they are shared by instead.
    pub(crate) modulus: Option<Modulus>,
    /// Width of as many values that follow as second factors.
    pub(crate) second: Option<u32>,
}

impl Input {
    /// Values of the full width.
    pub(crate) fn plain(count: usize, bits: u32) -> Self {
        Self { count, bits, width: bits, low: i64::MIN, modulus: None, second: None }
    }
}

/// What the result's words mean.
#[derive(Clone, Copy)]
pub(crate) struct Output {
    pub(crate) bits: u32,
    pub(crate) signed: bool,
}

impl Output {
    pub(crate) fn signed(bits: u32) -> Self {
        Self { bits, signed: true }
    }

    pub(crate) fn read(self, word: u64) -> i64 {
        if self.signed { signed(word, self.bits) } else { word as i64 }
    }
}

/// The digits asked for, or those of the default suite for `count` comparisons of
/// `bits` bits.
pub(crate) fn digits(radix: Option<u32>, count: usize, bits: u32) -> Result<Radix> {
    chosen(radix, || Radix::fastest(count, bits))
}

/// The digits asked for, or others.
pub(crate) fn chosen(radix: Option<u32>, other: impl FnOnce() -> Radix) -> Result<Radix> {
    radix.map_or_else(|| Ok(other()), Radix::of_bits)
}

/// A last place of signed values of `bits` whose bound is `range`.
pub(crate) fn last_place(range: f64, bits: u32) -> f64 {
    range / (1u64 << bits.saturating_sub(1).min(62)) as f64
}
