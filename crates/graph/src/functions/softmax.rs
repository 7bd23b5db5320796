//! Softmax over a row.
//!
//! `d = max - x` is not negative; `e^-d` has so many bits after the point that rounding
//! all of a row's leaves its sum right to half a last place of the result. Padding is
//! masked by the lowest input: it weighs `e^-d` like any other.
//!
//! Error: at most 1.3 last places up to 128 columns and 8-bit results, for ranges from 8 to
//! 32.

use super::exponent::Exponent;
use super::inverse::{Inverse, Power};
use super::real::exp_minus;
use super::refusal::{Result, is_scale};

/// Bits by which clipping has to shorten a difference, and one for the sign.
const SAVING: u32 = 3;
/// Bits of the reciprocal beyond those of the result.
const GUARD: u32 = 3;

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
    /// Bits to which differences are clipped, where that saves much: beyond, exponentials
    /// round to nothing.
    pub reach: Option<u32>,
    /// The exponential of what is below the maximum.
    pub exponent: Exponent,
    /// The reciprocal of sums of exponentials.
    pub reciprocal: Inverse,
    /// Bits after the point of exponential times reciprocal.
    pub drop: u32,
    /// Bits that hold that product and, with two to spare, sums of exponentials.
    pub width: u32,
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
        let octaves = cols.next_power_of_two().ilog2();
        let digits = [out_bits - 1 + octaves, out_bits - 1];
        let one = digits[0] + digits[1];
        let drop = one + GUARD;
        let peak = (((1u64 << (out_bits - 1)) - 1) << GUARD) as f64;
        let sums = [one, octaves + 1];
        let nothing = f64::from(digits[0] + 1) * std::f64::consts::LN_2 / scale;
        let reach =
            (4..bits.saturating_sub(SAVING)).find(|k| f64::from((1u32 << k) - 1) >= nothing);
        let argument = reach.unwrap_or(bits - 1);
        Ok(Self {
            reach,
            cols,
            bits,
            scale,
            out_bits,
            exponent: Exponent::new(argument, scale, digits)?,
            reciprocal: Inverse::new(Power::Reciprocal, sums, peak, GUARD + out_bits)?,
            drop,
            width: (drop + out_bits).max(one + octaves + 2),
        })
    }

    /// How much values of a row may differ.
    pub fn span(&self) -> i64 {
        (1 << (self.bits - 1)) - self.reach.map_or(1, |reach| 1 << reach)
    }

    /// Returns half a last place of the result.
    pub fn half(&self) -> i64 {
        1 << (self.drop - 1)
    }

    /// Returns the results for one row.
    pub fn clear(&self, row: &[i64]) -> Vec<i64> {
        let largest = row.iter().copied().max().unwrap_or(0);
        let most = (1i64 << self.exponent.bits) - 1;
        let below = |x: &i64| (largest - x).min(most);
        let powers: Vec<i64> = row.iter().map(|x| self.exponent.clear(below(x))).collect();
        let factor = self.reciprocal.clear(powers.iter().sum());
        powers.iter().map(|power| (power * factor + self.half()) >> self.drop).collect()
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
        // No exponential is larger than 1, no factor than the reciprocal's largest.
        let [whole, part] = self.exponent.digits;
        let one = 1i64 << (whole + part);
        [0, (one * self.reciprocal.most() + self.half()) >> self.drop]
    }

    /// Returns a bound on the sum of a row's results.
    pub fn row_sum(&self) -> i64 {
        // Before rounding, results add up to sum times reciprocal. Rounding adds a half to
        // each at most, and none where that is less than a half: it doubles them at most.
        let exact = self.reciprocal.most_weighted() / (1u64 << self.drop) as f64;
        let rounded = (exact + self.cols as f64 / 2.0).min(2.0 * exact);
        (rounded as i64).min(self.cols as i64 * self.range()[1])
    }
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
