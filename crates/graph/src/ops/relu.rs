//! Rectified linear units that saturate, and clips to other windows.

use super::checks::{ensure, same_shape};
use super::choice::is_zero;
use super::known::Known;
use super::operator::{Operator, Site};
use super::range::Range;
use crate::error::Check;
use serde::{Deserialize, Serialize};

/// Most bits of the distance from the smallest to the largest result.
pub(crate) const MAX_SATURATE: u32 = 16;
/// How many times twice its length a clip's window may lie away from zero.
pub(crate) const FAR_BITS: u32 = 4;

/// `y = clamp(x, low, low + 2^saturate - 1)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relu {
    /// Bits of the distance from the smallest to the largest result.
    pub saturate: u32,
    /// The smallest result, at most `2^(saturate+4)` away from 0; a ReLU's is 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub low: i64,
}

impl Operator for Relu {
    fn kind(&self) -> &'static str {
        "relu"
    }

    fn title(&self) -> &'static str {
        if self.low == 0 { "relu" } else { "clip" }
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        let Self { saturate, low } = *self;
        let (input, output) = (site.input(), site.output);
        same_shape(input, output)?;
        let sized = (1..=MAX_SATURATE).contains(&saturate);
        ensure(sized, || format!("saturates at {saturate} bits"))?;
        let near = low.unsigned_abs() <= 1 << (saturate + FAR_BITS);
        ensure(near, || format!("clips from {low} on over {saturate} bits"))?;
        let narrow = input.format.bits.min(output.format.bits);
        ensure(narrow > saturate + 1, || format!("{narrow} bits are too few for {saturate}"))?;
        Ok(low < 0)
    }

    fn interpret(&self, _site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let high = self.low + (1 << self.saturate) - 1;
        Ok(inputs[0].iter().map(|v| (*v).clamp(self.low, high)).collect())
    }

    fn output(&self, _: &Site<'_>, _inputs: &[Known]) -> Known {
        let low = i128::from(self.low);
        Range::new(low, low + (1 << self.saturate) - 1).into()
    }

    /// Both `v - low` and `v - low - 2^saturate` stay clear of the wrap.
    fn reads(&self, _signed: bool, range: Range) -> u32 {
        let moved = range.plus(Range::new(-i128::from(self.low), -i128::from(self.low)));
        let guard = 1i128 << self.saturate;
        let holds = |bits: &u32| {
            let half = 1i128 << (bits - 1);
            guard - half <= moved.low && moved.high < half - guard
        };
        (self.saturate + 2..=126).find(holds).unwrap_or(128)
    }

    fn writes(&self, range: Range) -> u32 {
        range.difference_width()
    }
}
