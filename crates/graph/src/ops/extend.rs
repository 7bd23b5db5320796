//! Wider shares of the same values.

use super::checks::{ensure, same_shape};
use super::known::Known;
use super::operator::{Operator, Site};
use super::range::Range;
use crate::error::Check;
use serde::{Deserialize, Serialize};

/// The input's values in wider shares. A signed input has a bit to spare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extend;

impl Operator for Extend {
    fn kind(&self) -> &'static str {
        "extend"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        let (input, output) = (site.input(), site.output);
        same_shape(input, output)?;
        let (from, to) = (input.format.bits, output.format.bits);
        ensure(from >= 2 && to > from, || format!("extends {from} bits to {to}"))?;
        Ok(input.format.signed)
    }

    fn interpret(&self, _site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        Ok(inputs[0].to_vec())
    }

    fn output(&self, _: &Site<'_>, inputs: &[Known]) -> Known {
        inputs[0].clone()
    }

    /// A tensor that may be negative is raised by half of a positive range.
    fn reads(&self, signed: bool, range: Range) -> u32 {
        range.width() + u32::from(signed)
    }
}
