//! A smooth public function of few bits, not below zero.
//!
//! | | |
//! |---|---|
//! | In | shares of z mod 2^bits, bits from 1 to 14, read as `0 <= z < 2^bits`; correlations |
//! | Out | shares of about `f(z)` mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | up to 8 bits: a table of narrow entries (`digits.rs`); beyond: a truncation, two tables of 64, a narrow product, a truncation |
//! | Error | half a last place up to 8 bits; beyond that of straight lines on 64 pieces besides |
//! | Paper | Rathee et al., SiRNN (S&P 2021), splines and tables of truncated arguments |
//!
//! Where the values are small, entries have few bits. Wide arguments are cut into 64 pieces:
//! the upper bits look up a value and a slope, the lower bits multiply the slope.

use wire::{Channel, Cost, Error, Result, Role};

use super::digits::{self, Digits};
use crate::compare::Radix;
use crate::extend::Sign;
use crate::lookup::{self, Lookup};
use crate::multiply::{self, Factor, Multiply};
use crate::pads::{Need, Pads};
use crate::share::Share;
use crate::truncate::{self, Truncate};

/// Address bits of the largest table that holds every value.
const WHOLE: u32 = 8;
/// Address bits of the pieces.
const PIECES: u32 = 6;
/// Bits of the widest argument.
const MOST: u32 = 14;
/// Bits after the point of slopes, beyond those that the lower bits of z need.
const GUARD: u32 = 3;

/// The public plan.
#[derive(Clone, Debug)]
pub(super) enum Curve {
    /// A table of all values.
    Whole(Digits),
    /// A straight line on each piece.
    Lines(Box<Lines>),
}

/// Lines through pieces of `2^drop` values.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    drop: u32,
    /// Bits after the point.
    fraction: u32,
    starts: Vec<u64>,
    slopes: Vec<i64>,
    upper: Truncate,
    start: Lookup,
    slope: Lookup,
    product: Multiply,
    rounding: Truncate,
}

/// Bits of the largest entry, one at least.
fn width(entries: &[i64]) -> u32 {
    let largest = entries.iter().copied().max().unwrap_or(0).max(1);
    largest.ilog2() + 1
}

impl Curve {
    /// `count` values of the `function` of 1 to 14 bits. Both parties plan with the same
    /// values to the last bit.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other widths.
    pub(super) fn new(
        count: usize,
        bits: u32,
        function: impl Fn(i64) -> f64,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        if bits > WHOLE {
            return Self::lines(count, bits, function, out_bits, radix);
        }
        let entry = |z| function(z).round().max(0.0) as u64;
        let entries = (0..1 << bits).map(entry).collect();
        Ok(Self::Whole(Digits::new(count, entries, out_bits)?))
    }

    fn lines(
        count: usize,
        bits: u32,
        function: impl Fn(i64) -> f64,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        if bits > MOST {
            return Err(Error::misuse("a curve of more than 14 bits"));
        }
        let drop = bits - PIECES;
        let fraction = drop + GUARD;
        let pieces: Vec<[i64; 2]> =
            (0..1 << PIECES).map(|piece| line(&function, piece << drop, drop, fraction)).collect();
        let slopes: Vec<i64> = pieces.iter().map(|[_, slope]| *slope).collect();
        let ends = pieces.iter().map(|[start, slope]| start + (slope.max(&0) << drop));
        let wide = width(&ends.collect::<Vec<_>>()).max(fraction + 1);
        let slope_bits = slopes.iter().map(|slope| width(&[slope.abs()])).max().unwrap_or(1) + 1;
        let factors = [
            Factor { bits: slope_bits, sign: Sign::Unknown },
            Factor { bits: drop, sign: Sign::Unsigned },
        ];
        Ok(Self::Lines(Box::new(Lines {
            drop,
            fraction,
            starts: pieces.iter().map(|[start, _]| *start as u64).collect(),
            slopes,
            upper: Truncate::new(count, bits, drop, PIECES, radix)?,
            start: Lookup::new(count, PIECES, wide)?,
            slope: Lookup::new(count, PIECES, slope_bits)?,
            product: Multiply::new(count, factors, wide, radix)?,
            rounding: Truncate::widening(count, wide, fraction, out_bits, Sign::Unsigned, radix)?,
        })))
    }

    /// Correlations consumed.
    pub(super) fn need(&self) -> Need {
        match self {
            Self::Whole(table) => table.need(),
            Self::Lines(lines) => {
                let tables = lines.start.need() + lines.slope.need();
                lines.upper.need() + tables + lines.product.need() + lines.rounding.need()
            }
        }
    }

    /// What [`run`] costs.
    pub(super) fn cost(&self) -> Cost {
        match self {
            Self::Whole(table) => table.cost(),
            Self::Lines(lines) => {
                let upper = lines.upper.cost().then(lines.start.cost()).then(lines.slope.cost());
                upper.then(lines.product.cost()).then(lines.rounding.cost())
            }
        }
    }

    /// The result in the clear.
    pub(super) fn clear(&self, z: i64) -> i64 {
        match self {
            Self::Whole(table) => table.clear(z),
            Self::Lines(lines) => {
                let piece = z >> lines.drop;
                let start = lines.starts.get(piece as usize).map_or(0, |start| *start as i64);
                let slope = lines.slopes.get(piece as usize).copied().unwrap_or(0);
                (start + slope * (z - (piece << lines.drop))) >> lines.fraction
            }
        }
    }
}

/// Start, with a half for rounding, and slope of the piece from `first` on: parallel to
/// the chord, equally far from the function at both extremes, not below zero.
fn line(function: &impl Fn(i64) -> f64, first: i64, drop: u32, fraction: u32) -> [i64; 2] {
    let one = (1u64 << fraction) as f64;
    let steps = 1i64 << drop;
    let rise = function(first + steps) - function(first);
    let slope = (rise / steps as f64 * one).round() as i64;
    let start = |step: i64| function(first + step) * one - (slope * step) as f64;
    let (low, high) = (0..steps)
        .map(start)
        .fold((f64::MAX, f64::MIN), |(low, high), start| (low.min(start), high.max(start)));
    let start = (f64::midpoint(low, high) + one / 2.0).round() as i64;
    [start.max((-slope * (steps - 1)).max(0)), slope]
}

/// The entries for the party that has a table.
fn held(role: Role, entries: &[u64]) -> &[u64] {
    match role {
        Role::Client => &[],
        Role::Server => entries,
    }
}

/// Runs the protocol.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub(super) fn run(channel: &mut Channel, plan: &Curve, z: &Share, mut pads: Pads) -> Result<Share> {
    let role = channel.role();
    let lines = match plan {
        Curve::Whole(table) => return digits::run(channel, table, z, pads),
        Curve::Lines(lines) => lines,
    };
    let now = pads.split(role, &lines.upper.need())?;
    let piece = truncate::run(channel, &lines.upper, z, now)?;
    let now = pads.split(role, &lines.start.need())?;
    let start = lookup::run(channel, &lines.start, &piece, held(role, &lines.starts), now)?;
    let slopes: Vec<u64> = lines.slopes.iter().map(|slope| *slope as u64).collect();
    let now = pads.split(role, &lines.slope.need())?;
    let slope = lookup::run(channel, &lines.slope, &piece, held(role, &slopes), now)?;
    let now = pads.split(role, &lines.product.need())?;
    let low = z.narrow(lines.drop)?;
    let rise = multiply::run(channel, &lines.product, &slope, &low, now)?;
    truncate::run(channel, &lines.rounding, &start.add_scaled(&rise, 1), pads)
}
