//! Smooth maxima.

use super::checks::{ensure, same_shape, wide_enough};
use super::known::Known;
use super::operator::{Operator, Site};
use super::range::Range;
use crate::error::Check;
use crate::functions;
use crate::functions::newton::Newton;
use crate::functions::smu::Smooth;
use serde::{Deserialize, Serialize};

/// A smooth maximum of each value, by the integer function [`crate::functions::Smu`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smu {
    /// The function of real numbers that the integers approximate.
    pub smooth: Smooth,
    /// The Newton iteration that computes the inverse square root.
    pub newton: Newton,
}

impl Smu {
    /// Returns the integer function, derived from the fields.
    ///
    /// # Errors
    /// The error says which of the operator's numbers cannot be, in words.
    pub fn function(&self, site: &Site<'_>) -> Check<functions::Smu> {
        functions::Smu::new(self.smooth, self.newton, site.output.format.bits)
    }
}

/// Checks that values lie where a smooth maximum is defined.
pub(super) fn inside(smooth: &Smooth, input: &Known) -> Check<()> {
    let side = i128::from(smooth.offset());
    let inside = -side <= input.low && input.high < side;
    ensure(inside, || format!("values exceed {} bits", smooth.bits))
}

impl Operator for Smu {
    fn kind(&self) -> &'static str {
        "smu"
    }

    fn title(&self) -> &'static str {
        "smooth maximum"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        same_shape(site.input(), site.output)?;
        self.function(site)?;
        wide_enough(site.input(), self.smooth.bits + 1)?;
        Ok(true)
    }

    fn is_tried(&self) -> bool {
        true
    }

    fn interpret(&self, site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let smu = self.function(site)?;
        let offset = smu.real.offset();
        Ok(smu.straight_line.results(inputs[0].iter().map(|v| v + offset)).collect())
    }

    fn output(&self, site: &Site<'_>, _inputs: &[Known]) -> Known {
        let Ok(smu) = self.function(site) else { return Range::ZERO.into() };
        let [low, high] = smu.range().map(i128::from);
        Range::new(low, high).into()
    }

    fn fits(&self, _: &Site<'_>, inputs: &[Known]) -> Check<()> {
        inside(&self.smooth, &inputs[0])
    }

    fn reads(&self, _signed: bool, _range: Range) -> u32 {
        self.smooth.bits + 1
    }

    fn fixes_width(&self) -> bool {
        true
    }
}
