//! A smooth public function of few bits, not below zero.
//!
//! | | |
//! |---|---|
//! | In | shares of z mod 2^bits, bits from 1 to 14, read as `0 <= z < 2^bits`; where the curve mirrors, xor shares of a bit; correlations |
//! | Out | shares of the curve's value at z, or of `span` minus it where the bit is set, mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | whole: a table of narrow entries (`digits.rs`); lines: a truncation, a start and a slope for each piece (`ends.rs`), a narrow product by the carry that the truncation found, a truncation; a choice among shares where it mirrors |
//! | Paper | Rathee et al., SiRNN (S&P 2021), splines and tables of truncated arguments |
//!
//! Values are those of [`graph::functions::curve`].

use graph::functions::curve;
use ring::Bits;
use wire::{Channel, Cost, Result, Role};
use zeroize::Zeroizing;

use super::digits::{self, Digits};
use super::ends::{self, Ends};
use crate::arithmetic::extend::Sign;
use crate::arithmetic::multiply::{self, Factor, Multiply};
use crate::arithmetic::truncate::{self, Truncate};
use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::nonlinear::clamp::Inside;
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
    /// Width of the points.
    wide: u32,
    pieces: Truncate,
    /// Starts, and what slopes are above the least, by one choice.
    ends: Ends,
    product: Multiply,
    mirror: Option<Mirror>,
    rounding: Truncate,
}

/// A choice between a point and what is left of the span by it.
#[derive(Clone, Debug)]
struct Mirror {
    /// The span and one, with the bits after the point of lines, whose halves round both.
    span: i64,
    choice: Inside,
    /// Who spoke last before.
    first: Role,
}

impl Curve {
    /// `count` values of `curve`, or with a `span` of what the curve leaves of it where a bit is
    /// set.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] for widths that its parts have not.
    pub(super) fn new(
        count: usize,
        curve: &curve::Curve,
        out_bits: u32,
        radix: Radix,
        span: Option<i64>,
    ) -> Result<Self> {
        match curve {
            curve::Curve::Whole(entries) => {
                let table = Digits::new(count, entries.clone(), out_bits)?;
                Ok(Self::Whole(span.into_iter().fold(table, Digits::mirrored)))
            }
            curve::Curve::Lines(lines) => {
                let lines = Lines::new(count, lines, out_bits, radix, span)?;
                Ok(Self::Lines(Box::new(lines)))
            }
        }
    }

    /// With entries looked up by OT, in fewer rounds and often more bytes.
    pub(super) fn by_transfers(self) -> Self {
        match self {
            Self::Whole(table) => Self::Whole(table.by_transfers()),
            Self::Lines(lines) => {
                let Lines { ends, .. } = *lines;
                Self::Lines(Box::new(Lines { ends: ends.by_transfers(), ..*lines }))
            }
        }
    }

    /// With parts of a table that whoever spoke last begins, which `first` did before all; lines
    /// stay as they are.
    pub(super) fn in_turns(self, first: Role) -> Self {
        match self {
            Self::Whole(table) => Self::Whole(table.in_turns(first)),
            lines @ Self::Lines(_) => lines,
        }
    }

    /// With a table of fewer levels and more bits; lines stay as they are.
    pub(super) fn shallow(self) -> Self {
        match self {
            Self::Whole(table) => Self::Whole(table.shallow()),
            lines @ Self::Lines(_) => lines,
        }
    }

    /// Correlations consumed.
    pub(super) fn demand(&self) -> Demand {
        match self {
            Self::Whole(table) => table.demand(),
            Self::Lines(lines) => {
                let mirror = lines.mirror.as_ref().map(|mirror| mirror.choice.demand());
                let points = lines.points() + mirror.unwrap_or_default();
                points + lines.rounding.demand()
            }
        }
    }

    /// What [`run`] costs.
    pub(super) fn cost(&self) -> Cost {
        match self {
            Self::Whole(table) => table.cost(),
            Self::Lines(lines) => {
                let ends = lines.pieces.cost().then(lines.ends.cost());
                let mirror = lines.mirror.as_ref();
                let mirror = mirror.map_or(Cost::NONE, |mirror| mirror.choice.cost(mirror.first));
                ends.then(lines.product.cost()).then(mirror).then(lines.rounding.cost())
            }
        }
    }
}

impl Lines {
    fn new(
        count: usize,
        lines: &curve::Lines,
        out_bits: u32,
        radix: Radix,
        span: Option<i64>,
    ) -> Result<Self> {
        let (pieces, drop, fraction) = (lines.pieces, lines.drop, lines.fraction);
        let span = span.map(|span| (span + 1) << fraction);
        let wide = span.map_or(lines.width, |span| lines.width.max(span.max(1).ilog2() + 1));
        // A bit to spare, where the result is extended, saves the extension's comparison.
        let extends = out_bits > wide - fraction;
        let wide = wide + u32::from(extends);
        let sign = if extends { Sign::NonNegative } else { Sign::Unsigned };
        let factors = [
            Factor { bits: lines.slope_bits, sign: Sign::NonNegative },
            Factor { bits: drop, sign: Sign::Unsigned },
        ];
        let carried = wide.saturating_sub(drop).max(1);
        let product = Multiply::told(count, factors, wide, radix)?;
        let choice = Inside { count, bits: wide, cap: None, out_bits: wide, asks: Role::Client };
        let first = product.cost().last.unwrap_or(Role::Client);
        let slopes = lines.slopes.iter().map(|slope| (slope - lines.least) as u64).collect();
        let entries = [lines.starts.clone(), slopes];
        Ok(Self {
            wide,
            pieces: Truncate::splitting(count, [pieces + drop, drop, carried], radix)?,
            ends: Ends::new(count, entries, [wide, lines.slope_bits])?,
            product,
            mirror: span.map(|span| Mirror { span, choice, first }),
            rounding: Truncate::widening(count, wide, fraction, out_bits, sign, radix)?,
            lines: lines.clone(),
        })
    }

    /// Correlations of the points.
    fn points(&self) -> Demand {
        self.pieces.demand() + self.ends.demand() + self.product.demand()
    }
}

/// Runs the protocol; `mirrors` are the bits of a curve that mirrors.
///
/// # Errors
/// [`wire::Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub(super) fn run(
    channel: &mut Channel,
    plan: &Curve,
    (z, mirrors): (&Share, Option<&Bits>),
    mut ots: Correlations,
) -> Result<Share> {
    let role = channel.role();
    let lines = match plan {
        Curve::Whole(table) => return digits::run(channel, table, (z, mirrors), ots),
        Curve::Lines(lines) => lines,
    };
    let now = ots.split(role, &lines.pieces.demand())?;
    let mut parts = truncate::run_split(channel, &lines.pieces, z, now)?;
    let carry = Zeroizing::new(std::mem::take(&mut parts.carry));
    let now = ots.split(role, &lines.ends.demand())?;
    let [start, slope] = ends::run(channel, &lines.ends, &parts.upper, now)?;
    let now = ots.split(role, &lines.product.demand())?;
    let low = z.narrow(lines.lines.drop)?;
    let told = (&low, Some(&*carry));
    let rise = multiply::run_told(channel, &lines.product, &slope, told, now)?;
    let least = parts.lower.narrow(lines.wide)?;
    let mut point = start.add_scaled(&rise, 1).add_scaled(&least, lines.lines.least);
    if let (Some(mirror), Some(bit)) = (&lines.mirror, mirrors) {
        let zero = Share::new(vec![0; point.len()], lines.wide);
        let other = zero.add_scaled(&point, -2).plus(role, mirror.span);
        let now = ots.split(role, &mirror.choice.demand())?;
        let (choice, first) = (&mirror.choice, mirror.first);
        let change = choice.run(channel, first, other.words(), [bit, bit], now)?;
        point = point.add_scaled(&change, 1);
    }
    truncate::run(channel, &lines.rounding, &point, ots)
}
