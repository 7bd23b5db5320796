//! Square roots and their inverses by Newton's iteration.
//!
//! `y' = y*(c - t*y^2)/2` doubles the right bits of `y` near `1/sqrt(t)`; c is 3 and a little,
//! so that the errors left lie on both sides of zero. The first y is `a - b*t`, which is local
//! on shares: of relative error (M - m)/(M + m) on an interval, a constant's being larger on every one.
//! Every iteration is as precise as its result can be. A root ends with `t*y` in place of y.
//!
//! All programs are evaluated for every t of the interval: what diverges is refused.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::refusal::Result;
use super::straight_line::{Builder, StraightLine};

/// Bits of t.
const MOST_BITS: u32 = 16;
/// Bits of numbers between iterations, at least.
const COARSEST: u32 = 4;
/// Bits of the first guess's slope.
const SLOPE: u32 = 4;

/// How inverse square roots are computed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(deny_unknown_fields)]
pub struct Newton {
    /// Number of iterations, 1 to 4.
    pub iterations: u32,
    /// Each branch spans a factor of 4 to this power: 1 to 3.
    pub ratio: u32,
    /// Bits of the result that are about right, 4 to 14.
    pub precision: u32,
}

/// The function of `t / 2^bits` that is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wanted {
    /// The root.
    Root,
    /// The inverse of the root.
    Inverse,
}

/// The interval of integers that stand for t, and their bits after the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    /// The smallest integer, at least 1.
    pub low: i64,
    /// The largest integer, at most `2^bits`.
    pub high: i64,
    /// Bits after the point.
    pub bits: u32,
}

impl Interval {
    /// Returns all integers of it where that is at most about so many values; else evenly spaced
    /// ones, with all of the first, where functions are steepest.
    pub fn values(self, most: i64) -> impl Iterator<Item = i64> {
        let Self { low, high, .. } = self;
        let step = ((high - low) / most.max(1)).max(1);
        let steep = low.saturating_add(most.min(high - low));
        let steep = if step == 1 { low } else { steep };
        (low..steep).chain((steep..=high).step_by(step as usize)).chain([high])
    }
}

/// A program on an interval; its result has so many bits after the point.
#[derive(Clone, Debug, PartialEq)]
pub struct Core {
    /// The program, a function of t.
    pub straight_line: StraightLine,
    /// Bits after the point of the result.
    pub fraction: u32,
    /// The largest relative error, of inverse roots only.
    pub error: f64,
}

impl Core {
    /// A program whose results have `fraction` bits after the point, tried on `interval`.
    pub(super) fn new(
        straight_line: StraightLine,
        fraction: u32,
        interval: Interval,
        wanted: Wanted,
    ) -> Self {
        let unit = ((1u64 << interval.bits) as f64).sqrt() * (1u64 << fraction) as f64;
        let tried = if wanted == Wanted::Inverse { 1 << 18 } else { 1 };
        let values = || interval.values(tried);
        let pairs = values().zip(straight_line.results(values()));
        let error = pairs.map(|(t, y)| (y as f64 * (t as f64).sqrt() / unit - 1.0).abs());
        let error = error.fold(0.0, f64::max);
        Self { straight_line, fraction, error }
    }
}

/// Programs made so far: every norm of a model has the same one, and all of a model's are asked
/// for time and again.
static CORES: Mutex<BTreeMap<(Newton, Interval, Wanted), Core>> = Mutex::new(BTreeMap::new());
/// Most of them that are kept.
const MOST_CORES: usize = 256;

impl Newton {
    /// Returns whether these are numbers that this module has.
    pub fn fits(self) -> bool {
        (1..=4).contains(&self.iterations) && (1..=3).contains(&self.ratio) && self.has_precision()
    }

    /// Returns whether its precision is one that this module has.
    pub fn has_precision(self) -> bool {
        (4..=14).contains(&self.precision)
    }

    /// Returns the bits of t that the result's precision asks for.
    pub fn bits(self) -> u32 {
        (self.precision + 2 * self.ratio).min(MOST_BITS)
    }

    /// Returns the program on `interval`.
    ///
    /// # Errors
    /// Where it diverges.
    pub fn core(self, interval: Interval, wanted: Wanted) -> Result<Core> {
        let key = (self, interval, wanted);
        let lock = || CORES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(core) = lock().get(&key) {
            return Ok(core.clone());
        }
        let core = self.made(interval, wanted)?;
        let mut cores = lock();
        if cores.len() >= MOST_CORES {
            cores.clear();
        }
        cores.insert(key, core.clone());
        Ok(core)
    }

    fn made(self, interval: Interval, wanted: Wanted) -> Result<Core> {
        let Interval { low, high, bits } = interval;
        if !self.fits() || low < 1 || low >= high || high > 1 << bits || bits > MOST_BITS + 2 {
            return Err("inverse square roots on this interval".into());
        }
        let mut builder = Builder::new([low, high]);
        let one = (1u64 << bits) as f64;
        let line = Line::best(low as f64 / one, high as f64 / one);
        let fractions = self.fractions(wanted);
        let first = fractions.first().copied().unwrap_or(COARSEST);
        let (mut y, mut fraction) = (line.start(&mut builder, bits, first), first);
        let mut error = line.error;
        for next in fractions.into_iter().skip(1) {
            let (constant, left) = balanced(error);
            y = iteration(&mut builder, [y, 0], [fraction, bits, next], constant);
            (fraction, error) = (next, left);
        }
        if wanted == Wanted::Root {
            let (constant, _) = balanced(error);
            fraction = last(&mut builder, [y, 0], [fraction, bits, self.precision], constant);
        }
        Ok(Core::new(builder.finish_over(low..=high, 1)?, fraction, interval, wanted))
    }

    /// Bits after the point of y before each iteration that makes another y, and after the
    /// last.
    fn fractions(self, wanted: Wanted) -> Vec<u32> {
        let before = |bits: u32| (bits.div_ceil(2) + 2).max(COARSEST);
        let (mut bits, count) = match wanted {
            Wanted::Root => (before(self.precision), self.iterations),
            Wanted::Inverse => (self.precision, self.iterations + 1),
        };
        let mut fractions = vec![bits];
        for _ in 1..count {
            bits = before(bits);
            fractions.push(bits);
        }
        fractions.reverse();
        fractions
    }
}

/// a and b of the line `a - b*t` that is the best first guess of `1/sqrt(t)` from `low` to `high`.
pub fn affine(low: f64, high: f64) -> [f64; 2] {
    let line = Line::best(low, high);
    [line.a, line.b]
}

/// `a - b*t`, the best line near `1/sqrt(t)`, and its relative error.
struct Line {
    a: f64,
    b: f64,
    error: f64,
}

impl Line {
    /// Errors at both ends equal the one in the middle, with another sign.
    fn best(low: f64, high: f64) -> Self {
        let ratio = high + (low * high).sqrt() + low;
        let ends = (ratio - low) * low.sqrt();
        let middle = 2.0 * ratio / 3.0 * (ratio / 3.0).sqrt();
        let b = 2.0 / (ends + middle);
        Self { a: b * ratio, b, error: (middle - ends) / (middle + ends) }
    }

    fn start(&self, builder: &mut Builder, bits: u32, fraction: u32) -> usize {
        let drop = (bits + SLOPE).saturating_sub(fraction);
        let one = (1u64 << (fraction + drop)) as f64;
        let slope = (self.b * one / (1u64 << bits) as f64).round() as i64;
        let constant = (self.a * one).round() as i64;
        let line = builder.affine(&[(0, -slope)], constant);
        builder.rounded(line, drop)
    }
}

/// Returns the constant in place of 3 with which errors up to `error` become smallest, and what is
/// left of them.
pub fn balanced(error: f64) -> (f64, f64) {
    let after = |e: f64, c: f64| (1.0 + e) * (c - (1.0 + e) * (1.0 + e)) / 2.0 - 1.0;
    let worst = |c: f64| after(error, c).min(after(-error, c));
    let best = |c: f64| (c / 3.0) * (c / 3.0).sqrt() - 1.0;
    let (mut low, mut high) = (3.0, 4.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if best(middle) + worst(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, best(low).max(-worst(low)))
}

/// `y*(c - t*y^2)/2` with `next` bits after the point, of y with `fraction` and t with `bits`.
pub(super) fn iteration(
    builder: &mut Builder,
    [y, t]: [usize; 2],
    [fraction, bits, next]: [u32; 3],
    constant: f64,
) -> usize {
    let inner = next + 2;
    let square = builder.square(y);
    let dropped = (2 * fraction).saturating_sub(inner);
    let square = builder.rounded(square, dropped);
    let squared = 2 * fraction - dropped;
    // In the coarse iterations t need not be finer than they are.
    let coarse = bits.saturating_sub(inner + 2);
    let coarse = if coarse < 2 { 0 } else { coarse };
    let t = builder.rounded(t, coarse);
    let product = builder.product(t, square);
    let factor = residue(builder, product, bits - coarse + squared, inner, constant);
    let result = builder.product(y, factor);
    builder.rounded(result, fraction + inner.min(bits - coarse + squared) + 1 - next)
}

/// `c - w` with at most `kept` bits after the point, of w with `bits`.
fn residue(builder: &mut Builder, w: usize, bits: u32, kept: u32, constant: f64) -> usize {
    let constant = (constant * (1u64 << bits) as f64).round() as i64;
    let residue = builder.affine(&[(w, -1)], constant);
    builder.rounded(residue, bits.saturating_sub(kept))
}

/// `t*y*(c - t*y^2)/2`; returns its bits after the point.
pub(super) fn last(
    builder: &mut Builder,
    [y, t]: [usize; 2],
    [fraction, bits, precision]: [u32; 3],
    constant: f64,
) -> u32 {
    let kept = precision + 2;
    let product = builder.product(t, y);
    let dropped = (bits + fraction).saturating_sub(kept);
    let root = builder.rounded(product, dropped);
    let rooted = bits + fraction - dropped;
    let product = builder.product(root, y);
    let factor = residue(builder, product, rooted + fraction, kept, constant);
    let result = builder.product(root, factor);
    // What follows chooses between branches: that is cheaper on fewer bits.
    let fine = rooted + kept.min(rooted + fraction) + 1;
    let dropped = fine.saturating_sub(kept + 1);
    builder.rounded(result, dropped);
    fine - dropped
}
