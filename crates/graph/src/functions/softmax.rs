//! Softmax over a row.
//!
//! `d = max - x` is not negative. A table has `e^-d` with so many bits that rounding all of a
//! row's leaves its sum right to within a last place of the result, and fewer of them go into
//! the product with the sum's reciprocal. Padding is masked by the lowest input: it weighs
//! `e^-d` like any other.
//!
//! Error: at most 1.3 last places up to 128 columns and 8-bit results, for ranges from 8 to
//! 32.

use super::exponent::Exponent;
use super::inverse::{Inverse, Power};
use super::real::exp_minus;
use super::refusal::{Result, is_scale};

/// Bits of the reciprocal beyond those of the result.
const GUARD: u32 = 2;
/// Last places of the result by which the rounding of all of a row's exponentials may move one.
const SUMS: f64 = 0.8;
/// Last places of the result by which the rounding of its own exponential may move it.
const OWN: f64 = 0.25;
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
    /// The exponential of what is below the maximum.
    pub exponent: Exponent,
    /// The reciprocal of sums of exponentials.
    pub reciprocal: Inverse,
    /// Width that holds the reciprocals of all sums that there are.
    pub factor_bits: u32,
    /// Bits after the point of exponential times reciprocal.
    pub drop: u32,
}

impl Softmax {
    /// Rows of `cols` (2 to 8192) values of `bits` (5 to 12), one last place being
    /// `scale`, to results of `out_bits` (4 to 12).
    ///
    /// # Errors
    /// For other sizes, and for a scale that is not a positive number.
    pub fn new(cols: usize, bits: u32, scale: f64, out_bits: u32) -> Result<Self> {
        let widths = (5..=12).contains(&bits) && (4..=12).contains(&out_bits);
        if !widths || !(2..=8192).contains(&cols) || !is_scale(scale) {
            return Err("a softmax of these sizes".into());
        }
        let peak = ((1u64 << (out_bits - 1)) - 1) as f64;
        let farthest = exp_minus(((1u64 << (bits - 1)) - 1) as f64 * scale);
        let least = 1.0 + (cols - 1) as f64 * farthest;
        let upper = needed(peak / 2.0 / least / OWN);
        let whole = needed(peak * cols as f64 / 2.0 / (least * least) / SUMS);
        let lower = whole.max(upper + 1) - upper;
        let exponent = Exponent::new(bits - 1, scale, [upper, lower])?;
        let drop = upper + GUARD;
        let least = least_sum(&exponent, cols);
        let low = least.ilog2();
        let octaves = ((cols as i64 * exponent.one()).ilog2() + 1 - low).max(2);
        let scaled = peak * (1u64 << (drop + lower)) as f64 / (1u64 << low) as f64;
        let out = (scaled.max(2.0) as u64).ilog2() + 2;
        let reciprocal = Inverse::new(Power::Reciprocal, [low, octaves], scaled, out)?;
        let factor_bits = reciprocal.most_from(least).max(1).ilog2() + 2;
        Ok(Self { cols, bits, scale, out_bits, exponent, reciprocal, factor_bits, drop })
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
        (self.drop + self.out_bits).max(self.factor_bits)
    }

    /// Returns the results for one row.
    pub fn clear(&self, row: &[i64]) -> Vec<i64> {
        let largest = row.iter().copied().max().unwrap_or(0);
        let below = |x: &i64| (largest - x).min(self.span());
        let sum = row.iter().map(|x| self.exponent.clear(below(x))).sum();
        let factor = self.reciprocal.clear(sum);
        let result = |x| (self.exponent.rounded(below(x)) * factor + self.half()) >> self.drop;
        row.iter().map(result).collect()
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
        [0, (self.exponent.rounded(0) * self.most() + self.half()) >> self.drop]
    }

    /// The largest reciprocal of a row's sum.
    fn most(&self) -> i64 {
        self.reciprocal.most_from(least_sum(&self.exponent, self.cols))
    }

    /// Returns a bound on the sum of a row's results.
    pub fn row_sum(&self) -> i64 {
        // Exponentials add up to the sum before their lower bits are dropped, which adds half a
        // step to each at most, and rounding results adds a half.
        let (one, cols) = ((1u64 << self.drop) as f64, self.cols as f64);
        let exact = self.reciprocal.most_weighted() / (1u64 << self.exponent.lower) as f64 / one;
        let every = cols / 2.0 + cols / 2.0 * self.most() as f64 / one;
        // A result is not zero only where its exponential is so many steps that it is a half
        // at least: those were made larger by half a step of these at most, then doubled at most.
        let steps = ((self.half() + self.most() - 1) / self.most()).max(1) as f64;
        let rounded = (exact + every).min(2.0 * exact * (1.0 + 0.5 / (steps - 0.5)));
        (rounded as i64).min(self.cols as i64 * self.range()[1])
    }
}

/// The bits with which a last place is at most 1 of so many.
fn needed(places: f64) -> u32 {
    (places.max(1.0).ceil() as u64).next_power_of_two().ilog2().clamp(1, ENTRY)
}

/// The least sum of a row: of the largest value and others as far below as there are.
fn least_sum(exponent: &Exponent, cols: usize) -> i64 {
    let farthest = exponent.clear((1 << exponent.bits) - 1);
    exponent.one() + (cols as i64 - 1) * farthest
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
    fn rows_of_a_large_alphabet_are_as_exact() {
        let mut rng = Random::seeded(76);
        let plan = Softmax::new(6625, 9, 16.0 / 128.0, 8).unwrap();
        let rows = (0..200).map(|kind| row(&mut rng, 6625, 9, kind));
        let worst = rows.map(|row| plan.error(&row)).fold(0.0, f64::max);
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
            // Roundings that all go the same way need ranks that few scales have.
            assert!(total <= largest + cols as i64 / 2 + 2, "{cols}: {largest} {total}");
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
        assert!(new(9, 9, f64::NAN, 8) && new(9, 9, 0.0, 8) && new(9, 9, -0.1, 8));
    }
}
