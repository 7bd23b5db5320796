//! Smooth functions of folded arguments.

use super::checks::{same_shape, wide_enough};
use super::known::Known;
use super::operator::{Operator, Site};
use super::range::Range;
use crate::error::Check;
use crate::functions::curve::{Curve, Numbers};
use crate::functions::fold::{self, Argument};
use serde::{Deserialize, Serialize};

/// An argument beyond every width.
const FAR: i128 = 1 << 62;

/// A smooth function of each value, by the integer function [`crate::functions::Fold`] of these
/// public numbers: `relu(x) + base +- curve`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fold {
    /// Bits of the absolute values that the curve tells apart, 2 to 13.
    pub magnitude: u32,
    /// How a value gives the argument of the curve.
    pub argument: Argument,
    /// Whether a ReLU that saturates at `2^magnitude - 1` is part of the result.
    pub relu: bool,
    /// Whether the curve is subtracted.
    pub below: bool,
    /// The constant that is added to all results.
    pub base: i64,
    /// The curve, none of whose values is negative.
    pub curve: Numbers,
}

impl Fold {
    /// Returns the operator of an integer function.
    pub fn of(function: &fold::Fold) -> Self {
        Self {
            magnitude: function.magnitude,
            argument: function.argument,
            relu: function.relu,
            below: function.below,
            base: function.base,
            curve: function.curve.numbers(),
        }
    }

    /// Returns the integer function.
    ///
    /// # Errors
    /// The error says which of the operator's numbers cannot be, in words.
    pub fn function(&self) -> Check<fold::Fold> {
        let curve = Curve::of(&self.curve)?;
        let flags = [self.relu, self.below];
        fold::Fold::new(self.magnitude, self.argument, flags, self.base, curve)
    }
}

impl Operator for Fold {
    fn kind(&self) -> &'static str {
        "fold"
    }

    fn title(&self) -> &'static str {
        "smooth function"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        same_shape(site.input(), site.output)?;
        let function = self.function()?;
        wide_enough(site.input(), self.magnitude + 3)?;
        Ok(function.ends()[0] < 0)
    }

    fn interpret(&self, _site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let function = self.function()?;
        Ok(inputs[0].iter().map(|v| function.clear(*v)).collect())
    }

    fn output(&self, _: &Site<'_>, inputs: &[Known]) -> Known {
        let ends = [inputs[0].low, inputs[0].high].map(|end| end.clamp(-FAR, FAR) as i64);
        let Ok(function) = self.function() else { return Range::ZERO.into() };
        let [low, high] = function.range(ends[0], ends[1]);
        Range::new(low.into(), high.into()).into()
    }

    /// The comparison reads the value moved by `2^magnitude`.
    fn reads(&self, _signed: bool, range: Range) -> u32 {
        (range.width() + 1).max(self.magnitude + 3)
    }
}
