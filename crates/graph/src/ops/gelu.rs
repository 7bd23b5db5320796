//! Gaussian error linear units.

use super::checks::{same_shape, wide_enough};
use super::known::Known;
use super::operator::{Operator, Site};
use super::range::Range;
use crate::error::Check;
use crate::functions;
use serde::{Deserialize, Serialize};

/// A magnitude beyond every width.
const FAR: i128 = 1 << 62;

/// GELU of each value, by the integer function [`crate::functions::Gelu`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gelu {
    /// Bits of absolute values at which the function differs from a ReLU.
    pub magnitude: u32,
    /// Real value of one unit of input and output.
    pub scale: f64,
}

impl Gelu {
    /// Returns the integer function, derived from the fields.
    ///
    /// # Errors
    /// The error says which of the operator's numbers cannot be, in words.
    pub fn function(&self) -> Check<functions::Gelu> {
        functions::Gelu::new(self.magnitude, self.scale)
    }
}

impl Operator for Gelu {
    fn kind(&self) -> &'static str {
        "gelu"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        same_shape(site.input(), site.output)?;
        self.function()?;
        wide_enough(site.input(), self.magnitude + 3)?;
        Ok(true)
    }

    fn interpret(&self, _site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let gelu = self.function()?;
        Ok(inputs[0].iter().map(|v| gelu.clear(*v)).collect())
    }

    fn output(&self, _: &Site<'_>, inputs: &[Known]) -> Known {
        let ends = [inputs[0].low, inputs[0].high].map(|end| end.clamp(-FAR, FAR) as i64);
        let [low, high] = self.function().map_or(ends, |gelu| gelu.range(ends[0], ends[1]));
        Range::new(low.into(), high.into()).into()
    }

    /// The comparison takes what is below the curve off.
    fn reads(&self, _signed: bool, range: Range) -> u32 {
        (range.width() + 1).max(self.magnitude + 3)
    }
}
