//! A smooth public function of few bits, not below zero.
//!
//! | | |
//! |---|---|
//! | In | shares of z mod 2^bits, bits from 1 to 14, read as `0 <= z < 2^bits`; correlations |
//! | Out | shares of the curve's value at z, mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | up to 8 bits: a table of narrow entries (`digits.rs`); beyond: a truncation, two tables of 64, a narrow product, a truncation |
//! | Paper | Rathee et al., SiRNN (S&P 2021), splines and tables of truncated arguments |
//!
//! Values are those of [`graph::functions::curve`].

use graph::functions::curve::{self, PIECES};
use wire::{Channel, Cost, Result, Role};

use super::digits::{self, Digits};
use crate::arithmetic::extend::Sign;
use crate::arithmetic::multiply::{self, Factor, Multiply};
use crate::arithmetic::truncate::{self, Truncate};
use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::nonlinear::lookup::{self, Lookup};
use crate::protocol::Protocol;
use crate::share::Share;

/// The public plan.
#[derive(Clone, Debug)]
pub(super) enum Curve {
    /// A table of all values.
    Whole(Digits),
    /// A straight line on each piece.
    Lines(Box<Lines>),
}

/// Lines through pieces.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    lines: curve::Lines,
    upper: Truncate,
    start: Lookup,
    slope: Lookup,
    product: Multiply,
    rounding: Truncate,
}

impl Curve {
    /// `count` values of `curve`.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] for widths that its parts have not.
    pub(super) fn new(
        count: usize,
        curve: &curve::Curve,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let lines = match curve {
            curve::Curve::Whole(entries) => {
                return Ok(Self::Whole(Digits::new(count, entries.clone(), out_bits)?));
            }
            curve::Curve::Lines(lines) => lines.clone(),
        };
        let (drop, wide) = (lines.drop, lines.width);
        let factors = [
            Factor { bits: lines.slope_bits, sign: Sign::Unknown },
            Factor { bits: drop, sign: Sign::Unsigned },
        ];
        let (fraction, sign) = (lines.fraction, Sign::Unsigned);
        Ok(Self::Lines(Box::new(Lines {
            upper: Truncate::new(count, curve.bits(), drop, PIECES, radix)?,
            start: Lookup::new(count, PIECES, wide)?,
            slope: Lookup::new(count, PIECES, lines.slope_bits)?,
            product: Multiply::new(count, factors, wide, radix)?,
            rounding: Truncate::widening(count, wide, fraction, out_bits, sign, radix)?,
            lines,
        })))
    }

    /// Correlations consumed.
    pub(super) fn demand(&self) -> Demand {
        match self {
            Self::Whole(table) => table.demand(),
            Self::Lines(lines) => {
                let tables = lines.start.demand() + lines.slope.demand();
                lines.upper.demand() + tables + lines.product.demand() + lines.rounding.demand()
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
/// [`wire::Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub(super) fn run(
    channel: &mut Channel,
    plan: &Curve,
    z: &Share,
    mut ots: Correlations,
) -> Result<Share> {
    let role = channel.role();
    let lines = match plan {
        Curve::Whole(table) => return digits::run(channel, table, z, ots),
        Curve::Lines(lines) => lines,
    };
    let now = ots.split(role, &lines.upper.demand())?;
    let piece = truncate::run(channel, &lines.upper, z, now)?;
    let now = ots.split(role, &lines.start.demand())?;
    let start = lookup::run(channel, &lines.start, &piece, held(role, &lines.lines.starts), now)?;
    let slopes: Vec<u64> = lines.lines.slopes.iter().map(|slope| *slope as u64).collect();
    let now = ots.split(role, &lines.slope.demand())?;
    let slope = lookup::run(channel, &lines.slope, &piece, held(role, &slopes), now)?;
    let now = ots.split(role, &lines.product.demand())?;
    let low = z.narrow(lines.lines.drop)?;
    let rise = multiply::run(channel, &lines.product, &slope, &low, now)?;
    truncate::run(channel, &lines.rounding, &start.add_scaled(&rise, 1), ots)
}
