//! Tensors one after another.

use super::checks::{ensure, same_width};
use super::known::Known;
use super::operator::{Operator, Site};
use super::range::Range;
use crate::error::Check;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// The inputs one after another along the outermost axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Concat;

impl Operator for Concat {
    fn kind(&self) -> &'static str {
        "concat"
    }

    fn inputs(&self) -> RangeInclusive<usize> {
        1..=usize::MAX
    }

    /// Shapes are equal but for the outermost axis, widths are equal.
    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        let output = site.output;
        let mut outermost = 0usize;
        let mut signed = false;
        for input in &site.inputs {
            let fits = input.shape.get(1..) == output.shape.get(1..);
            ensure(fits, || format!("puts {:?} into {:?}", input.shape, output.shape))?;
            same_width(input, output)?;
            outermost = outermost.saturating_add(input.shape[0]);
            signed |= input.format.signed;
        }
        let all = output.shape[0] == outermost;
        ensure(all, || format!("{outermost} parts of {}", output.shape[0]))?;
        Ok(signed)
    }

    fn interpret(&self, _site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        Ok(inputs.concat())
    }

    fn output(&self, site: &Site<'_>, inputs: &[Known]) -> Known {
        let lengths = site.inputs.iter().map(|input| input.shape[0]);
        let parts = inputs.iter().zip(lengths).flat_map(|(known, length)| known.parts(length));
        let range = inputs.iter().map(|known| known.range).reduce(Range::join);
        Known::in_parts(range.unwrap_or(Range::ZERO), parts.collect())
    }

    fn reads(&self, _signed: bool, range: Range) -> u32 {
        range.width()
    }

    fn keeps_width(&self) -> bool {
        true
    }
}
