//! Smooth functions as integer functions of folded arguments, and the cheapest that is near.

use crate::functions::Fold;
use crate::functions::curve::{Curve, Lines, TABLED};
use crate::functions::fold::Argument;
use crate::source::function::Function;
use crate::source::scaling::{TOLERANCE, levels, positive};
use pricing::fixed::message::ROUND_BYTES;

/// Bits of the largest and of the smallest magnitude.
const MAGNITUDES: std::ops::RangeInclusive<u32> = 2..=12;
/// The largest errors that are looked for, in last places, half of which is that of rounding: a
/// later one where no curve keeps those before, as beside the corner of HardSwish at 12 bits. Errors
/// of a curve do not average out as those of rounding do.
const BOUNDS: [f64; 4] = [0.8, 1.0, 1.2, 2.0];
/// Bits of magnitude from which on last places are so small that the second bound comes first.
const FINE: u32 = 11;
/// Bits of the fewest and of the most pieces of lines.
const PIECES: std::ops::RangeInclusive<u32> = 3..=8;
/// Bits after the point beyond those that the argument within a piece needs.
const GUARDS: std::ops::RangeInclusive<u32> = 1..=3;
/// Lowest bits of the argument that tables may leave out.
const DULL: std::ops::RangeInclusive<u32> = 0..=2;
/// Bits that a round is worth: an eighth of what it is on a link with delay, since models run on
/// links of all kinds, and a plan for one with delay can still take a table.
const ROUND: usize = ROUND_BYTES as usize;
/// Rounds of a clip and a table, and of what rounds finer arguments before.
const TABLE_ROUNDS: [usize; 2] = [6, 6];
/// Bits that readers take results with beyond their own: products of linear layers are wider.
const READ_BITS: u32 = 6;
/// Where functions without limits are taken to be at theirs, in real numbers.
const REACH: f64 = 64.0;

/// How a function folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A ReLU and a curve over such an argument, of one scale with it.
    Bump(Argument),
    /// The function is the same on both sides of 0, but for the sign.
    Odd,
    /// A curve over all arguments.
    Whole,
}

/// A function with its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Smooth {
    pub(super) function: Function,
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

impl Smooth {
    /// How the function folds, if it does.
    pub(super) fn form(&self) -> Option<Form> {
        let grows = self.alpha > 0.0;
        match self.function {
            Function::Silu if grows => Some(Form::Bump(Argument::Even)),
            Function::HardSwish | Function::Softplus | Function::Gelu => {
                Some(Form::Bump(Argument::Even))
            }
            Function::Elu if grows => Some(Form::Bump(Argument::Negative)),
            Function::Mish => Some(Form::Bump(Argument::Whole)),
            Function::Sigmoid | Function::Tanh | Function::Erf | Function::Softsign => {
                Some(Form::Odd)
            }
            Function::Exp | Function::Sin | Function::Cos => Some(Form::Whole),
            _ => None,
        }
    }

    fn at(&self, x: f64) -> f64 {
        self.function.at(x, self.alpha, self.beta)
    }

    /// The function; an exponential as its tangent beyond `high`, where nothing was calibrated.
    fn tamed(&self, x: f64, high: f64) -> f64 {
        match self.function {
            Function::Exp if x > high => self.at(high) * (1.0 + x - high),
            _ => self.at(x),
        }
    }

    /// The largest magnitude of a real argument in `range` that the curve of a bump has to tell
    /// apart, where results have this scale: beyond it the function is at its limit below 0.
    pub(super) fn reach(&self, (low, high): (f64, f64), scale: f64) -> f64 {
        let reach = REACH / if self.function == Function::Silu { self.alpha.min(1.0) } else { 1.0 };
        let limit = self.at(-reach);
        let near = |x: f64| (self.at(-x) - limit).abs() < scale / 2.0;
        let steps = (1..=1024).rev().map(|step| f64::from(step) * reach / 1024.0);
        let bent = steps.take_while(|x| near(*x)).last().unwrap_or(reach);
        positive(high.max((-low).min(bent)))
    }

    /// The magnitude that holds real arguments up to `reach` at this scale, if one does; the
    /// last of them may be one place beyond.
    pub(super) fn magnitude(reach: f64, scale: f64) -> Option<u32> {
        let holds = |bits: &u32| (levels(*bits) + 1.0) * scale >= reach * (1.0 - TOLERANCE);
        MAGNITUDES.into_iter().find(holds)
    }

    /// The cheapest integer function of so many bits of magnitude that is near the function, for
    /// real arguments up to `high`, scales of inputs and results and `count` values; the nearest
    /// where none is, but for curves over all arguments.
    pub(super) fn folded(
        &self,
        (magnitude, high): (u32, f64),
        scales: [f64; 2],
        count: usize,
    ) -> Option<Fold> {
        let real = |x: i64| self.tamed(x as f64 * scales[0], high) / scales[1];
        let form = self.form()?;
        let all = match form {
            Form::Bump(argument) => bumps(argument, magnitude, &real),
            Form::Odd => odd(magnitude, &real),
            Form::Whole => whole(magnitude, &real),
        };
        let edge = 1i64 << magnitude;
        let error = |fold: &Fold| {
            let errors = (-edge..edge).map(|x| (fold.clear(x) as f64 - real(x)).abs());
            errors.fold(0.0, f64::max)
        };
        let all: Vec<(f64, Fold)> = all.into_iter().map(|fold| (error(&fold), fold)).collect();
        let weight = |fold: &Fold| {
            let [bits, rounds] = fold.price();
            bits.saturating_mul(count).saturating_add(rounds * ROUND)
        };
        let mut bounds = BOUNDS.into_iter().skip(usize::from(magnitude >= FINE));
        let cheapest = bounds.find_map(|bound| {
            let near = all.iter().filter(|(error, _)| *error <= bound);
            near.min_by_key(|(_, fold)| weight(fold))
        });
        let nearest = || all.iter().min_by(|(a, _), (b, _)| a.total_cmp(b));
        let found = cheapest.or_else(|| nearest().filter(|_| form != Form::Whole));
        found.map(|(_, fold)| fold.clone())
    }
}

impl Smooth {
    /// Whether a function of a folded argument costs less, for `count` values, than a table of so
    /// many bits' arguments with results of so many bits, which may need a rescale before.
    pub(super) fn is_worth(
        fold: &Fold,
        [bits, results]: [u32; 2],
        rescales: bool,
        count: usize,
    ) -> bool {
        let [folded, rounds] = fold.price();
        let table = (results as usize) << bits;
        let [clipped, rescaled] = TABLE_ROUNDS;
        let others = clipped + if rescales { rescaled } else { 0 };
        let more = rounds.saturating_sub(others).saturating_mul(ROUND);
        folded.saturating_mul(count).saturating_add(more) < table.saturating_mul(count)
    }

    /// About how many bits a table's results have, in this range at this scale, as they are read.
    pub(super) fn width((low, high): (f64, f64), scale: f64) -> u32 {
        let largest = (positive(high.max(-low)) / scale).max(1.0).log2().ceil();
        largest.clamp(1.0, 30.0) as u32 + READ_BITS
    }
}

/// The curves that there are for arguments of so many bits.
fn curves(bits: u32, value: impl Fn(i64) -> f64) -> Vec<Curve> {
    let tables = DULL.filter(|dull| bits <= TABLED && *dull < bits);
    let tables = tables.map(|dull| Curve::coarse(bits, dull, &value));
    let pairs = PIECES.flat_map(|pieces| GUARDS.map(move |guard| [pieces, guard]));
    let lines = pairs.filter(|[pieces, _]| *pieces < bits).map(|numbers| {
        let lines = Lines::new(bits, numbers, &value).map(Curve::Lines)?;
        // Files hold shorter numbers than there can be.
        Curve::of(&lines.numbers())
    });
    tables.chain(lines).flatten().collect()
}

/// A ReLU and what the function is above or below it.
fn bumps(argument: Argument, magnitude: u32, real: &impl Fn(i64) -> f64) -> Vec<Fold> {
    let edge = 1i64 << magnitude;
    let above = |x: i64| real(x) - x.max(0) as f64;
    let value = |z: i64| match argument {
        Argument::Even | Argument::Odd { .. } => f64::midpoint(above(z), above(-z)),
        Argument::Negative => above(-z),
        Argument::Whole => above(z - edge),
    };
    let whole = argument == Argument::Whole;
    let bits = magnitude + u32::from(whole);
    let below = (0..1 << bits).map(value).sum::<f64>() < 0.0;
    let size = |z: i64| if below { -value(z) } else { value(z) };
    let fold = |curve| Fold::new(magnitude, argument, [true, below], 0, curve).ok();
    curves(bits, size).into_iter().filter_map(fold).collect()
}

/// What a function is above its least value.
fn whole(magnitude: u32, real: &impl Fn(i64) -> f64) -> Vec<Fold> {
    let edge = 1i64 << magnitude;
    let base = (-edge..edge).map(real).fold(f64::INFINITY, f64::min).floor();
    let value = |z: i64| real(z - edge) - base;
    let fold = |curve| Fold::new(magnitude, Argument::Whole, [false; 2], base as i64, curve).ok();
    curves(magnitude + 1, value).into_iter().filter_map(fold).collect()
}

/// What a function on one side of 0 is short of its limit.
fn odd(magnitude: u32, real: &impl Fn(i64) -> f64) -> Vec<Fold> {
    let (last, middle) = ((1i64 << magnitude) - 1, real(0));
    let base = real(-last).floor();
    let span = (2.0 * (middle - base)).round();
    let value = |z: i64| (span - real(z) + real(-z)) / 2.0;
    let argument = Argument::Odd { span: span as i64 };
    let fold = |curve| Fold::new(magnitude, argument, [false; 2], base as i64, curve).ok();
    curves(magnitude, value).into_iter().filter_map(fold).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
