//! Softmax with smooth maxima in place of exponentials: `s/(sum(s) + epsilon)`.
//!
//! s has a few bits more than scores after the point. No s is negative, as it is within a last
//! place of a positive number, so that the denominator is at least epsilon. The reciprocal is
//! the square of an inverse root.
//!
//! Error: at most a last place, and twice what a last place of s is in its row's denominator.

use super::newton::Newton;
use super::refusal::{Result, is_scale};
use super::root::{inverse_root, scaled};
use super::smu::{Smooth, Smu};
use super::starts::Start;
use super::straight_line::{Builder, StraightLine};

/// Bits of reciprocals beyond those that a row's largest s needs.
const GUARD: u32 = 1;

/// About `(2^(out_bits-1) - 1) * s/(sum(s) + epsilon)` for rows of scores.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReluSoftmax {
    /// Values in each row.
    pub cols: usize,
    /// The smooth ReLU of scores.
    pub smu: Smu,
    /// Epsilon in last places of s.
    pub epsilon: i64,
    /// Width of results.
    pub out_bits: u32,
    /// The program for the reciprocal of sums with epsilon; its argument is less epsilon.
    pub reciprocal: StraightLine,
    /// Bits after the point of s times reciprocal.
    pub drop: u32,
    /// Bits that hold that product.
    pub width: u32,
    real_epsilon: f64,
}

impl ReluSoftmax {
    /// Rows of `cols` (2 to 4096) scores to results of `out_bits` (4 to 12).
    ///
    /// # Errors
    /// For other sizes, for an epsilon below half a last place of s, and as [`Smu::new`].
    pub fn new(
        cols: usize,
        smooth: Smooth,
        epsilon: f64,
        [newton, division]: [Newton; 2],
        out_bits: u32,
    ) -> Result<Self> {
        let plan = Self::from(cols, smooth, epsilon, Start::Affine, [newton, division], out_bits)?;
        match plan.smu.error() <= super::smu::ERROR {
            true => Ok(plan),
            false => Err("a smooth maximum whose iterations leave too large an error".into()),
        }
    }

    /// Derives the function from any start, whatever the error of s.
    ///
    /// # Errors
    /// The errors of [`ReluSoftmax::new`].
    pub fn from(
        cols: usize,
        smooth: Smooth,
        epsilon: f64,
        start: Start,
        [newton, division]: [Newton; 2],
        out_bits: u32,
    ) -> Result<Self> {
        smooth.check()?;
        let sizes = (2..=4096).contains(&cols) && (4..=12).contains(&out_bits);
        if !sizes || smooth.slope != 0.0 || !is_scale(epsilon) {
            return Err("a softmax of smooth maxima of these sizes".into());
        }
        let real_epsilon = epsilon / smooth.scale * (1u64 << smooth.fraction) as f64;
        if !(0.5..(1u64 << 30) as f64).contains(&real_epsilon) {
            return Err("a softmax with an epsilon that is not about a last place".into());
        }
        let epsilon = real_epsilon.round() as i64;
        let narrow = Smu::unchecked(smooth, start, newton, 2 + smooth.bits + smooth.fraction)?;
        let [low, high] = narrow.range();
        if low < 0 {
            return Err("a softmax of smooth maxima below zero".into());
        }
        let drop = 64 - high.leading_zeros() + GUARD;
        let peak = ((1u64 << (out_bits - 1)) - 1) as f64 * (1u64 << drop) as f64;
        let sums = [epsilon, cols as i64 * high + epsilon];
        let (reciprocal, error) = reciprocal(sums, peak, start, division)?;
        let most = peak * (1.0 + error) + (high + (1 << drop)) as f64;
        let width = 66 - (most as u64).leading_zeros();
        let width = width.max(reciprocal.bits()[1]).max(out_bits + drop);
        if width > 60 {
            return Err("a softmax of smooth maxima with these widths".into());
        }
        let smu = Smu {
            straight_line: narrow.straight_line.widened(width.max(reciprocal.bits()[0]))?,
            ..narrow
        };
        Ok(Self { cols, smu, epsilon, out_bits, reciprocal, drop, width, real_epsilon })
    }

    /// Returns half a last place of the result.
    pub fn half(&self) -> i64 {
        1 << (self.drop - 1)
    }

    /// Returns the results for one row; where `mask` is 0 nothing counts.
    pub fn clear(&self, row: &[i64], mask: Option<&[i64]>) -> Vec<i64> {
        let kept = |at: usize| mask.is_none_or(|mask| mask.get(at).is_some_and(|bit| bit & 1 == 1));
        let parts = row.iter().enumerate();
        let parts: Vec<i64> =
            parts.map(|(at, x)| if kept(at) { self.smu.clear(*x) } else { 0 }).collect();
        let factor = self.reciprocal.clear(parts.iter().sum());
        parts.iter().map(|part| (part * factor + self.half()) >> self.drop).collect()
    }

    /// Returns the largest distance of [`ReluSoftmax::clear`] from the real function on one row, in
    /// last places.
    pub fn error(&self, row: &[i64]) -> f64 {
        let part = |x: &i64| self.smu.real.at(*x);
        let sum = row.iter().map(part).sum::<f64>() + self.real_epsilon;
        let peak = ((1u64 << (self.out_bits - 1)) - 1) as f64;
        let pairs = row.iter().zip(self.clear(row, None));
        pairs.map(|(x, got)| (got as f64 - peak * part(x) / sum).abs()).fold(0.0, f64::max)
    }

    /// Returns bounds on all results: one last place of rounding above a probability of one.
    pub fn range(&self) -> [i64; 2] {
        [0, (1 << (self.out_bits - 1)) - 1]
    }

    /// Returns a bound on the sum of a row's results.
    pub fn row_sum(&self) -> i64 {
        // Before rounding they add up to less than the peak and a little.
        let peak = self.range()[1];
        peak + peak / 64 + self.cols as i64 / 2 + 1
    }
}

/// About `peak/(x + low)` for `0 <= x <= high - low`, and its relative error.
fn reciprocal(
    [low, high]: [i64; 2],
    peak: f64,
    start: Start,
    newton: Newton,
) -> Result<(StraightLine, f64)> {
    let mut builder = Builder::new([0, high - low]);
    let sum = builder.affine(&[(0, 1)], low);
    let (inverse, scale, error) = inverse_root(&mut builder, sum, start, newton)?;
    let square = builder.square(inverse);
    scaled(&mut builder, square, peak, 2 * scale)?;
    let error = 2.0 * error + error * error + 2f64.powi(-12);
    let mut straight_line = builder.finish(1)?;
    straight_line.limit((peak / low as f64 * (1.0 + error) + 1.0) as i64)?;
    Ok((straight_line, error))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ring::Random;

    const DIVISION: Newton = Newton { iterations: 3, ratio: 2, precision: 10 };

    #[test]
    fn errors_and_bounds_are_as_stated() {
        let mut rng = Random::seeded(94);
        for (cols, scale, smoothness, fraction) in
            [(128, 0.05, 0.5, 2), (16, 0.1, 0.5, 3), (2, 0.1, 1.0, 2), (200, 0.05, 0.8, 1)]
        {
            let smooth = Smooth { bits: 9, scale, slope: 0.0, smoothness, fraction };
            let (newton, _) = Smu::least(smooth).unwrap();
            let plan = ReluSoftmax::new(cols, smooth, 0.5, [newton, DIVISION], 8).unwrap();
            for kind in 0..500 {
                let row = rng.uniform(cols, 9);
                let row: Vec<i64> = row.iter().map(|x| (*x as i64 - 256) >> (kind % 5)).collect();
                let results = plan.clear(&row, None);
                let [low, high] = plan.range();
                assert!(results.iter().all(|y| (low..=high).contains(y)));
                assert!(results.iter().sum::<i64>() <= plan.row_sum());
                let sum = row.iter().map(|x| plan.smu.clear(*x)).sum::<i64>() + plan.epsilon;
                assert!(plan.error(&row) <= 1.0 + 2.0 * 127.0 / sum as f64, "{cols}");
            }
            let none = plan.clear(&vec![100; cols], Some(&vec![0; cols]));
            assert!(none.iter().all(|y| *y == 0));
        }
    }
}
