//! Where Newton's iteration begins: the affine start on branches, and those of others, which
//! exist to be compared with it.

mod exponential;
mod table;
mod taylor;

use super::branches::Branches;
use super::newton::{Core, Interval, Newton, Wanted, iteration, last};
use super::refusal::Result;
use super::straight_line::Builder;

/// Bits after the point of numbers where the range is not split, beyond the result's.
const GUARD: u32 = 2;
/// Most bits of what is not split.
const MOST_BITS: u32 = 26;
/// How many values of an interval are tried: rows of others' starts span millions.
const TRIED: i64 = 1 << 15;

/// A first guess of an inverse square root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// `a - b*t`, the best line on each branch.
    #[default]
    Affine,
    /// A constant, which is what flooded shares come to (Comet, section 3.3); the whole range.
    Flooding,
    /// `2.2*exp(-(t/2 + 0.2)) + 0.2 - t/1024` by eight squares, then ten iterations (CrypTen).
    Crypten,
    /// A polynomial of degree 8 on branches of a factor of four, then two iterations.
    TaylorHigh,
    /// A polynomial of degree 2 on the whole range, then eight iterations.
    TaylorLow,
    /// The leading bits by tables of digits, then one iteration (SiRNN, Iron).
    Table,
}

impl Start {
    /// All starts, in the order in which they are compared.
    pub const ALL: [Self; 6] = [
        Self::Affine,
        Self::Flooding,
        Self::Crypten,
        Self::TaylorHigh,
        Self::TaylorLow,
        Self::Table,
    ];

    /// Iterations after it; `own` where they are chosen.
    pub fn iterations(self, own: u32) -> u32 {
        match self {
            Self::Affine | Self::Flooding => own,
            Self::Crypten => 10,
            Self::TaylorHigh => 2,
            Self::TaylorLow => 8,
            Self::Table => 1,
        }
    }

    /// The branches of a range.
    fn branches(self, range: [i64; 2], newton: Newton) -> Result<Branches> {
        match self {
            Self::Affine => Branches::new(range, newton.ratio, newton.bits()),
            Self::TaylorHigh => Branches::new(range, 1, newton.precision + GUARD + 2),
            _ => {
                let spread = (range[1] / range[0].max(1)).max(1).ilog2() + 1;
                Branches::whole(range, (newton.precision + GUARD + spread).min(MOST_BITS))
            }
        }
    }

    /// The program on `interval`; t is the real number `t/2^bits * whole`.
    fn core(self, newton: Newton, interval: Interval, wanted: Wanted, whole: f64) -> Result<Core> {
        if self == Self::Affine {
            return newton.core(interval, wanted);
        }
        let Interval { low, high, bits } = interval;
        if low < 1 || low >= high || high > 1 << bits || !newton.has_precision() {
            return Err("inverse square roots on this interval".into());
        }
        let fraction = newton.precision + GUARD;
        let mut builder = Builder::new([low, high]);
        let mut y = match self {
            Self::Crypten => exponential::start(&mut builder, [bits, fraction], whole),
            Self::TaylorHigh => taylor::start(&mut builder, interval, 8, fraction),
            Self::TaylorLow => taylor::start(&mut builder, interval, 2, fraction),
            _ => constant(&mut builder, interval, fraction),
        };
        let count = self.iterations(newton.iterations);
        let made = if wanted == Wanted::Root { count.saturating_sub(1) } else { count };
        for _ in 0..made {
            y = iteration(&mut builder, [y, 0], [fraction, bits, fraction], 3.0);
        }
        let fraction = match wanted {
            Wanted::Root => last(&mut builder, [y, 0], [fraction, bits, newton.precision], 3.0),
            Wanted::Inverse => fraction,
        };
        Ok(Core::new(builder.finish_over(interval.values(TRIED), 1)?, fraction, interval, wanted))
    }
}

/// The constant from which the ends of the range take equally long.
fn constant(builder: &mut Builder, interval: Interval, fraction: u32) -> usize {
    // Just below the root of three at the upper end, beyond which an iteration changes sign.
    let whole = (1u64 << interval.bits) as f64;
    let y = 1.6 / (interval.high as f64 / whole).sqrt();
    builder.affine(&[], (y * (1u64 << fraction) as f64).round() as i64)
}

/// A root of `value`, which is positive, or its inverse: it is the result times `2^-scale`,
/// the second. The third is a bound on the relative error of an inverse. `unit` is the real
/// number that 1 stands for, where a start minds.
pub(super) fn found(
    builder: &mut Builder,
    value: usize,
    (start, newton): (Start, Newton),
    wanted: Wanted,
    unit: f64,
) -> Result<(usize, i64, f64)> {
    if start == Start::Table {
        return table::found(builder, value, newton, wanted);
    }
    let branches = start.branches(builder.range(value), newton)?;
    let (reached, t) = branches.normalise(builder, value);
    let interval = branches.interval();
    let core = start.core(newton, interval, wanted, branches.whole_value() * unit)?;
    let error = match wanted {
        Wanted::Inverse => core.error + 0.5 / interval.low as f64,
        Wanted::Root => 0.0,
    };
    let result = builder.inline(&core.straight_line, t);
    let (result, scale) = match wanted {
        Wanted::Root => branches.scaled(builder, &reached, result),
        Wanted::Inverse => branches.unscaled(builder, &reached, result),
    };
    Ok((result, scale + i64::from(core.fraction), error))
}
