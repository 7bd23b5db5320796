//! Zeros around a tensor.

use super::arrange::{padded, shown};
use super::checks::{ensure, same_width};
use super::known::Known;
use super::operator::{Operator, Site};
use super::range::Range;
use crate::error::Check;
use serde::{Deserialize, Serialize};

/// The input with zeros around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pad {
    /// Zeros before the input along each axis; the output's shape tells those behind.
    pub before: Vec<usize>,
}

impl Operator for Pad {
    fn kind(&self) -> &'static str {
        "pad"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        let (before, input, output) = (&self.before, site.input(), site.output);
        same_width(input, output)?;
        let rank = before.len() == input.shape.len() && before.len() == output.shape.len();
        let mut axes = before.iter().zip(&input.shape).zip(&output.shape);
        let inside = axes
            .all(|((before, side), out)| before.checked_add(*side).is_some_and(|end| end <= *out));
        ensure(rank && inside, || format!("pads {:?} to {:?}", input.shape, output.shape))?;
        Ok(input.format.signed)
    }

    fn arrangement(&self, site: &Site<'_>) -> Option<Vec<Option<usize>>> {
        Some(padded(&site.input().shape, &self.before, &site.output.shape))
    }

    fn rearranges(&self) -> bool {
        true
    }

    fn listed(&self, site: &Site<'_>) -> usize {
        site.output.len()
    }

    fn interpret(&self, site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        Ok(shown(self.arrangement(site), inputs[0]))
    }

    fn output(&self, _: &Site<'_>, inputs: &[Known]) -> Known {
        inputs[0].join(Range::ZERO).into()
    }

    fn reads(&self, _signed: bool, range: Range) -> u32 {
        range.width()
    }

    fn keeps_width(&self) -> bool {
        true
    }
}
