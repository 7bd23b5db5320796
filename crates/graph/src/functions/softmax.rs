//! Softmax over a row.
//!
//! `d = max - x` is not negative. A table has `e^-d` with so many bits that rounding all of a
//! row's leaves its sum right to within a last place of the result, and fewer of them go into
//! the product with the sum's reciprocal. Padding is masked by the lowest input: it weighs
//! `e^-d` like any other.
//!
//! Where all values of a row are near a public bound of theirs, that takes the maximum's place:
//! no sum of theirs is so small that precision is lost.
//!
//! Error: at most 1.3 last places up to 128 columns and 8-bit results, for ranges from 8 to
//! 32.

use super::exponent::Exponent;
use super::inverse::{Inverse, Power};
use super::real::exp_minus;
use super::refusal::{Result, is_scale};

/// How exactly a function computes.
#[derive(Clone, Copy)]
struct Precision {
    /// Bits of the reciprocal beyond those of the result.
    guard: u32,
    /// Last places of the result by which the rounding of its own exponential may move it.
    own: f64,
}

const USUAL: Precision = Precision { guard: 1, own: 0.25 };
/// Sums of results stay within what models without a bound of scores have room for.
const PRECISE: Precision = Precision { guard: 4, own: 1.0 / 64.0 };
/// Last places of the result by which the rounding of all of a row's exponentials may move one.
const SUMS: f64 = 0.8;
/// Bits of the widest entry of a table.
const ENTRY: u32 = 30;

/// About `(2^(out_bits-1) - 1) * softmax(x*scale)` for rows of values that differ by
/// [`Softmax::span`] at most.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Softmax {
    /// Values in each row.
    pub cols: usize,
    /// Width of inputs, with a bit to spare.
    pub bits: u32,
    /// The value of one last place of the input.
    pub scale: f64,
    /// Width of results.
    pub out_bits: u32,
    /// The public bound that no value is above, where it takes the maximum's place.
    pub top: Option<i64>,
    /// The exponential of what is below the maximum or the bound.
    pub exponent: Exponent,
    /// The reciprocal of sums of exponentials.
    pub reciprocal: Inverse,
    /// Width that holds the reciprocals of all sums that there are.
    pub factor_bits: u32,
    /// Bits after the point of exponential times reciprocal.
    pub drop: u32,
    /// Width that holds all results, with a bit that tells that none is negative; at most
    /// `out_bits`.
    pub inner: u32,
}

impl Softmax {
    /// Rows of `cols` (2 to 8192) values of `bits` (5 to 12), one last place being
    /// `scale`, to results of `out_bits` (4 to 12).
    ///
    /// # Errors
    /// For other sizes, and for a scale that is not a positive number.
    pub fn new(cols: usize, bits: u32, scale: f64, out_bits: u32) -> Result<Self> {
        Self::of([cols, bits as usize], scale, out_bits, (None, USUAL))
    }

    /// Derives the function with smaller sums of a row's results, for model files that were
    /// compiled with those.
    ///
    /// # Errors
    /// The errors of [`Softmax::new`].
    pub fn precise(cols: usize, bits: u32, scale: f64, out_bits: u32) -> Result<Self> {
        Self::of([cols, bits as usize], scale, out_bits, (None, PRECISE))
    }

    /// Says whether a row's values are so near a bound of theirs that it can take the maximum's
    /// place: exponentials have a bit more at most.
    pub fn is_near(cols: usize, bits: u32, scale: f64) -> bool {
        let farthest = ((1u64 << bits.saturating_sub(1).min(63)) - 1) as f64;
        cols as f64 * exp_minus(farthest * scale) >= 0.5
    }

    /// Derives the function of rows none of whose values is above `top` or more than
    /// [`Softmax::span`] below it, so that no maximum is needed.
    ///
    /// # Errors
    /// The errors of [`Softmax::new`], and one where exponentials so far below `top` need more
    /// bits than there are.
    pub fn below(top: i64, cols: usize, bits: u32, scale: f64, out_bits: u32) -> Result<Self> {
        Self::of([cols, bits as usize], scale, out_bits, (Some(top), USUAL))
    }

    fn of(
        [cols, bits]: [usize; 2],
        scale: f64,
        out_bits: u32,
        (top, precision): (Option<i64>, Precision),
    ) -> Result<Self> {
        let bits = u32::try_from(bits).unwrap_or(u32::MAX);
        let widths = (5..=12).contains(&bits) && (4..=12).contains(&out_bits);
        if !widths || !(2..=8192).contains(&cols) || !is_scale(scale) {
            return Err("a softmax of these sizes".into());
        }
        let peak = ((1u64 << (out_bits - 1)) - 1) as f64;
        let farthest = exp_minus(((1u64 << (bits - 1)) - 1) as f64 * scale);
        let least = cols as f64 * farthest + if top.is_none() { 1.0 - farthest } else { 0.0 };
        let upper = needed(peak / 2.0 / least / precision.own)?;
        let whole = needed(peak * cols as f64 / 2.0 / (least * least.max(1.0)) / SUMS)?;
        let lower = whole.max(upper + 1) - upper;
        let exponent = Exponent::new(bits - 1, scale, [upper, lower])?;
        let drop = upper + precision.guard;
        let least = least_sum(&exponent, cols, top);
        let low = least.ilog2();
        let octaves = ((cols as i64 * exponent.one()).ilog2() + 1 - low).max(2);
        let scaled = peak * (1u64 << (drop + lower)) as f64 / (1u64 << low) as f64;
        let out = (scaled.max(2.0) as u64).ilog2() + 2;
        let reciprocal = Inverse::new(Power::Reciprocal, [low, octaves], scaled, out)?;
        let factor_bits = largest(&reciprocal, least).max(1).ilog2() + 2;
        let mut plan = Self {
            cols,
            bits,
            scale,
            out_bits,
            top,
            exponent,
            reciprocal,
            factor_bits,
            drop,
            inner: out_bits,
        };
        plan.inner = (plan.range()[1].max(1).ilog2() + 2).min(out_bits);
        Ok(plan)
    }

    /// Returns how much values of a row may differ.
    pub fn span(&self) -> i64 {
        (1 << (self.bits - 1)) - 1
    }

    /// Returns half a last place of the result.
    pub fn half(&self) -> i64 {
        1 << (self.drop - 1)
    }

    /// Returns the width that holds exponential times reciprocal.
    pub fn width(&self) -> u32 {
        (self.drop + self.inner).max(self.factor_bits)
    }

    /// Returns the results for one row.
    pub fn clear(&self, row: &[i64]) -> Vec<i64> {
        let largest = self.top.or(row.iter().copied().max()).unwrap_or(0);
        let below = |x: &i64| (largest - x).min(self.span());
        let sum = row.iter().map(|x| self.exponent.clear(below(x))).sum();
        let factor = self.reciprocal.clear(sum);
        row.iter().map(|x| self.result(self.exponent.rounded(below(x)), factor)).collect()
    }

    /// Returns the largest distance of [`Softmax::clear`] from the real function on one row, in
    /// last places.
    pub fn error(&self, row: &[i64]) -> f64 {
        let largest = row.iter().copied().max().unwrap_or(0);
        let power = |x: &i64| exp_minus((largest - x) as f64 * self.scale);
        let one = self.peak() as f64 / row.iter().map(power).sum::<f64>();
        let pairs = row.iter().zip(self.clear(row));
        pairs.map(|(x, got)| (got as f64 - one * power(x)).abs()).fold(0.0, f64::max)
    }

    /// Returns the integer that stands for a probability of 1.
    pub fn peak(&self) -> i64 {
        (1 << (self.out_bits - 1)) - 1
    }

    /// Returns bounds on all results.
    pub fn range(&self) -> [i64; 2] {
        let Self { exponent, cols, top, .. } = self;
        // The largest value and the least of all others; without a maximum any value.
        let farthest = exponent.clear(self.span());
        let values = 0..=if top.is_none() { 0 } else { self.span() };
        let sums = values.clone().map(|d| exponent.clear(d) + (*cols as i64 - 1) * farthest);
        let factors = self.reciprocal.most_from(&sums.collect::<Vec<_>>());
        let results = values.zip(factors).map(|(d, most)| self.result(exponent.rounded(d), most));
        [0, results.fold(0, i64::max)]
    }

    /// The largest reciprocal of a row's sum.
    fn most(&self) -> i64 {
        largest(&self.reciprocal, least_sum(&self.exponent, self.cols, self.top))
    }

    /// Returns a bound on the sum of a row's results.
    pub fn row_sum(&self) -> i64 {
        (self.sum_by_roundings().min(self.sum_by_parts()) as i64)
            .min(self.cols as i64 * self.range()[1])
    }

    /// A bound on a row's sum: exponentials add up to the sum before their lower bits are
    /// dropped, which adds half a step to each at most, and rounding results adds a half.
    fn sum_by_roundings(&self) -> f64 {
        let (one, cols) = ((1u64 << self.drop) as f64, self.cols as f64);
        let exact = self.reciprocal.most_weighted() / (1u64 << self.exponent.lower) as f64 / one;
        exact + cols / 2.0 + cols / 2.0 * self.most() as f64 / one
    }

    /// Another: results add up to the sum of exponentials times the largest part that one is of
    /// its own, which depends on the reciprocal.
    fn sum_by_parts(&self) -> f64 {
        let one = self.reciprocal.most_weight(1);
        let all = self.cols as f64 * self.exponent.one() as f64;
        let powers = self.least_powers();
        let total = |factor: i64| {
            let result = |rounded| self.result(rounded, factor) as f64;
            let parts = powers.iter().map(|(rounded, power)| result(*rounded) / *power as f64);
            parts.fold(0.0, f64::max) * (one / (2 * factor - 1) as f64).min(all)
        };
        (1..=self.most()).map(total).fold(0.0, f64::max) * (1.0 + 1e-12)
    }

    /// The exponentials that products take, but zero, each with the least of which it is made.
    fn least_powers(&self) -> Vec<(i64, i64)> {
        let mut powers: Vec<(i64, i64)> = Vec::new();
        for d in (0..=self.span()).take_while(|d| self.exponent.rounded(*d) > 0) {
            let power = (self.exponent.rounded(d), self.exponent.clear(d));
            match powers.last_mut() {
                Some(last) if last.0 == power.0 => *last = power,
                _ => powers.push(power),
            }
        }
        powers
    }

    /// The result for an exponential and a reciprocal.
    fn result(&self, rounded: i64, factor: i64) -> i64 {
        (rounded * factor + self.half()) >> self.drop
    }
}

/// The bits with which a last place is at most 1 of so many.
fn needed(places: f64) -> Result<u32> {
    match places <= (1u64 << ENTRY) as f64 {
        true => Ok((places.max(2.0).ceil() as u64).next_power_of_two().ilog2()),
        false => Err("a softmax of values that are too far below their bound".into()),
    }
}

/// The largest reciprocal of sums from `least` on.
fn largest(reciprocal: &Inverse, least: i64) -> i64 {
    reciprocal.most_from(&[least]).into_iter().fold(0, i64::max)
}

/// The least sum of a row: of values that are all as far below as there are, but the largest
/// where there is no bound.
fn least_sum(exponent: &Exponent, cols: usize, top: Option<i64>) -> i64 {
    let farthest = exponent.clear((1 << exponent.bits) - 1);
    let largest = if top.is_none() { exponent.one() } else { farthest };
    (largest + (cols as i64 - 1) * farthest).max(1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ring::Random;

    /// A row with a few values at the top and the rest at a distance, or random ones.
    fn row(rng: &mut Random, cols: usize, bits: u32, kind: usize) -> Vec<i64> {
        let quarter = 1i64 << (bits - 2);
        let random = rng.uniform(cols, bits - 1);
        match kind % 3 {
            0 => random.iter().map(|word| *word as i64 - quarter).collect(),
            1 => random.iter().map(|word| -(*word as i64 % (quarter / 4).max(1))).collect(),
            _ => {
                let (top, far) = (random[0] as usize % cols, random[1] as i64);
                let value = |at| if at <= top { quarter - 1 } else { quarter - 1 - far };
                (0..cols).map(value).collect()
            }
        }
    }

    /// Rows of `top` values at the upper end and the others `far` below.
    fn pairs(cols: usize, bits: u32) -> impl Iterator<Item = Vec<i64>> {
        let quarter = 1i64 << (bits - 2);
        let row = move |top, far| {
            (0..cols).map(|at| if at < top { quarter - 1 } else { quarter - 1 - far }).collect()
        };
        (1..=cols).flat_map(move |top| (0..2 * quarter).map(move |far| row(top, far)))
    }

    #[test]
    fn errors_are_as_stated() {
        let mut rng = Random::seeded(75);
        for (cols, range) in [(128, 8.0), (128, 16.0), (128, 32.0), (16, 16.0), (2, 16.0)] {
            let plan = Softmax::new(cols, 9, range / 128.0, 8).unwrap();
            let random: Vec<_> = (0..3000).map(|kind| row(&mut rng, cols, 9, kind)).collect();
            let worst = random.into_iter().chain(pairs(cols, 9)).map(|row| plan.error(&row));
            let worst = worst.fold(0.0, f64::max);
            assert!(worst <= 1.3, "{cols} {range}: {worst}");
        }
    }

    #[test]
    fn precise_rows_are_more_exact_and_add_up_to_less() {
        let mut rng = Random::seeded(78);
        for (cols, bits, scale) in [(197, 6, 0.114), (128, 9, 0.125), (2, 9, 0.125), (6625, 9, 0.1)]
        {
            let plan = Softmax::precise(cols, bits, scale, 8).unwrap();
            let errors = (0..200).map(|kind| plan.error(&row(&mut rng, cols, bits, kind)));
            let worst = errors.fold(0.0, f64::max);
            assert!(worst <= 1.0, "{cols} {bits}: {worst}");
            // What earlier versions said, with three bits of guard.
            let earlier = 127.0 * 1.0001 + cols as f64 / 16.0 + cols as f64 / 2.0;
            assert!(plan.row_sum() <= earlier as i64, "{cols} {bits}: {}", plan.row_sum());
            assert!(plan.range()[1] <= 127);
        }
    }

    #[test]
    fn rows_below_a_bound_are_as_exact() {
        let mut rng = Random::seeded(77);
        for (cols, bits, scale) in [(197, 6, 0.114), (128, 6, 0.13), (2, 5, 0.2), (16, 9, 0.015)] {
            let quarter = 1i64 << (bits - 2);
            let plan = Softmax::below(quarter - 1, cols, bits, scale, 8).unwrap();
            let random: Vec<_> = (0..3000).map(|kind| row(&mut rng, cols, bits, kind)).collect();
            let lower = |row: &Vec<i64>| row.iter().map(|x| (x - 9).max(-quarter)).collect();
            let lowered: Vec<Vec<i64>> = random.iter().map(lower).collect();
            let ([_, most], total) = (plan.range(), plan.row_sum());
            let mut worst = 0.0f64;
            for row in random.into_iter().chain(lowered).chain(pairs(cols, bits)) {
                worst = worst.max(plan.error(&row));
                let results = plan.clear(&row);
                assert!(results.iter().all(|got| (0..=most).contains(got)), "{cols} {bits}");
                assert!(results.iter().sum::<i64>() <= total, "{cols} {bits}");
            }
            assert!(worst <= 1.3, "{cols} {bits}: {worst}");
        }
    }

    #[test]
    fn rows_of_a_large_alphabet_are_as_exact() {
        let mut rng = Random::seeded(76);
        let plan = Softmax::new(6625, 9, 16.0 / 128.0, 8).unwrap();
        let errors = (0..200).map(|kind| plan.error(&row(&mut rng, 6625, 9, kind)));
        let worst = errors.fold(0.0, f64::max);
        assert!(worst <= 1.3, "{worst}");
    }

    #[test]
    fn bounds_hold_for_every_row() {
        let mut rng = Random::seeded(79);
        for (cols, bits, scale, out_bits) in [
            (2, 5, 1.0, 4),
            (33, 8, 0.3, 8),
            (128, 8, 0.125, 8),
            (300, 7, 0.2, 4),
            (5, 12, 0.02, 12),
        ] {
            let plan = Softmax::new(cols, bits, scale, out_bits).unwrap();
            let ([least, most], total) = (plan.range(), plan.row_sum());
            let random: Vec<_> = (0..999).map(|kind| row(&mut rng, cols, bits, kind)).collect();
            let mut largest = 0;
            for row in random.into_iter().chain(pairs(cols, bits)) {
                let results = plan.clear(&row);
                assert!(results.iter().all(|got| (least..=most).contains(got)), "{cols}");
                largest = largest.max(results.iter().sum());
                assert!(largest <= total, "{cols}: {largest} {total}");
            }
            // Roundings of results and exponentials that all go the same way need ranks that few
            // scales have.
            assert!(total <= largest + 3 * cols as i64 / 4 + 2, "{cols}: {largest} {total}");
            assert!(least == 0);
        }
    }

    #[test]
    fn no_result_is_above_a_probability_of_one() {
        for (octave, out_bits) in (1..=13).flat_map(|octave| (4..=12).map(move |b| (octave, b))) {
            let plan = Softmax::new(1 << octave, 9, 0.1, out_bits).unwrap();
            assert_eq!(plan.range(), [0, plan.peak()], "{octave} {out_bits}");
        }
    }

    #[test]
    fn misfits_are_refused() {
        let new = |cols, bits, scale, out_bits| Softmax::new(cols, bits, scale, out_bits).is_err();
        assert!(new(1, 9, 0.1, 8) && new(9000, 9, 0.1, 8) && new(usize::MAX, 9, 0.1, 8));
        assert!(new(9, 4, 0.1, 8) && new(9, 13, 0.1, 8) && new(9, u32::MAX, 0.1, 8));
        assert!(new(9, 9, 0.1, 3) && new(9, 9, 0.1, 13) && new(9, 9, 0.1, u32::MAX));
        assert!(Softmax::below(0, 9, 12, 1.0, 8).is_err());
        assert!(new(9, 9, f64::NAN, 8) && new(9, 9, 0.0, 8) && new(9, 9, -0.1, 8));
    }
}
