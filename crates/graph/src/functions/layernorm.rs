//! Normalisation of a row to mean 0 and deviation 1, or to mean square 1 alone.
//!
//! With `s = sum x` and `v = n*sum x^2 - s^2 = (n*deviation)^2`, of x moved above zero, the
//! result is `x*f - s*f/n` for `f = unit*n/sqrt(v)`. The scale of x cancels, so there is none.
//! Scaling by gamma and moving by beta are left to the linear layer that follows. To mean square
//! 1 alone (Zhang and Sennrich, NeurIPS 2019) it is `x*f` for `v = n*sum x^2`, of x as it is.
//!
//! Factors have so many bits after the point that none is below 2^6; where results are
//! finer than that they have none, and nothing is rounded.
//!
//! Error: at most 0.6 last places and a 64th of the row's largest result; at most 0.9 for
//! 9-bit inputs of up to 768 columns, 10-bit results and units from 16 to 31.

use super::inverse::{Inverse, Power};
use super::newton::Newton;
use super::refusal::Result;
use super::root::{Root, Rooted};
use super::starts::Start;

/// Bits of the quotient by n beyond those that count, if there is room.
const GUARD: u32 = 6;
/// Bits of the smallest factor.
const LEAST_FACTOR: u32 = 6;
/// Bits of the widest share of a row's mean times the quotient.
const MOST: u32 = 63;

/// What is known of the rows, and what is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Deviations below about 2^least last places are taken for that.
    pub least: u32,
    /// Last places of a result of 1.
    pub unit: f64,
}

/// About `unit * (x - mean)/max(deviation, least)` for rows of
/// `-2^(bits-2) <= x < 2^(bits-2)`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LayerNorm {
    /// Values in each row.
    pub cols: usize,
    /// Width of inputs, with a bit to spare.
    pub bits: u32,
    calibration: Calibration,
    /// Whether the mean is taken off.
    pub centred: bool,
    /// Width of results.
    pub out_bits: u32,
    /// Bits after the point of the product with the factor.
    pub fraction: u32,
    /// Width of sums.
    pub sum_bits: u32,
    /// Width of results that are not extended, at most `out_bits`.
    pub inner: u32,
    /// Width of results before they are rounded, and of sums.
    pub element: u32,
    /// Width of the row's mean times factor, times the quotient; 0 where no mean is taken off.
    pub moved: u32,
    /// 2^shift/cols, and shift; none of it counts where no mean is taken off.
    pub quotient: (i64, u32),
    /// The inverse root that turns variances into factors.
    pub root: Rooted,
}

impl LayerNorm {
    /// Rows of `cols` (2 to 8192) values of `bits` (5 to 16) to results of `out_bits`
    /// (3 to 63).
    ///
    /// # Errors
    /// For other sizes, for a least deviation above a quarter of the largest, for a unit
    /// below 1, and where results, about `unit*sqrt(cols)` at most, do not fit.
    pub fn new(cols: usize, bits: u32, calibration: Calibration, out_bits: u32) -> Result<Self> {
        Self::rooted(cols, bits, (calibration, true), out_bits, Self::table)
    }

    /// Derives a normalisation to mean square 1 alone: about `unit * x/max(r, least)`, with r the
    /// root of the mean square of x's row.
    ///
    /// # Errors
    /// As [`LayerNorm::new`].
    pub fn rms(cols: usize, bits: u32, calibration: Calibration, out_bits: u32) -> Result<Self> {
        Self::rooted(cols, bits, (calibration, false), out_bits, Self::table)
    }

    /// The inverse root by a table.
    fn table(octaves: [u32; 2], peak: f64, factor: u32) -> Result<Rooted> {
        Ok(Rooted::Table(Inverse::new(Power::Root, octaves, peak, factor)?))
    }

    /// Derives the function with inverse roots by Newton's iteration.
    ///
    /// # Errors
    /// The errors of [`LayerNorm::new`], and one where the iteration diverges.
    pub fn by_newton(
        cols: usize,
        bits: u32,
        calibration: Calibration,
        out_bits: u32,
        (start, newton): (Start, Newton),
    ) -> Result<Self> {
        Self::rooted(cols, bits, (calibration, true), out_bits, |octaves, peak, _| {
            Ok(Rooted::Newton(Box::new(Root::new(octaves, peak, start, newton)?)))
        })
    }

    /// `root` makes inverse roots of so many octaves and at most about a peak.
    fn rooted(
        cols: usize,
        bits: u32,
        (calibration, centred): (Calibration, bool),
        out_bits: u32,
        root: impl Fn([u32; 2], f64, u32) -> Result<Rooted>,
    ) -> Result<Self> {
        let Calibration { least, unit } = calibration;
        let widths = (5..=16).contains(&bits) && (3..=63).contains(&out_bits);
        let small = least.checked_add(4).is_some_and(|least| least <= bits);
        if !widths || !small || !(2..=8192).contains(&cols) {
            return Err("a layer norm of these sizes".into());
        }
        let too_wide = "a layer norm whose results are wider than its output";
        if !(unit >= 1.0 && unit <= (1u64 << (out_bits - 1)) as f64) {
            return Err(too_wide.into());
        }
        let (up, down) = (cols.next_power_of_two().ilog2(), cols.ilog2());
        let fraction = (bits - 2 + LEAST_FACTOR).saturating_sub((unit as u64).ilog2());
        let peak = unit * cols as f64 * (1u64 << fraction) as f64 / (1u64 << (least + down)) as f64;
        // The mean square of values that are all at the lower end is no deviation's.
        let full = u32::from(!centred && up == down);
        let octaves = [2 * (least + down), up - down + bits - 2 - least + full];
        let root = root(octaves, peak, (peak.max(4.0) as u64).ilog2() + 2)?;
        let [_, factor] = root.bits();
        let sum_bits = bits + up;
        let mut plan = Self {
            cols,
            bits,
            calibration,
            centred,
            out_bits,
            fraction,
            sum_bits,
            inner: out_bits,
            element: sum_bits,
            moved: 0,
            quotient: (0, sum_bits + factor + GUARD - fraction),
            root,
        };
        plan.inner = plan.narrowest().min(out_bits);
        plan.element = (plan.inner + fraction).max(sum_bits).max(factor);
        match centred {
            true => plan.divide(factor, down)?,
            false if plan.element > MOST => return Err("an RMS norm of so fine results".into()),
            false => plan.quotient = (0, 0),
        }
        match plan.range()[1] < 1 << (out_bits - 1) {
            true => Ok(plan),
            false => Err(too_wide.into()),
        }
    }

    /// A width at which results stay below half when they are moved above zero.
    fn narrowest(&self) -> u32 {
        let most = (2.0 * self.length() + 4.0).min(1e18);
        (most as u64).ilog2() + 2
    }

    /// Quotients by the number of columns, of as many bits as there is room for.
    fn divide(&mut self, factor: u32, down: u32) -> Result<()> {
        let width = |shift: u32| (self.sum_bits + factor + shift - down).max(self.element + shift);
        let shift = self.quotient.1;
        let shift = shift.saturating_sub(width(shift).saturating_sub(MOST));
        if shift + self.fraction < self.sum_bits + factor {
            return Err("a layer norm of too many columns for its widths".into());
        }
        self.moved = width(shift);
        self.quotient = (((1u64 << shift) as f64 / self.cols as f64).round() as i64, shift);
        Ok(())
    }

    /// What is added to make inputs non-negative.
    pub fn offset(&self) -> i64 {
        1 << (self.bits - 2)
    }

    /// Returns half a last place of the result, before it is rounded.
    pub fn half(&self) -> i64 {
        (1 << self.fraction) >> 1
    }

    /// Returns the results for one row.
    pub fn clear(&self, row: &[i64]) -> Vec<i64> {
        if !self.centred {
            let squares: i64 = row.iter().map(|x| x * x).sum();
            let factor = self.root.clear(self.cols as i64 * squares);
            return row.iter().map(|x| (x * factor + self.half()) >> self.fraction).collect();
        }
        let row: Vec<i64> = row.iter().map(|x| x + self.offset()).collect();
        let sum: i64 = row.iter().sum();
        let squares: i64 = row.iter().map(|x| x * x).sum();
        let factor = self.root.clear(self.cols as i64 * squares - sum * sum);
        let (quotient, shift) = self.quotient;
        let mean = ((i128::from(sum * factor) * i128::from(quotient)) >> shift) as i64;
        row.iter().map(|x| (x * factor - mean + self.half()) >> self.fraction).collect()
    }

    /// Returns the largest distance of [`LayerNorm::clear`] from the real function on one row, in
    /// last places.
    pub fn error(&self, row: &[i64]) -> f64 {
        let cols = self.cols as f64;
        let mean = if self.centred { row.iter().sum::<i64>() as f64 / cols } else { 0.0 };
        let variance = row.iter().map(|x| (*x as f64 - mean).powi(2)).sum::<f64>() / cols;
        let deviation = variance.sqrt().max(self.least());
        let real = |x: &i64| self.calibration.unit * (*x as f64 - mean) / deviation;
        let pairs = row.iter().zip(self.clear(row));
        pairs.map(|(x, got)| (got as f64 - real(x)).abs()).fold(0.0, f64::max)
    }

    /// Returns the deviation for which smaller ones are taken, in last places: between half of
    /// `2^least` and that.
    pub fn least(&self) -> f64 {
        (1u64 << (self.calibration.least + self.cols.ilog2())) as f64 / self.cols as f64
    }

    /// Returns bounds on all results.
    pub fn range(&self) -> [i64; 2] {
        // One of n values is at most sqrt(n - 1) deviations from the mean, or sqrt(n) from zero.
        let (cols, one) = (self.cols as f64, f64::from(u8::from(self.centred)));
        let most = (self.length() * ((cols - one) / cols).sqrt() + self.rounding()) as i64;
        [-most, most]
    }

    /// Returns a bound on the Euclidean norm of a row's results.
    pub fn norm(&self) -> f64 {
        self.length() + (self.cols as f64).sqrt() * self.rounding()
    }

    /// A bound on the norm of a row of `(x - mean)*f`.
    fn length(&self) -> f64 {
        // The norm of x - mean is sqrt(v/n).
        let weighted = self.root.most_weighted() / (self.cols as f64).sqrt();
        weighted / (1u64 << self.fraction) as f64 * (1.0 + 1e-12)
    }

    /// A bound on what one result is off by the roundings of the mean and of itself.
    fn rounding(&self) -> f64 {
        let fraction = (1u64 << self.fraction) as f64;
        if !self.centred {
            return self.half() as f64 / fraction;
        }
        // The quotient is off by half of 2^-shift at most, of 2^(sum + factor - 2) at most, and
        // the mean is floored.
        let product = self.sum_bits + self.root.bits()[1] - 2;
        let quotient = (1u64 << product) as f64 / (1u64 << self.quotient.1) as f64 / 2.0;
        (quotient + 1.0 + self.half() as f64) / fraction
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ring::Random;

    /// A row that is random, narrow about some value, or has one value apart.
    fn row(rng: &mut Random, cols: usize, bits: u32, kind: usize) -> Vec<i64> {
        let quarter = 1i64 << (bits - 2);
        let random = rng.uniform(cols + 2, bits - 1);
        let (at, width) = (random[cols] as i64, 1 + random[cols + 1] as i64);
        let row = random.iter().take(cols).map(|word| *word as i64);
        match kind % 3 {
            0 => row.map(|x| x - quarter).collect(),
            1 => row.map(|x| (at + x % width).min(2 * quarter - 1) - quarter).collect(),
            _ => (0..cols).map(|i| if i == 0 { at - quarter } else { -quarter }).collect(),
        }
    }

    /// Rows of two values at both ends, of two values `far` apart, and with one spike.
    fn pairs(cols: usize, bits: u32) -> impl Iterator<Item = Vec<i64>> {
        let quarter = 1i64 << (bits - 2);
        let row = move |top, far| {
            (0..cols).map(|at| if at < top { -quarter } else { far - 1 - quarter }).collect()
        };
        let halves = (0..=cols).map(move |top| row(top, 2 * quarter));
        let tops = [1, cols / 2, cols - 1];
        halves.chain((1..=2 * quarter).flat_map(move |far| tops.map(|top| row(top, far))))
    }

    fn plan(cols: usize, bits: u32, least: u32, unit: f64, out_bits: u32) -> LayerNorm {
        LayerNorm::new(cols, bits, Calibration { least, unit }, out_bits).unwrap()
    }

    #[test]
    fn errors_are_as_stated() {
        let mut rng = Random::seeded(77);
        for (cols, unit) in [(768, 16.0), (512, 16.0), (100, 31.0), (7, 31.0)] {
            let plan = plan(cols, 9, 2, unit, 10);
            let random: Vec<_> = (0..3000).map(|kind| row(&mut rng, cols, 9, kind)).collect();
            for row in random.into_iter().chain(pairs(cols, 9)) {
                assert!(plan.error(&row) <= 0.9, "{cols}: {}", plan.error(&row));
            }
        }
    }

    #[test]
    fn errors_of_wide_results_are_as_stated() {
        let mut rng = Random::seeded(82);
        for (cols, bits, least, unit, out_bits) in [
            (768, 9, 2, 8192.0, 19),
            (384, 9, 2, 100.0, 12),
            (384, 12, 4, 1000.0, 30),
            (2, 5, 1, 4.0, 6),
            (384, 16, 8, 1000.0, 40),
            (768, 9, 3, 1.0, 6),
        ] {
            let plan = plan(cols, bits, least, unit, out_bits);
            let random: Vec<_> = (0..999).map(|kind| row(&mut rng, cols, bits, kind)).collect();
            for row in random.into_iter().chain(pairs(cols, bits).step_by(7)) {
                let largest = plan.clear(&row).iter().fold(0, |all, got| got.abs().max(all));
                let bound = 0.6 + largest as f64 / 64.0;
                let bound = if plan.fraction == 0 { bound + 1.0 } else { bound };
                assert!(plan.error(&row) <= bound, "{cols} {bits} {unit}: {}", plan.error(&row));
            }
        }
    }

    #[test]
    fn errors_and_bounds_hold_where_the_mean_stays() {
        let mut rng = Random::seeded(83);
        for (cols, bits, least, unit, out_bits) in [
            (576, 13, 3, 64.0, 13),
            (512, 9, 2, 31.0, 11),
            (7, 9, 2, 31.0, 10),
            (384, 9, 2, 8192.0, 24),
        ] {
            let calibration = Calibration { least, unit };
            let plan = LayerNorm::rms(cols, bits, calibration, out_bits).unwrap();
            let random: Vec<_> = (0..999).map(|kind| row(&mut rng, cols, bits, kind)).collect();
            let ends = [vec![-(1 << (bits - 2)); cols], vec![0; cols]];
            for row in random.into_iter().chain(pairs(cols, bits).step_by(7)).chain(ends) {
                let results = plan.clear(&row);
                let largest = results.iter().fold(0, |all, got| got.abs().max(all));
                let squares: i64 = results.iter().map(|got| got * got).sum();
                assert!(plan.error(&row) <= 0.6 + largest as f64 / 64.0, "{cols} {bits} {unit}");
                assert!(largest <= plan.range()[1] && (squares as f64).sqrt() <= plan.norm());
            }
        }
    }

    #[test]
    fn fine_results_are_not_rounded_and_wide_ones_extended() {
        let fine = plan(768, 9, 2, 8192.0, 19);
        assert_eq!((fine.fraction, fine.inner, fine.element), (0, 19, 19));
        let wide = plan(768, 9, 2, 8192.0, 40);
        assert_eq!((wide.fraction, wide.inner, wide.element), (0, 20, 20));
        assert_eq!(plan(768, 9, 2, 16.0, 10).fraction, 9);
    }

    #[test]
    fn bounds_hold_for_every_row_and_are_near() {
        let mut rng = Random::seeded(80);
        for (cols, bits, least, unit, out_bits) in [
            (768, 9, 2, 16.0, 10),
            (768, 9, 2, 8192.0, 40),
            (384, 9, 2, 100.0, 12),
            (384, 12, 4, 100.0, 12),
            (2, 5, 1, 4.0, 6),
            (5, 12, 3, 100.0, 16),
            (64, 8, 0, 7.0, 8),
        ] {
            let plan = plan(cols, bits, least, unit, out_bits);
            let random: Vec<_> = (0..999).map(|kind| row(&mut rng, cols, bits, kind)).collect();
            let (mut most, mut norm) = (0, 0f64);
            for row in random.into_iter().chain(pairs(cols, bits)) {
                let results = plan.clear(&row);
                most = results.iter().map(|got| got.abs()).fold(most, i64::max);
                let squares: i64 = results.iter().map(|got| got * got).sum();
                norm = norm.max((squares as f64).sqrt());
            }
            assert!(most <= plan.range()[1] && norm <= plan.norm(), "{cols} {bits}");
            assert!(2 * plan.range()[1] < 1 << (plan.inner - 1) || plan.inner == out_bits);
            let near = plan.range()[1] as f64 <= 1.02 * most as f64 + 1.0;
            assert!(near && plan.norm() <= 1.1 * norm + 1.0, "{norm} {}", plan.norm());
        }
    }

    #[test]
    fn misfits_are_refused() {
        let new = |cols, bits, least, unit, out_bits| {
            LayerNorm::new(cols, bits, Calibration { least, unit }, out_bits).is_err()
        };
        assert!(new(768, 9, 2, 16.0, 9) && new(1, 9, 2, 1.0, 9) && new(usize::MAX, 9, 2, 1.0, 9));
        assert!(new(768, 9, 6, 16.0, 10) && new(768, 17, 2, 16.0, 10));
        assert!(new(768, 9, u32::MAX, 16.0, 10) && new(768, u32::MAX, 2, 16.0, 10));
        assert!(new(768, 9, 2, 16.0, u32::MAX) && new(768, 9, 2, f64::MAX, 24));
        assert!(
            new(768, 9, 2, -1.0, 10) && new(768, 9, 2, f64::NAN, 10) && new(768, 9, 2, 0.9, 10)
        );
        assert!(new(8192, 16, 12, 1e18, 63) && new(8192, 16, 0, 1e12, 63));
    }
}
