//! A smooth public function of few bits, not below zero.
//!
//! | | |
//! |---|---|
//! | In | shares of z mod 2^bits, bits from 1 to 14, read as `0 <= z < 2^bits`; where the curve mirrors, xor shares of a bit; correlations |
//! | Out | shares of the curve's value at z, or of `span` minus it where the bit is set, mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | whole: a table of narrow entries (`digits.rs`); lines: a truncation, two tables of an entry for each piece, a narrow product, a truncation; a choice among shares where it mirrors |
//! | Paper | Rathee et al., SiRNN (S&P 2021), splines and tables of truncated arguments |
//!
//! Values are those of [`graph::functions::curve`].

use graph::functions::curve;
use ring::Bits;
use wire::{Channel, Cost, Result, Role};

use super::digits::{self, Digits};
use crate::arithmetic::extend::Sign;
use crate::arithmetic::multiply::{self, Factor, Multiply};
use crate::arithmetic::truncate::{self, Truncate};
use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::nonlinear::clamp::Inside;
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

/// What becomes of a curve's points.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ending {
    /// Whether points are looked up with a bit to spare, so that none wraps and the extension of
    /// the result takes no comparison, and whether slopes of one sign are looked up without it, so
    /// that their products take none either. A table has no need of it.
    pub(super) headroom: bool,
    /// What is left of by the curve's value where a bit is set.
    pub(super) span: Option<i64>,
}

/// Lines through pieces.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    lines: curve::Lines,
    /// Width of the points.
    wide: u32,
    /// What slopes are looked up times: -1 where none rises and that saves a comparison.
    turned: i64,
    upper: Truncate,
    start: Lookup,
    slope: Lookup,
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
    /// `count` values of `curve`.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] for widths that its parts have not.
    pub(super) fn new(
        count: usize,
        curve: &curve::Curve,
        out_bits: u32,
        radix: Radix,
        ending: Ending,
    ) -> Result<Self> {
        match curve {
            curve::Curve::Whole(entries) => {
                let table = Digits::new(count, entries.clone(), out_bits)?;
                Ok(Self::Whole(ending.span.into_iter().fold(table, Digits::mirrored)))
            }
            curve::Curve::Lines(lines) => {
                let lines = Lines::new(count, lines, out_bits, radix, ending)?;
                Ok(Self::Lines(Box::new(lines)))
            }
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
                let upper = lines.upper.cost().then(lines.start.cost()).then(lines.slope.cost());
                let mirror = lines.mirror.as_ref();
                let mirror = mirror.map_or(Cost::NONE, |mirror| mirror.choice.cost(mirror.first));
                upper.then(lines.product.cost()).then(mirror).then(lines.rounding.cost())
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
        ending: Ending,
    ) -> Result<Self> {
        let (pieces, drop, fraction) = (lines.pieces, lines.drop, lines.fraction);
        let span = ending.span.map(|span| (span + 1) << fraction);
        let wide = span.map_or(lines.width, |span| lines.width.max(span.max(1).ilog2() + 1));
        let wide = wide + u32::from(ending.headroom);
        let [falls, rises] = [-1, 1].map(|sign| lines.slopes.iter().all(|slope| slope * sign >= 0));
        let (known, turned) = (ending.headroom && (falls || rises), if rises { 1 } else { -1 });
        let of_slopes = if known { Sign::NonNegative } else { Sign::Unknown };
        let factors = [
            Factor { bits: lines.slope_bits, sign: of_slopes },
            Factor { bits: drop, sign: Sign::Unsigned },
        ];
        let sign = if ending.headroom { Sign::NonNegative } else { Sign::Unsigned };
        let product = Multiply::new(count, factors, wide, radix)?;
        let choice = Inside { count, bits: wide, cap: None, out_bits: wide, asks: Role::Client };
        let first = product.cost().last.unwrap_or(Role::Client);
        Ok(Self {
            wide,
            turned: if known { turned } else { 1 },
            upper: Truncate::new(count, pieces + drop, drop, pieces, radix)?,
            start: Lookup::new(count, pieces, wide)?,
            slope: Lookup::new(count, pieces, lines.slope_bits)?,
            product,
            mirror: span.map(|span| Mirror { span, choice, first }),
            rounding: Truncate::widening(count, wide, fraction, out_bits, sign, radix)?,
            lines: lines.clone(),
        })
    }

    /// Slopes as they are looked up.
    fn slopes(&self) -> Vec<u64> {
        self.lines.slopes.iter().map(|slope| (slope * self.turned) as u64).collect()
    }

    /// Correlations of the points.
    fn points(&self) -> Demand {
        let tables = self.start.demand() + self.slope.demand();
        self.upper.demand() + tables + self.product.demand()
    }
}

/// The entries for the party that has a table.
fn held(role: Role, entries: &[u64]) -> &[u64] {
    match role {
        Role::Client => &[],
        Role::Server => entries,
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
    let now = ots.split(role, &lines.upper.demand())?;
    let piece = truncate::run(channel, &lines.upper, z, now)?;
    let now = ots.split(role, &lines.start.demand())?;
    let start = lookup::run(channel, &lines.start, &piece, held(role, &lines.lines.starts), now)?;
    let slopes: Vec<u64> = lines.slopes();
    let now = ots.split(role, &lines.slope.demand())?;
    let slope = lookup::run(channel, &lines.slope, &piece, held(role, &slopes), now)?;
    let now = ots.split(role, &lines.product.demand())?;
    let low = z.narrow(lines.lines.drop)?;
    let rise = multiply::run(channel, &lines.product, &slope, &low, now)?;
    let mut point = start.add_scaled(&rise, lines.turned);
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
