//! Smooth maxima: `((1 + slope)*x + sqrt(((1 - slope)*x)^2 + smoothness^2)) / 2`.
//!
//! `u = c*x^2 + m` is exact, its root is [`super::newton`]'s, and one shift rounds at the end.
//! Every argument is tried when a plan is made, so widths are the narrowest, and the error is
//! known: at most [`ERROR`] last places.

use super::newton::{Newton, Wanted};
use super::refusal::{Result, is_scale};
use super::starts::{Start, found};
use super::straight_line::{Builder, StraightLine};

/// Last places that results may be off by.
pub const ERROR: f64 = 1.0;
/// Bits after the point of the squared slope.
const SLOPE: u32 = 8;
/// The smallest square of the smoothness that is rounded to an integer.
const ROUNDED: f64 = 64.0;

/// The real function and the integers that it is of.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smooth {
    /// Arguments lie in `-2^(bits-1)..2^(bits-1)`; 4 to 12.
    pub bits: u32,
    /// The value of one last place of the argument.
    pub scale: f64,
    /// The slope below zero, at least 0 and below 1.
    pub slope: f64,
    /// The smoothness of the maximum, positive, in real units.
    pub smoothness: f64,
    /// Bits after the point that results have beyond those of arguments; up to 6.
    pub fraction: u32,
}

/// A smooth maximum on integers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Smu {
    /// The real function that the integers approximate.
    pub real: Smooth,
    /// The program for the argument, moved above zero.
    pub straight_line: StraightLine,
    /// The protocol that makes the first guess of the iterations.
    pub start: Start,
    /// Number of Newton iterations.
    pub iterations: u32,
}

impl Smooth {
    pub(super) fn check(&self) -> Result<()> {
        let numbers = is_scale(self.scale)
            && (0.0..1.0).contains(&self.slope)
            && is_scale(self.smoothness)
            && (0.25..1e6).contains(&(self.smoothness / self.scale));
        match numbers && (4..=12).contains(&self.bits) && self.fraction <= 6 {
            true => Ok(()),
            false => Err("a smooth maximum of these numbers".into()),
        }
    }

    /// What is added to make arguments non-negative.
    pub fn offset(&self) -> i64 {
        1 << (self.bits - 1)
    }

    /// Returns the real result for `x`, in last places of results.
    pub fn at(&self, x: i64) -> f64 {
        let [x, smooth] = [x as f64, self.smoothness / self.scale];
        let inclined = (1.0 - self.slope) * x;
        let root = (inclined * inclined + smooth * smooth).sqrt();
        ((1.0 + self.slope) * x + root) / 2.0 * (1u64 << self.fraction) as f64
    }

    /// `[c, m, g]` with `((1 - slope)*x)^2 + smoothness^2 = (c*x^2 + m) / 4^g`, about.
    fn square(&self) -> [i64; 3] {
        let smooth = self.smoothness / self.scale;
        let (steep, smooth) = ((1.0 - self.slope) * (1.0 - self.slope), smooth * smooth);
        let least = if self.slope > 0.0 { SLOPE / 2 } else { 0 };
        let enough = |g: &u32| smooth * (1u64 << (2 * g)) as f64 >= ROUNDED;
        let g = (least..6).find(enough).unwrap_or(6);
        let unit = (1u64 << (2 * g)) as f64;
        [(steep * unit).round() as i64, (smooth * unit).round().max(1.0) as i64, i64::from(g)]
    }
}

impl Smu {
    /// The function by this iteration, to results of `out_bits`.
    ///
    /// # Errors
    /// For numbers that no protocol has, for results that do not fit, and for iterations that
    /// diverge or leave errors above [`ERROR`].
    pub fn new(real: Smooth, newton: Newton, out_bits: u32) -> Result<Self> {
        let plan = Self::unchecked(real, Start::Affine, newton, out_bits)?;
        match plan.error() <= ERROR {
            true => Ok(plan),
            false => Err("a smooth maximum whose iterations leave too large an error".into()),
        }
    }

    /// Derives the function from any start, whatever its error.
    ///
    /// # Errors
    /// The errors of [`Smu::new`].
    pub fn unchecked(real: Smooth, start: Start, newton: Newton, out_bits: u32) -> Result<Self> {
        real.check()?;
        let offset = real.offset();
        let mut builder = Builder::new([0, 2 * offset - 1]);
        let [c, m, g] = real.square();
        let square = builder.square(0);
        let terms = [(square, c), (0, -2 * offset * c)];
        let u = builder.affine(&terms, offset * offset * c + m);
        builder.known(u, [m, offset * offset * c + m]);
        let unit = real.scale * real.scale / (1u64 << (2 * g)) as f64;
        let (root, scale, _) = found(&mut builder, u, (start, newton), Wanted::Root, unit)?;
        finished(&mut builder, &real, root, scale + g)?;
        let straight_line = builder.finish_over(0..2 * offset, out_bits)?;
        let [low, high] = straight_line.range();
        let limit = 1i64 << (out_bits.clamp(1, 62) - 1);
        match low >= -limit && high < limit {
            true => {
                let iterations = start.iterations(newton.iterations);
                Ok(Self { real, straight_line, start, iterations })
            }
            false => Err("a smooth maximum whose results are wider than its output".into()),
        }
    }

    /// Returns the iteration of least traffic for a function, and the narrowest width of its
    /// results.
    ///
    /// # Errors
    /// Where none does.
    pub fn least(real: Smooth) -> Result<(Newton, u32)> {
        real.check()?;
        let mut best: Option<(u64, Newton, Self)> = None;
        for (ratio, iterations) in (1..=3).flat_map(|k| (1..=4).map(move |n| (k, n))) {
            for precision in 4..=14 {
                let newton = Newton { iterations, ratio, precision };
                let plan =
                    Self::unchecked(real, Start::Affine, newton, 1 + real.bits + real.fraction);
                let Ok(plan) = plan else { continue };
                let weight = plan.straight_line.weight();
                if best.as_ref().is_some_and(|(least, ..)| *least <= weight) {
                    break;
                }
                if plan.error() <= ERROR {
                    best = Some((weight, newton, plan));
                    break;
                }
            }
        }
        let (_, newton, plan) = best.ok_or("a smooth maximum that is too sharp for its range")?;
        Ok((newton, super::straight_line::signed_width(plan.straight_line.range())))
    }

    /// Returns the result for `x`.
    pub fn clear(&self, x: i64) -> i64 {
        self.straight_line.clear(x + self.real.offset())
    }

    /// Returns the range of results.
    pub fn range(&self) -> [i64; 2] {
        self.straight_line.range()
    }

    /// Returns the largest distance from the real function, in last places.
    pub fn error(&self) -> f64 {
        let offset = self.real.offset();
        let pairs = (-offset..offset).zip(self.straight_line.results(0..2 * offset));
        pairs.map(|(x, got)| (got as f64 - self.real.at(x)).abs()).fold(0.0, f64::max)
    }
}

/// `((1 + slope)*x + root/2^scale) / 2`, rounded.
fn finished(builder: &mut Builder, real: &Smooth, root: usize, scale: i64) -> Result<()> {
    let drop = scale + 1 - i64::from(real.fraction);
    if !(1..=40).contains(&drop) || !(0..=40).contains(&scale) {
        return Err("a smooth maximum of such precision".into());
    }
    let slope = ((1.0 + real.slope) * (1u64 << scale) as f64).round() as i64;
    let sum = builder.affine(&[(0, slope), (root, 1)], -real.offset() * slope);
    builder.rounded(sum, drop as u32);
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_iterations_are_as_stated() {
        for (bits, scale, slope, smoothness, fraction) in [
            (9, 0.04, 0.0, 0.8, 0),
            (9, 0.04, 0.05, 0.8, 0),
            (10, 0.02, 0.0, 0.5, 0),
            (8, 0.1, 0.25, 0.5, 0),
            (9, 0.05, 0.0, 0.5, 2),
            (12, 0.01, 0.0, 0.5, 0),
        ] {
            let real = Smooth { bits, scale, slope, smoothness, fraction };
            let (newton, out_bits) = Smu::least(real).unwrap();
            let plan = Smu::new(real, newton, out_bits).unwrap();
            assert!(plan.error() <= ERROR && newton.iterations <= 4);
        }
    }

    #[test]
    fn every_start_comes_out_and_none_is_leaner_than_the_line() {
        for smoothness in [0.5, 0.8, 1.5] {
            let real = Smooth { bits: 9, scale: 1.0 / 32.0, slope: 0.0, smoothness, fraction: 0 };
            let (own, bits) = Smu::least(real).unwrap();
            let weight = Smu::new(real, own, bits).unwrap().straight_line.weight();
            for start in Start::ALL {
                let plan = |iterations| {
                    let newton = Newton { iterations, precision: 9, ..own };
                    Smu::unchecked(real, start, newton, bits + 1)
                };
                let fits = |n: &u32| plan(*n).is_ok_and(|plan| plan.error() <= ERROR);
                let needed = (1..=12).find(fits);
                let needed = needed.unwrap();
                assert!(start != Start::Flooding || needed >= own.iterations);
                assert!(
                    start == Start::Affine
                        || plan(needed).unwrap().straight_line.weight() >= weight
                );
            }
        }
    }
}
