//! Products of two shared tensors as matrices.

use super::accumulator::{self, Accumulator, Rounding, check_accumulator};
use super::checks::ensure;
use super::known::Known;
use super::operator::{Operator, Site};
use super::product::products;
use super::range::{Range, half, rescale};
use crate::error::Check;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Most terms of all products of matrices: each is multiplied.
const MAX_TERMS: u64 = 1 << 36;

/// A product of two shared matrices, `[.., rows, inner]` and `[.., inner, columns]`, for
/// each place on the leading axes: `y = (a*b + 2^(shift-1)) >> shift`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatMul {
    /// Signed width that holds every accumulator, as of a [`super::Linear`].
    pub accumulator_bits: u32,
    /// Number of low bits that are dropped from the accumulator.
    pub shift: u32,
    /// How the low bits are dropped.
    pub rounding: Rounding,
}

impl MatMul {
    /// Returns the number of places on the leading axes, rows, inner length and columns of a
    /// product of these shapes, where they fit.
    pub fn sides(a: &[usize], b: &[usize]) -> Option<[usize; 4]> {
        let ([leading @ .., rows, inner], [others @ .., same, columns]) = (a, b) else {
            return None;
        };
        let count = leading.iter().try_fold(1usize, |all, side| all.checked_mul(*side))?;
        (leading == others && inner == same).then_some([count, *rows, *inner, *columns])
    }

    /// Range of the accumulator, rounding term included.
    fn accumulated(&self, site: &Site<'_>, inputs: &[Known]) -> Range {
        let inner = site.input().shape.last().copied().unwrap_or(1);
        let terms = products(inputs[0].range, inputs[1].range).times(inner as i128);
        let sums = match inputs[0].row_sum() {
            Some(most) => {
                let weighted = inputs[1].join(Range::ZERO).times(most);
                Range::new(terms.low.max(weighted.low), terms.high.min(weighted.high))
            }
            None => terms,
        };
        let rounding = i128::from(half(self.shift));
        sums.join(Range::ZERO).plus(Range::new(rounding, rounding))
    }
}

impl Operator for MatMul {
    fn kind(&self) -> &'static str {
        "mat-mul"
    }

    fn title(&self) -> &'static str {
        "matrix product"
    }

    fn inputs(&self) -> RangeInclusive<usize> {
        2..=2
    }

    fn verify(&self, site: &Site<'_>, _known: &[bool]) -> Check<bool> {
        let [a, b] = [0, 1].map(|i| site.inputs[i]);
        let output = site.output;
        let sides = Self::sides(&a.shape, &b.shape);
        let [count, rows, inner, columns] =
            sides.ok_or_else(|| format!("multiplies {:?} by {:?}", a.shape, b.shape))?;
        let want = a.shape.iter().take(a.shape.len() - 2).copied().chain([rows, columns]);
        ensure(output.shape.iter().copied().eq(want), || format!("makes {:?}", output.shape))?;
        let sides = [rows, inner, columns];
        let terms = sides.iter().try_fold(count, |all, side| all.checked_mul(*side));
        ensure(terms.is_some_and(|terms| terms as u64 <= MAX_TERMS), || {
            "too many products".into()
        })?;
        check_accumulator(self.accumulator_bits, self.shift, a, output)?;
        check_accumulator(self.accumulator_bits, self.shift, b, output)?;
        Ok(true)
    }

    /// A matrix that the client knows makes the product a linear one, which is no mask.
    fn multiplied(&self, known: &[bool]) -> usize {
        if known.contains(&true) { 0 } else { 2 }
    }

    fn interpret(&self, site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>> {
        let [a, b] = [0, 1].map(|i| site.inputs[i].shape.as_slice());
        let [x, y] = [inputs[0], inputs[1]];
        let [_, height, inner, columns] = Self::sides(a, b).ok_or("its matrices do not fit")?;
        let mut out = Vec::with_capacity(x.len() / inner.max(1) * columns);
        let pairs = x.chunks_exact(height * inner).zip(y.chunks_exact(inner * columns));
        for (x, y) in pairs {
            for row in x.chunks_exact(inner) {
                let mut sums = vec![0i64; columns];
                for (factor, row) in row.iter().zip(y.chunks_exact(columns)) {
                    let terms = sums.iter_mut().zip(row);
                    terms.for_each(|(sum, y)| *sum = sum.wrapping_add(factor.wrapping_mul(*y)));
                }
                out.extend(sums.into_iter().map(|sum| rescale(sum, self.shift)));
            }
        }
        Ok(out)
    }

    fn output(&self, site: &Site<'_>, inputs: &[Known]) -> Known {
        self.accumulated(site, inputs).rescaled(self.shift).into()
    }

    fn accumulator(&self) -> Option<Accumulator> {
        let Self { accumulator_bits: bits, shift, rounding } = *self;
        Some(Accumulator { bits, shift, rounding })
    }

    fn sums(&self, site: &Site<'_>, inputs: &[Known]) -> Option<Range> {
        Some(self.accumulated(site, inputs))
    }

    fn fits(&self, site: &Site<'_>, inputs: &[Known]) -> Check<()> {
        accumulator::fits(self.accumulated(site, inputs), self.accumulator_bits)
    }

    fn reads(&self, _signed: bool, _range: Range) -> u32 {
        self.accumulator_bits
    }

    fn working_bits(&self) -> Option<u32> {
        Some(self.accumulator_bits)
    }

    fn is_product(&self) -> bool {
        true
    }

    fn set_accumulator(&mut self, Accumulator { bits, rounding, .. }: Accumulator) {
        (self.accumulator_bits, self.rounding) = (bits, rounding);
    }
}
