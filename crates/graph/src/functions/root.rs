//! Inverse square roots of wide integers by Newton's iteration, and reciprocals as their
//! squares.

use super::inverse::Inverse;
use super::newton::{Newton, Wanted};
use super::refusal::Result;
use super::starts::{Start, found};
use super::straight_line::{Builder, StraightLine};

/// Bits of constants that scale results.
const CONSTANT: i64 = 12;
/// The real number that the largest value stands for, where a start minds.
const WHOLE: f64 = 64.0;

/// About `peak*sqrt(2^low/max(y, 2^low))` for `0 <= y < 2^top`, top = low + 2*octaves.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Root {
    /// The program that computes the root of y.
    pub straight_line: StraightLine,
    low: u32,
    top: u32,
    peak: f64,
    error: f64,
}

impl Root {
    /// Two octaves at least; `peak` below 2^40.
    ///
    /// # Errors
    /// For other numbers, and where the iteration diverges.
    pub fn new([low, octaves]: [u32; 2], peak: f64, start: Start, newton: Newton) -> Result<Self> {
        let sizes = (2..=28).contains(&octaves) && low + 2 * octaves <= 55;
        if !sizes || !(1.0..(1u64 << 40) as f64).contains(&peak) {
            return Err("an inverse root of these sizes".into());
        }
        let top = low + 2 * octaves;
        let [least, most] = [1i64 << low, (1i64 << top) - 1];
        let mut builder = Builder::new([0, most]);
        let reached = builder.at_least(0, least);
        let above = builder.affine(&[(0, 1)], -least);
        let above = builder.choose(reached, above);
        let clamped = builder.affine(&[(above, 1)], least);
        builder.known(clamped, [least, most]);
        let (inverse, scale, error) = inverse_root(&mut builder, clamped, start, newton)?;
        let factor = peak * (least as f64).sqrt();
        scaled(&mut builder, inverse, factor, scale)?;
        let last = (peak * (1.0 + error) + 1.0) as i64;
        let mut root = Self { straight_line: builder.finish(1)?, low, top, peak, error };
        root.straight_line.limit(last)?;
        Ok(root)
    }

    /// Returns the result for `y`.
    pub fn clear(&self, y: i64) -> i64 {
        self.straight_line.clear(y)
    }

    /// Returns a bound on `clear(y)*sqrt(y)` over all y.
    pub fn most_weighted(&self) -> f64 {
        let exact = self.peak * ((1u64 << self.low) as f64).sqrt() * (1.0 + self.error);
        exact + ((1u64 << self.top) as f64).sqrt() / 2.0
    }
}

/// An inverse root of `value`, which is positive: it is the result times `2^-scale`, the
/// second, up to a relative error, the third.
pub(super) fn inverse_root(
    builder: &mut Builder,
    value: usize,
    start: Start,
    newton: Newton,
) -> Result<(usize, i64, f64)> {
    let unit = WHOLE / builder.range(value)[1].max(1) as f64;
    let (inverse, scale, error) = found(builder, value, (start, newton), Wanted::Inverse, unit)?;
    Ok((inverse, scale, error + 2f64.powi(-(CONSTANT as i32))))
}

/// `value*factor/2^scale`, rounded.
pub(super) fn scaled(
    builder: &mut Builder,
    value: usize,
    factor: f64,
    scale: i64,
) -> Result<usize> {
    let fits = factor > 0.0 && factor < (1u64 << 60) as f64 && (0..=60).contains(&scale);
    if !fits {
        return Err("an inverse root of such precision".into());
    }
    let mut shift = scale;
    let (mut constant, low) = (factor, (1u64 << CONSTANT) as f64);
    while constant < low && shift < 60 {
        (constant, shift) = (constant * 2.0, shift + 1);
    }
    while constant >= 2.0 * low && shift > 0 {
        (constant, shift) = (constant / 2.0, shift - 1);
    }
    let product = builder.affine(&[(value, constant.round() as i64)], 0);
    Ok(builder.rounded(product, shift as u32))
}

/// The ways in which a norm computes inverse roots.
#[derive(Clone, Debug, PartialEq)]
pub enum Rooted {
    /// By octaves and a table.
    Table(Inverse),
    /// By Newton's iteration.
    Newton(Box<Root>),
}

impl Rooted {
    /// Returns widths of y and of results, each with a bit that tells that they are not negative.
    pub fn bits(&self) -> [u32; 2] {
        match self {
            Self::Table(inverse) => [inverse.bits, inverse.out_bits],
            Self::Newton(root) => root.straight_line.bits(),
        }
    }

    /// Returns the result for `y`.
    pub fn clear(&self, y: i64) -> i64 {
        match self {
            Self::Table(inverse) => inverse.clear(y),
            Self::Newton(root) => root.clear(y),
        }
    }

    /// Returns a bound on `clear(y)*sqrt(y)` over all y.
    pub fn most_weighted(&self) -> f64 {
        match self {
            Self::Table(inverse) => inverse.most_weighted(),
            Self::Newton(root) => root.most_weighted(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ring::Random;

    const NEWTON: Newton = Newton { iterations: 3, ratio: 2, precision: 10 };

    #[test]
    fn errors_are_within_the_bound_on_every_branch() {
        let mut rng = Random::seeded(93);
        for ([low, octaves], peak) in [([20, 8], 1016.0), ([14, 3], 100.0), ([4, 12], 30000.0)] {
            let root = Root::new([low, octaves], peak, Start::Affine, NEWTON).unwrap();
            let edges = (low..low + 2 * octaves).flat_map(|bit| [(1i64 << bit) - 1, 1 << bit]);
            let random = rng.uniform(5000, low + 2 * octaves);
            let random = random.iter().enumerate().map(|(i, y)| *y as i64 >> (i % 30));
            let mut weighted = 0f64;
            for y in edges.chain(random).chain([0, (1 << (low + 2 * octaves)) - 1]) {
                let least = (1u64 << low) as f64;
                let real = peak * (least / (y as f64).max(least)).sqrt();
                let got = root.clear(y) as f64;
                assert!((got - real).abs() <= 0.75 + real * root.error, "{y}: {got} {real}");
                weighted = weighted.max(got * (y as f64).sqrt());
            }
            assert!(root.error < 1.0 / 500.0, "{}", root.error);
            let bound = root.most_weighted();
            assert!(weighted <= bound && bound < 1.3 * weighted, "{weighted} {bound}");
        }
    }

    #[test]
    fn misfits_are_refused() {
        let new = |sizes, peak, newton| Root::new(sizes, peak, Start::Affine, newton).is_err();
        assert!(new([4, 40], 100.0, NEWTON) && new([4, 8], f64::NAN, NEWTON));
        assert!(new([4, 8], 100.0, Newton { iterations: 0, ..NEWTON }));
        assert!(new([4, 8], 100.0, Newton { ratio: u32::MAX, ..NEWTON }));
    }
}
