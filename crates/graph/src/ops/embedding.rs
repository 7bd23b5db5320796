//! Rows of the server's table at positions that the client knows.

use super::accumulator::{self, Accumulator, MAX_ACCUMULATOR_BITS, Rounding};
use super::checks::ensure;
use super::geometry::elements;
use super::known::Known;
use super::operator::{Operator, Site, Weighted};
use super::range::{Range, half, rescale};
use crate::error::Check;
use crate::tensor::{NodeWeights, Tensor};
use serde::{Deserialize, Serialize};

/// Most rows of an embedding: the client encrypts one value for each.
const MAX_ROWS: usize = 1 << 20;

/// Rows of the server's table, at positions that the client knows:
/// `y[i] = (table[x[i]] + 2^(shift-1)) >> shift`, for an input of shape `[length]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    /// Rows of the table, e.g. the size of a vocabulary.
    pub rows: usize,
    /// Signed width that holds every entry, the rounding term included.
    pub weight_bits: u32,
    /// Number of low bits that are dropped.
    pub shift: u32,
    /// How the low bits are dropped.
    pub rounding: Rounding,
}

impl Embedding {
    /// Range of the entries, rounding term included.
    fn entries(&self, weights: &NodeWeights) -> Range {
        let rounding = i128::from(half(self.shift));
        Range::around(weights.weight.iter().map(|w| i128::from(*w) + rounding))
    }
}

impl Operator for Embedding {
    fn kind(&self) -> &'static str {
        "embedding"
    }

    fn verify(&self, site: &Site<'_>, known: &[bool]) -> Check<bool> {
        let (input, output) = (site.input(), site.output);
        let known = known.first() == Some(&true);
        ensure(known, || "looks up at positions that the client does not know".into())?;
        let [length] = input.shape[..] else {
            return Err(format!("looks up at positions {:?}", input.shape));
        };
        let fits = matches!(output.shape[..], [_, same] if same == length);
        ensure(fits, || format!("{length} rows make {:?}", output.shape))?;
        let Self { rows, weight_bits, shift, .. } = *self;
        ensure((1..=MAX_ROWS).contains(&rows), || format!("a table of {rows} rows"))?;
        elements(&[rows, length])?;
        let entries = rows.saturating_mul(output.shape[0]);
        ensure(entries <= 1 << 28, || format!("a table of {entries} entries"))?;
        let widths = (2..=32).contains(&weight_bits) && shift < weight_bits;
        ensure(widths, || format!("entries of {weight_bits} bits, shift {shift}"))?;
        let plain = output.format.bits + shift;
        ensure(plain <= MAX_ACCUMULATOR_BITS, || format!("results of {plain} bits"))?;
        Ok(true)
    }

    fn weighted(&self) -> Option<&dyn Weighted> {
        Some(self)
    }

    /// `[columns, length]` out of a table `[rows, columns]`; positions are in range.
    fn interpret(&self, site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let table = &site.needed_weights()?.weight;
        let columns = table.len() / self.rows.max(1);
        let entry = |(column, row): (usize, &i64)| {
            let place = *row as usize * columns + column;
            table.get(place).copied().unwrap_or(0)
        };
        let x = inputs[0];
        let places = (0..columns).flat_map(|column| x.iter().map(move |row| (column, row)));
        Ok(places.map(|place| rescale(entry(place).into(), self.shift)).collect())
    }

    fn output(&self, site: &Site<'_>, _inputs: &[Known]) -> Known {
        let entries = site.weights.map(|weights| self.entries(weights).rescaled(self.shift));
        entries.unwrap_or(Range::ZERO).into()
    }

    fn accumulator(&self) -> Option<Accumulator> {
        let Self { weight_bits: bits, shift, rounding, .. } = *self;
        Some(Accumulator { bits, shift, rounding })
    }

    fn fits(&self, site: &Site<'_>, inputs: &[Known]) -> Check<()> {
        let entries = self.entries(site.needed_weights()?);
        accumulator::fits(entries, self.weight_bits)?;
        let table = Range::new(0, self.rows as i128 - 1);
        table.holds(inputs[0].range).then_some(()).ok_or("looks up beyond its table".into())
    }

    fn reads(&self, _signed: bool, _range: Range) -> u32 {
        1
    }

    fn set_accumulator(&mut self, accumulator: Accumulator) {
        self.rounding = accumulator.rounding;
    }
}

impl Weighted for Embedding {
    fn weight_shape(&self, output: &Tensor) -> Option<Vec<usize>> {
        Some(vec![self.rows, output.shape[0]])
    }

    fn bias_shape(&self, _output: &Tensor) -> Option<Vec<usize>> {
        None
    }

    fn check(&self, output: &Tensor, weights: &NodeWeights) -> Check<()> {
        let want = self.rows.saturating_mul(output.shape[0]);
        let fits = weights.weight.len() == want && weights.bias.is_empty();
        let limit = 1i64 << (self.weight_bits - 1);
        let held = weights.weight.iter().all(|w| i64::from(*w).abs() < limit);
        (fits && held).then_some(()).ok_or(format!("needs {want} entries of its width"))
    }
}
