//! Softmax over the rows of a matrix.
//!
//! | | |
//! |---|---|
//! | In | shares of x mod 2^bits, `-2^(bits-2) <= x < 2^(bits-2)` in steps of `scale`, rows of equal length; correlations |
//! | Out | shares of about `(2^(out_bits-1) - 1) * softmax(x*scale)` mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a maximum, an exponential, a product with the row's reciprocal and a truncation per element; a reciprocal per row ([`Softmax::cost`]) |
//! | Error | at most 1.3 last places up to 128 columns and 8-bit results, for ranges from 8 to 32 |
//! | Paper | Rathee et al., SiRNN (S&P 2021), for exponential and reciprocal |
//!
//! `d = max - x` is not negative; `e^-d` has so many bits after the point that rounding
//! all of a row's leaves its sum right to half a last place of the result. Padding is
//! masked by the lowest input: it weighs `e^-d` like any other.

use wire::{Channel, Cost, Error, Result};

use super::exponent::{self, Exponent};
use super::inverse::{self, Inverse, Power};
use super::real::exp_minus;
use super::rows::{self, Rows};
use crate::compare::Radix;
use crate::maximum::{self, Maximum, Tournament};
use crate::pads::{Need, Pads};
use crate::share::Share;
use crate::truncate::{self, Truncate};

/// Bits of the reciprocal beyond those of the result.
const GUARD: u32 = 3;

/// The public plan of one layer.
#[derive(Clone, Debug)]
pub struct Softmax {
    rows: usize,
    cols: usize,
    bits: u32,
    scale: f64,
    out_bits: u32,
    maximum: Maximum,
    exponent: Exponent,
    reciprocal: Inverse,
    product: Rows,
    /// Bits after the point of the product.
    drop: u32,
    rounding: Truncate,
}

impl Softmax {
    /// `rows` of `cols` (2 to 4096) values of `bits` (5 to 12), one last place being
    /// `scale`, to results of `out_bits` (4 to 12).
    ///
    /// # Errors
    /// [`Error::Misuse`] for other sizes, and for a scale that is not a positive number.
    pub fn new(
        [rows, cols]: [usize; 2],
        bits: u32,
        scale: f64,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let widths = (5..=12).contains(&bits) && (4..=12).contains(&out_bits);
        let count = rows.checked_mul(cols).filter(|_| (2..=4096).contains(&cols));
        let (Some(count), true) = (count, widths && scale.is_normal() && scale > 0.0) else {
            return Err(Error::misuse("a softmax of these sizes"));
        };
        let octaves = cols.next_power_of_two().ilog2();
        let digits = [out_bits - 1 + octaves, out_bits - 1];
        let one = digits[0] + digits[1];
        let drop = one + GUARD;
        let width = (drop + out_bits).max(one + octaves + 2);
        let windows: Vec<Vec<usize>> =
            (0..rows).map(|row| (row * cols..(row + 1) * cols).collect()).collect();
        let peak = (((1u64 << (out_bits - 1)) - 1) << GUARD) as f64;
        let factor_bits = GUARD + out_bits;
        Ok(Self {
            rows,
            cols,
            bits,
            scale,
            out_bits,
            maximum: Maximum::new(Tournament::new(count, &windows)?, bits, None, radix)?,
            exponent: Exponent::new(count, bits - 1, scale, digits, width, radix)?,
            reciprocal: Inverse::new(
                rows,
                Power::Reciprocal,
                [one, octaves + 1],
                peak,
                factor_bits,
                radix,
            )?,
            product: Rows::new(rows, cols, width, factor_bits)?,
            drop,
            rounding: Truncate::new(count, width, drop, out_bits, radix)?,
        })
    }

    /// Values in each row.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Correlations consumed.
    pub fn need(&self) -> Need {
        let exponents = self.maximum.need() + self.exponent.need();
        exponents + self.reciprocal.need() + self.product.need() + self.rounding.need()
    }

    /// What [`run`] costs.
    pub fn cost(&self) -> Cost {
        let exponents = self.maximum.cost().then(self.exponent.cost());
        let factors = exponents.then(self.reciprocal.cost());
        factors.then(self.product.cost()).then(self.rounding.cost())
    }

    /// The result for one row in the clear, bit for bit.
    pub fn clear(&self, row: &[i64]) -> Vec<i64> {
        let largest = row.iter().copied().max().unwrap_or(0);
        let powers: Vec<i64> = row.iter().map(|x| self.exponent.clear(largest - x)).collect();
        let factor = self.reciprocal.clear(powers.iter().sum());
        powers.iter().map(|power| (power * factor + self.half()) >> self.drop).collect()
    }

    /// The largest distance of [`Softmax::clear`] from the real function on one row, in
    /// last places.
    pub fn error(&self, row: &[i64]) -> f64 {
        let largest = row.iter().copied().max().unwrap_or(0);
        let power = |x: &i64| exp_minus((largest - x) as f64 * self.scale);
        let one = ((1u64 << (self.out_bits - 1)) - 1) as f64 / row.iter().map(power).sum::<f64>();
        let pairs = row.iter().zip(self.clear(row));
        pairs.map(|(x, got)| (got as f64 - one * power(x)).abs()).fold(0.0, f64::max)
    }

    fn half(&self) -> i64 {
        1 << (self.drop - 1)
    }

    /// How far each value is below the maximum of its row.
    fn below(&self, x: &Share, largest: &Share) -> Result<Share> {
        let mut below = Vec::with_capacity(x.len());
        for (row, top) in x.words().chunks(self.cols).zip(largest.words()) {
            below.extend(row.iter().map(|x| top.wrapping_sub(*x)));
        }
        Share::new(below, self.bits).narrow(self.bits - 1)
    }

    fn sums(&self, powers: &Share) -> Share {
        let rows = powers.words().chunks(self.cols);
        let sum = |row: &[u64]| row.iter().fold(0u64, |sum, power| sum.wrapping_add(*power));
        Share::new(rows.map(sum).collect(), self.reciprocal.bits())
    }
}

/// Runs the layer.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Softmax, x: &Share, mut pads: Pads) -> Result<Share> {
    x.check(plan.rows * plan.cols, plan.bits, "softmax")?;
    let role = channel.role();
    let now = pads.split(role, &plan.maximum.need())?;
    let largest = maximum::run(channel, &plan.maximum, x, None, now)?.pop();
    let largest = largest.ok_or_else(|| Error::misuse("a maximum without output"))?;
    let now = pads.split(role, &plan.exponent.need())?;
    let powers = exponent::run(channel, &plan.exponent, &plan.below(x, &largest)?, now)?;
    let now = pads.split(role, &plan.reciprocal.need())?;
    let factors = inverse::run(channel, &plan.reciprocal, &plan.sums(&powers), now)?;
    let now = pads.split(role, &plan.product.need())?;
    let shares = rows::run(channel, &plan.product, &powers, &factors, now)?;
    truncate::run(channel, &plan.rounding, &shares.plus(role, plan.half()), pads)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{both, split};
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

    #[test]
    fn rows_come_out_as_in_the_clear() {
        let mut rng = Random::seeded(74);
        for (cols, bits, scale, out_bits, radix) in [
            (128, 9, 0.125, 8, Radix::Sixteen),
            (2, 5, 1.0, 4, Radix::Four),
            (5, 12, 0.02, 12, Radix::Four),
            (33, 8, 0.3, 8, Radix::Two),
        ] {
            let values: Vec<i64> =
                (0..12).flat_map(|kind| row(&mut rng, cols, bits, kind)).collect();
            let plan = Softmax::new([12, cols], bits, scale, out_bits, radix).unwrap();
            let (client, server) = split(&mut rng, &values, bits);
            let (c, s) = both(
                &mut rng,
                &plan.need(),
                |ch, pads| run(ch, &plan, &client, pads),
                |ch, pads| run(ch, &plan, &server, pads),
            );
            assert_eq!(c.cost, plan.cost());
            let got = Share::reconstruct(&c.value.unwrap(), &s.value.unwrap());
            let want: Vec<i64> = values.chunks(cols).flat_map(|row| plan.clear(row)).collect();
            assert_eq!(got, want, "{cols} {bits}");
        }
    }

    #[test]
    fn errors_are_as_stated() {
        let mut rng = Random::seeded(75);
        for (cols, range) in [(128, 8.0), (128, 16.0), (128, 32.0), (16, 16.0), (2, 16.0)] {
            let plan = Softmax::new([1, cols], 9, range / 128.0, 8, Radix::Four).unwrap();
            let mut worst: f64 = 0.0;
            for kind in 0..3000 {
                worst = worst.max(plan.error(&row(&mut rng, cols, 9, kind)));
            }
            for (top, far) in (1..cols).flat_map(|top| (0..256).map(move |far| (top, far))) {
                let pair: Vec<i64> =
                    (0..cols).map(|at| if at < top { 127 } else { 127 - far }).collect();
                worst = worst.max(plan.error(&pair));
            }
            assert!(worst <= 1.3, "{cols} {range}: {worst}");
        }
    }

    #[test]
    fn misfits_are_refused() {
        let new =
            |sizes, bits, scale, out_bits| Softmax::new(sizes, bits, scale, out_bits, Radix::Four);
        assert!(new([1, 1], 9, 0.1, 8).is_err() && new([1, 5000], 9, 0.1, 8).is_err());
        assert!(new([1, 9], 4, 0.1, 8).is_err() && new([1, 9], 13, 0.1, 8).is_err());
        assert!(new([1, 9], 9, 0.1, 3).is_err() && new([1, 9], 9, 0.1, 13).is_err());
        assert!(new([usize::MAX, 9], 9, 0.1, 8).is_err() && new([1, 9], 9, f64::NAN, 8).is_err());
    }
}
