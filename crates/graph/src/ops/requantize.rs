//! Dropping low bits exactly, and changing the width of shares.

use super::checks::{ensure, same_shape};
use super::known::Known;
use super::operator::{Operator, Site};
use super::range::{Range, rescale};
use crate::error::Check;
use serde::{Deserialize, Serialize};

/// Most bits that one node drops.
const MAX_DROP: u32 = 30;

/// `y = (x + 2^(drop-1)) >> drop`, exactly, in shares of any width.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requantize {
    /// Number of low bits that are dropped.
    pub drop: u32,
}

impl Operator for Requantize {
    fn kind(&self) -> &'static str {
        "requantize"
    }

    fn title(&self) -> &'static str {
        if self.drop == 0 { "change of width" } else { "requantize" }
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        let (drop, input) = (self.drop, site.input());
        same_shape(input, site.output)?;
        let bits = input.format.bits;
        ensure(drop <= MAX_DROP && drop + 2 <= bits, || format!("drops {drop} of {bits} bits"))?;
        Ok(input.format.signed)
    }

    fn interpret(&self, _site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        Ok(inputs[0].iter().map(|v| rescale(*v, self.drop)).collect())
    }

    fn output(&self, _: &Site<'_>, inputs: &[Known]) -> Known {
        let raised = inputs[0].raised(self.drop);
        Range::new(raised.low >> self.drop, raised.high >> self.drop).into()
    }

    fn reads(&self, _signed: bool, range: Range) -> u32 {
        range.raised(self.drop).width().max(self.drop + 2)
    }
}
