//! Normalisation of rows to mean 0 and deviation 1.
//!
//! | | |
//! |---|---|
//! | In | shares of x mod 2^bits, `-2^(bits-2) <= x < 2^(bits-2)`, rows of equal length; correlations |
//! | Out | shares of about `unit * (x - mean)/max(deviation, least)` mod 2^out_bits, mean and deviation of x's row |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a square, an extension, a product with the row's factor and a truncation per element, signs known; an inverse root and two products per row ([`LayerNorm::cost`]) |
//! | Error | at most 0.9 last places for 9-bit shares of up to 768 columns |
//! | Paper | Rathee et al., SiRNN (S&P 2021), inverse root by normalisation and a table |
//!
//! With `s = sum x` and `v = n*sum x^2 - s^2 = (n*deviation)^2`, of x moved above zero, the
//! result is `x*f - s*f/n` for `f = unit*n/sqrt(v)`. The scale of x cancels, so there is none.
//! Scaling by gamma and moving by beta are left to the linear layer that follows.

use wire::{Channel, Cost, Error, Result};

use super::inverse::{self, Inverse, Power};
use super::rows::{self, Rows};
use crate::compare::Radix;
use crate::extend::{self, Extend, Sign};
use crate::multiply::{self, Factor, Multiply};
use crate::pads::{Need, Pads};
use crate::share::Share;
use crate::square::{self, Square};
use crate::truncate::{self, Truncate};

/// Bits of the quotient by n beyond those that count.
const GUARD: u32 = 6;

/// What is known of the rows, and what is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Deviations below about 2^least last places are taken for that.
    pub least: u32,
    /// Last places of a result of 1.
    pub unit: f64,
}

/// The public plan of one layer.
#[derive(Clone, Debug)]
pub struct LayerNorm {
    rows: usize,
    cols: usize,
    bits: u32,
    calibration: Calibration,
    /// Bits after the point of the product with the factor.
    fraction: u32,
    /// Width of sums.
    sum_bits: u32,
    /// 2^shift/cols, and shift.
    quotient: (i64, u32),
    wide: Extend,
    squares: Square,
    /// Of the sums of squares, where they are needed wider.
    sum: Option<Extend>,
    squared: Square,
    root: Inverse,
    shifted: Multiply,
    mean: Truncate,
    product: Rows,
    rounding: Truncate,
}

impl LayerNorm {
    /// `rows` of `cols` (2 to 8192) values of `bits` (5 to 16) to results of `out_bits`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other sizes, for a least deviation above a quarter of the
    /// largest, and where `unit*sqrt(cols)` does not fit into the result.
    pub fn new(
        [rows, cols]: [usize; 2],
        bits: u32,
        calibration: Calibration,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let Calibration { least, unit } = calibration;
        let count = rows.checked_mul(cols).filter(|_| (2..=8192).contains(&cols));
        let widths = (5..=16).contains(&bits) && (3..=24).contains(&out_bits);
        let (Some(count), true) = (count, widths && least + 4 <= bits && unit.is_normal()) else {
            return Err(Error::misuse("a layer norm of these sizes"));
        };
        let largest = unit * (cols as f64).sqrt() + 1.0;
        if unit < 0.0 || largest > (1u64 << (out_bits - 1)) as f64 {
            return Err(Error::misuse("a layer norm whose results are wider than its output"));
        }
        let (up, down) = (cols.next_power_of_two().ilog2(), cols.ilog2());
        let (fraction, root) = (bits, [2 * (least + down), up - down + bits - 2 - least]);
        let peak = unit * cols as f64 * (1u64 << fraction) as f64 / (1u64 << (least + down)) as f64;
        let factor = (peak.max(4.0) as u64).ilog2() + 2;
        let sum = bits + up;
        let element = (out_bits + fraction).max(sum);
        let root = Inverse::new(rows, Power::Root, root, peak, factor, radix)?;
        let variance = root.bits();
        let squares = 2 * (bits - 1) + up + 1;
        let shift = sum + factor + GUARD - fraction;
        let moved = (sum + factor + shift - down).max(element + shift);
        let known = |bits| Factor { bits, sign: Sign::NonNegative };
        let extend = |count, from, to| Extend::new(count, from, to, Sign::NonNegative, radix);
        Ok(Self {
            rows,
            cols,
            bits,
            calibration,
            fraction,
            quotient: (((1u64 << shift) as f64 / cols as f64).round() as i64, shift),
            wide: extend(count, bits, element)?,
            squares: Square::new(count, known(bits), squares, radix)?,
            sum: (squares < variance).then(|| extend(rows, squares, variance)).transpose()?,
            squared: Square::new(rows, known(sum), variance, radix)?,
            root,
            shifted: Multiply::new(rows, [known(sum), known(factor)], moved, radix)?,
            mean: Truncate::new(rows, moved, shift, element, radix)?,
            product: Rows::new(rows, cols, element, factor)?,
            rounding: Truncate::new(count, element, fraction, out_bits, radix)?,
            sum_bits: sum,
        })
    }

    /// Values in each row.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Correlations consumed.
    pub fn need(&self) -> Need {
        let sums = self.wide.need() + self.squares.need();
        let variance = self.sum.as_ref().map(Extend::need).unwrap_or_default();
        let factor = sums + variance + self.squared.need() + self.root.need();
        let mean = factor + self.shifted.need() + self.mean.need();
        mean + self.product.need() + self.rounding.need()
    }

    /// What [`run`] costs.
    pub fn cost(&self) -> Cost {
        let sums = self.wide.cost().then(self.squares.cost());
        let variance = sums.then(self.sum.as_ref().map_or(Cost::NONE, Extend::cost));
        let factor = variance.then(self.squared.cost()).then(self.root.cost());
        let mean = factor.then(self.shifted.cost()).then(self.mean.cost());
        mean.then(self.product.cost()).then(self.rounding.cost())
    }

    /// What is added to make inputs non-negative.
    fn offset(&self) -> i64 {
        1 << (self.bits - 2)
    }

    fn half(&self) -> i64 {
        1 << (self.fraction - 1)
    }

    /// The result for one row in the clear, bit for bit.
    pub fn clear(&self, row: &[i64]) -> Vec<i64> {
        let row: Vec<i64> = row.iter().map(|x| x + self.offset()).collect();
        let sum: i64 = row.iter().sum();
        let squares: i64 = row.iter().map(|x| x * x).sum();
        let factor = self.root.clear(self.cols as i64 * squares - sum * sum);
        let (quotient, shift) = self.quotient;
        let mean = ((i128::from(sum * factor) * i128::from(quotient)) >> shift) as i64;
        row.iter().map(|x| (x * factor - mean + self.half()) >> self.fraction).collect()
    }

    /// The largest distance of [`LayerNorm::clear`] from the real function on one row, in
    /// last places.
    pub fn error(&self, row: &[i64]) -> f64 {
        let cols = self.cols as f64;
        let mean = row.iter().sum::<i64>() as f64 / cols;
        let variance = row.iter().map(|x| (*x as f64 - mean).powi(2)).sum::<f64>() / cols;
        let deviation = variance.sqrt().max(self.least());
        let real = |x: &i64| self.calibration.unit * (*x as f64 - mean) / deviation;
        let pairs = row.iter().zip(self.clear(row));
        pairs.map(|(x, got)| (got as f64 - real(x)).abs()).fold(0.0, f64::max)
    }

    /// The deviation for which smaller ones are taken, in last places: between half of
    /// `2^least` and that.
    pub fn least(&self) -> f64 {
        (1u64 << (self.calibration.least + self.cols.ilog2())) as f64 / self.cols as f64
    }

    /// The sums of rows, mod 2^bits.
    fn sums(&self, x: &Share, bits: u32) -> Share {
        let rows = x.words().chunks(self.cols);
        let sum = |row: &[u64]| row.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
        Share::new(rows.map(sum).collect(), bits)
    }

    /// `cols*squares - sum^2`, from shares of the sums of squares.
    fn variance(
        &self,
        channel: &mut Channel,
        squares: Share,
        sum: &Share,
        pads: &mut Pads,
    ) -> Result<Share> {
        let role = channel.role();
        let squares = match &self.sum {
            Some(plan) => {
                let now = pads.split(role, &plan.need())?;
                extend::run(channel, plan, &squares, now)?
            }
            None => squares.narrow(self.root.bits())?,
        };
        let now = pads.split(role, &self.squared.need())?;
        let squared = square::run(channel, &self.squared, sum, now)?;
        let scaled = squares.words().iter().map(|word| word.wrapping_mul(self.cols as u64));
        Ok(Share::new(scaled.collect(), self.root.bits()).add_scaled(&squared, -1))
    }

    /// What every row is moved by, `sum*factor/cols`.
    fn moved(
        &self,
        channel: &mut Channel,
        sum: &Share,
        factor: &Share,
        pads: &mut Pads,
    ) -> Result<Share> {
        let role = channel.role();
        let now = pads.split(role, &self.shifted.need())?;
        let product = multiply::run(channel, &self.shifted, sum, factor, now)?;
        let quotient = self.quotient.0 as u64;
        let scaled = product.words().iter().map(|word| word.wrapping_mul(quotient)).collect();
        let now = pads.split(role, &self.mean.need())?;
        truncate::run(channel, &self.mean, &Share::new(scaled, self.shifted.out_bits()), now)
    }
}

/// Runs the layer.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(channel: &mut Channel, plan: &LayerNorm, x: &Share, mut pads: Pads) -> Result<Share> {
    x.check(plan.rows * plan.cols, plan.bits, "layer norm")?;
    let role = channel.role();
    let x = x.plus(role, plan.offset());
    let now = pads.split(role, &plan.wide.need())?;
    let wide = extend::run(channel, &plan.wide, &x, now)?;
    let now = pads.split(role, &plan.squares.need())?;
    let squares = square::run(channel, &plan.squares, &x, now)?;
    let (sum, squares) = (plan.sums(&wide, plan.sum_bits), plan.sums(&squares, squares.bits()));
    let variance = plan.variance(channel, squares, &sum, &mut pads)?;
    let now = pads.split(role, &plan.root.need())?;
    let factor = inverse::run(channel, &plan.root, &variance, now)?;
    let moved = plan.moved(channel, &sum, &factor, &mut pads)?;
    let now = pads.split(role, &plan.product.need())?;
    let product = rows::run(channel, &plan.product, &wide, &factor, now)?;
    let mut centred = Vec::with_capacity(product.len());
    for (row, moved) in product.words().chunks(plan.cols).zip(moved.words()) {
        centred.extend(row.iter().map(|x| x.wrapping_sub(*moved)));
    }
    let centred = Share::new(centred, product.bits());
    truncate::run(channel, &plan.rounding, &centred.plus(role, plan.half()), pads)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{both, split};
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

    fn plan(sizes: [usize; 2], bits: u32, least: u32, unit: f64, out_bits: u32) -> LayerNorm {
        let calibration = Calibration { least, unit };
        LayerNorm::new(sizes, bits, calibration, out_bits, Radix::Sixteen).unwrap()
    }

    #[test]
    fn rows_come_out_as_in_the_clear() {
        let mut rng = Random::seeded(76);
        for (cols, bits, least, unit, out_bits) in
            [(768, 9, 2, 16.0, 10), (2, 5, 1, 4.0, 6), (5, 12, 3, 100.0, 16), (64, 8, 0, 7.0, 8)]
        {
            let values: Vec<i64> =
                (0..9).flat_map(|kind| row(&mut rng, cols, bits, kind)).collect();
            let plan = plan([9, cols], bits, least, unit, out_bits);
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
        let mut rng = Random::seeded(77);
        for (cols, unit) in [(768, 16.0), (512, 16.0), (100, 40.0), (7, 100.0)] {
            let plan = plan([1, cols], 9, 2, unit, 10);
            for kind in 0..3000 {
                let error = plan.error(&row(&mut rng, cols, 9, kind));
                assert!(error <= 0.9, "{cols} {kind}: {error}");
            }
            let quarter = 128i64;
            for apart in 1..cols {
                let pair: Vec<i64> =
                    (0..cols).map(|at| if at < apart { -quarter } else { quarter - 1 }).collect();
                assert!(plan.error(&pair) <= 0.9, "{cols} {apart}: {}", plan.error(&pair));
            }
        }
    }

    #[test]
    fn misfits_are_refused() {
        let new = |cols, bits, least, unit, out_bits| {
            let calibration = Calibration { least, unit };
            LayerNorm::new([1, cols], bits, calibration, out_bits, Radix::Four)
        };
        assert!(new(768, 9, 2, 16.0, 9).is_err() && new(1, 9, 2, 1.0, 9).is_err());
        assert!(new(768, 9, 6, 16.0, 10).is_err() && new(768, 17, 2, 16.0, 10).is_err());
        assert!(new(768, 9, 2, -1.0, 10).is_err() && new(768, 9, 2, f64::NAN, 10).is_err());
    }
}
