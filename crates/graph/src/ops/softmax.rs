//! Softmax along the last axis.

use super::checks::{ensure, same_shape, wide_enough};
use super::known::Known;
use super::operator::{Operator, Site};
use super::range::Range;
use crate::error::Check;
use crate::functions;
use serde::{Deserialize, Serialize};

/// Softmax along the last axis, by the integer function [`crate::functions::Softmax`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Softmax {
    /// Differences of two values of a row are below `2^(bits-1)`.
    pub bits: u32,
    /// Real value of one unit of the input.
    pub scale: f64,
    /// What no value is above. It takes the maximum's place where values are near it
    /// ([`functions::Softmax::is_near`]). Models of earlier versions do not say it: they have a
    /// maximum and smaller sums of results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<i64>,
}

impl Softmax {
    /// Returns the function, of rows as long as the input's last axis.
    ///
    /// # Errors
    /// The error says which of the operator's numbers cannot be, in words.
    pub fn function(&self, site: &Site<'_>) -> Check<functions::Softmax> {
        let columns = site.input().shape.last().copied().unwrap_or(0);
        let out_bits = site.output.format.bits;
        let near = functions::Softmax::is_near(columns, self.bits, self.scale);
        match self.top {
            Some(top) if near => {
                functions::Softmax::below(top, columns, self.bits, self.scale, out_bits)
            }
            Some(_) => functions::Softmax::new(columns, self.bits, self.scale, out_bits),
            None => functions::Softmax::precise(columns, self.bits, self.scale, out_bits),
        }
    }
}

impl Operator for Softmax {
    fn kind(&self) -> &'static str {
        "softmax"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        same_shape(site.input(), site.output)?;
        self.function(site)?;
        wide_enough(site.input(), self.bits)?;
        Ok(false)
    }

    fn interpret(&self, site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let softmax = self.function(site)?;
        let columns = site.input().shape.last().copied().unwrap_or(1);
        Ok(inputs[0].chunks_exact(columns).flat_map(|row| softmax.clear(row)).collect())
    }

    fn output(&self, site: &Site<'_>, _inputs: &[Known]) -> Known {
        let Ok(softmax) = self.function(site) else { return Range::ZERO.into() };
        let [low, high] = softmax.range().map(i128::from);
        Known::with_row_sum(Range::new(low, high), softmax.row_sum().into())
    }

    fn fits(&self, site: &Site<'_>, inputs: &[Known]) -> Check<()> {
        let span = i128::from(self.function(site)?.span());
        let top = self.top.map_or(inputs[0].high, i128::from);
        ensure(inputs[0].high <= top, || format!("values exceed {top}"))?;
        ensure(top - inputs[0].low <= span, || format!("differences exceed {span}"))
    }

    fn reads(&self, _signed: bool, _range: Range) -> u32 {
        self.bits
    }

    fn fixes_width(&self) -> bool {
        true
    }

    /// Models of earlier versions keep their width: the integers depend on it.
    fn choose_widths(&mut self, inputs: &[Known], _accumulator: Option<u32>) {
        if self.top.is_some() {
            let span = inputs[0].high - inputs[0].low;
            self.bits = (129 - span.leading_zeros()).max(5);
            self.top = Some(i64::try_from(inputs[0].high).unwrap_or(i64::MAX));
        }
    }
}
