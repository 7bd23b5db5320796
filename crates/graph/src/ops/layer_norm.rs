//! Normalisation along the first axis.

use super::checks::{ensure, same_shape, wide_enough};
use super::known::{Known, Part};
use super::operator::{Operator, Site};
use super::range::Range;
use crate::error::Check;
use crate::functions;
use crate::functions::newton::Newton;
use crate::functions::starts::Start;
use serde::{Deserialize, Serialize};

/// Bits from the largest deviation of a row to the smallest that a norm tells apart, and
/// two for the range of values.
const DEVIATIONS: u32 = 11;

/// Brings values to mean 0 and deviation 1 along the first axis, or to mean square 1 alone, see
/// [`crate::functions::LayerNorm`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerNorm {
    /// Values lie in `-2^(bits-2)..2^(bits-2)`.
    pub bits: u32,
    /// Deviations below about `2^least` units are taken for that deviation.
    pub least: u32,
    /// The integer that stands for a result of 1.
    pub unit: f64,
    /// The Newton iteration that computes inverse roots; a table does when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newton: Option<Newton>,
    /// Whether no mean is taken off: the root of the mean square takes the deviation's place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rms: bool,
}

impl LayerNorm {
    /// Returns the function, of rows as long as the input's first axis.
    ///
    /// # Errors
    /// The error says which of the operator's numbers cannot be, in words.
    pub fn function(&self, site: &Site<'_>) -> Check<functions::LayerNorm> {
        let columns = site.input().shape.first().copied().unwrap_or(0);
        let Self { bits, least, unit, newton, rms } = *self;
        let calibration = functions::Calibration { least, unit };
        let out_bits = site.output.format.bits;
        match newton {
            Some(_) if rms => Err("an RMS norm by Newton's iteration".into()),
            Some(newton) => {
                let root = (Start::Affine, newton);
                functions::LayerNorm::by_newton(columns, bits, calibration, out_bits, root)
            }
            None if rms => functions::LayerNorm::rms(columns, bits, calibration, out_bits),
            None => functions::LayerNorm::new(columns, bits, calibration, out_bits),
        }
    }
}

impl Operator for LayerNorm {
    fn kind(&self) -> &'static str {
        "layer-norm"
    }

    fn title(&self) -> &'static str {
        "layer norm"
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        same_shape(site.input(), site.output)?;
        self.function(site)?;
        wide_enough(site.input(), self.bits)?;
        Ok(true)
    }

    fn is_tried(&self) -> bool {
        self.newton.is_some()
    }

    fn interpret(&self, site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let norm = self.function(site)?;
        let (x, columns) = (inputs[0], site.input().shape[0]);
        let rows = x.len() / columns;
        let row =
            |row: usize| norm.clear(&x.iter().skip(row).step_by(rows).copied().collect::<Vec<_>>());
        let results: Vec<Vec<i64>> = (0..rows).map(row).collect();
        let column = |column| results.iter().map(move |row| row[column]);
        Ok((0..columns).flat_map(column).collect())
    }

    fn output(&self, site: &Site<'_>, _inputs: &[Known]) -> Known {
        let Ok(norm) = self.function(site) else { return Range::ZERO.into() };
        let [low, high] = norm.range().map(i128::from);
        let range = Range::new(low, high);
        let part = Part { length: site.output.shape[0], range, norm: Some(norm.norm()) };
        Known::in_parts(range, vec![part])
    }

    fn fits(&self, _: &Site<'_>, inputs: &[Known]) -> Check<()> {
        let side = 1 << (self.bits - 2);
        let inside = -side <= inputs[0].low && inputs[0].high < side;
        ensure(inside, || format!("values exceed {} bits", self.bits))
    }

    fn reads(&self, _signed: bool, _range: Range) -> u32 {
        self.bits
    }

    fn fixes_width(&self) -> bool {
        true
    }

    fn choose_widths(&mut self, inputs: &[Known], _accumulator: Option<u32>) {
        let side = inputs[0].high.max(-1 - inputs[0].low).max(0);
        self.bits = (130 - side.leading_zeros()).max(5);
        self.least = self.bits.saturating_sub(DEVIATIONS);
    }
}
