//! Softmax over the rows of a matrix.
//!
//! | | |
//! |---|---|
//! | In | shares of x mod 2^bits, `-2^(bits-2) <= x < 2^(bits-2)` in steps of `scale`, rows of equal length; correlations |
//! | Out | shares of about `(2^(out_bits-1) - 1) * softmax(x*scale)` mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a maximum unless values have a near bound, an exponential, a product with the row's reciprocal and a truncation per element; an extension and a reciprocal per row, the latter by OT or a garbled circuit ([`Softmax::cost`]) |
//! | Paper | Rathee et al., SiRNN (S&P 2021), for the reciprocal |
//!
//! The function is [`functions::Softmax`].

use graph::functions;
use wire::{Channel, Cost, Error, Result, Role};

use super::exponent::{self, Exponent};
use super::inverse::{self, Inverse};
use super::rounding::Rounding;
use crate::arithmetic::extend::{self, Extend, Sign};
use crate::arithmetic::rescale::Rescale;
use crate::arithmetic::rows::{self, Rows};
use crate::arithmetic::truncate::Truncate;
use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
pub use crate::estimate::Distance;
use crate::nonlinear::maximum::{self, Maximum, Tournament};
use crate::nonlinear::row_maximum::{self, RowMaximum};
use crate::protocol::{Protocol, input};
use crate::share::{Share, server_only};
use crate::turns;

/// The public plan of one layer.
#[derive(Clone, Debug)]
pub struct Softmax {
    rows: usize,
    function: functions::Softmax,
    /// The largest of each row, where no public bound takes its place.
    maximum: Option<Largest>,
    exponent: Exponent,
    /// The extension of what the lower bits of exponentials add up to, by row; none where those
    /// are as wide as the sums.
    lower: Option<Extend>,
    reciprocal: Inverse,
    product: Rows,
    rounding: Rounding,
    radix: Radix,
    /// The width of results.
    out_bits: u32,
}

/// How the largest of each row is found.
#[derive(Clone, Debug)]
enum Largest {
    Tournament(Box<Maximum>),
    Stages(RowMaximum),
}

impl Largest {
    fn demand(&self) -> Demand {
        match self {
            Self::Tournament(plan) => plan.demand(),
            Self::Stages(plan) => plan.demand(),
        }
    }

    fn cost(&self) -> Cost {
        match self {
            Self::Tournament(plan) => plan.cost(),
            Self::Stages(plan) => plan.cost(),
        }
    }

    fn run(&self, channel: &mut Channel, x: &Share, ots: Correlations) -> Result<Share> {
        match self {
            Self::Tournament(plan) => maximum::run(channel, plan, x, None, ots)?
                .pop()
                .ok_or_else(|| defect("a maximum has no output")),
            Self::Stages(plan) => row_maximum::run(channel, plan, x, ots),
        }
    }
}

impl Softmax {
    /// Plans `rows` of as many values as the function has columns, by OT.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other sizes than protocols have.
    pub fn new(rows: usize, function: &functions::Softmax, radix: Radix) -> Result<Self> {
        let reciprocal = || Inverse::new(rows, &function.reciprocal, radix);
        Self::with(rows, function, radix, reciprocal)
    }

    /// Plans the layer with a garbled circuit for each row's reciprocal. The rest stays by
    /// oblivious transfers.
    ///
    /// # Errors
    /// As [`Softmax::new`].
    pub fn with_circuits(rows: usize, function: &functions::Softmax, radix: Radix) -> Result<Self> {
        Self::with(rows, function, radix, || Inverse::by_circuit(rows, &function.reciprocal))
    }

    fn with(
        rows: usize,
        function: &functions::Softmax,
        radix: Radix,
        reciprocal: impl FnOnce() -> Result<Inverse>,
    ) -> Result<Self> {
        let functions::Softmax { cols, bits, out_bits, drop, factor_bits, .. } = *function;
        let (width, sums) = (function.width(), function.reciprocal.bits);
        let count = rows.checked_mul(cols).filter(|count| count.checked_mul(64).is_some());
        let count = count.ok_or_else(|| Error::misuse("a softmax of these sizes"))?;
        let wide = Self::wide(function);
        let narrow = function.exponent.lower + cols.next_power_of_two().ilog2() + 1;
        let maximum = || -> Result<Largest> {
            let draw = Tournament::of_row(cols)?.copies(rows);
            Ok(Largest::Tournament(Box::new(Maximum::new(draw, bits, None, radix)?)))
        };
        let maximum = function.top.is_none().then(maximum).transpose()?;
        Ok(Self {
            rows,
            maximum,
            exponent: Exponent::new(count, &function.exponent, [wide, narrow]),
            lower: Some(Extend::new(rows, narrow, sums, Sign::NonNegative, radix)?),
            reciprocal: reciprocal()?,
            product: Rows::new(rows, cols, width, factor_bits)?,
            rounding: Rounding::apart(
                Truncate::widening(count, width, drop, out_bits, Sign::NonNegative, radix)?,
                None,
            ),
            radix,
            out_bits,
            function: function.clone(),
        })
    }

    /// Plans the layer with shares of results that are wider than the function has them. It is for plans
    /// that do not go in turns yet.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths that are not larger, or beyond 63 bits.
    pub fn to_width(self, out_bits: u32) -> Result<Self> {
        let Rounding::Apart(both) = self.rounding else {
            return Err(Error::misuse("a softmax that is made wider when it goes in turns"));
        };
        let (count, from) = (self.rows * self.function.cols, self.function.out_bits);
        let wider = Extend::new(count, from, out_bits, Sign::NonNegative, self.radix)?;
        Ok(Self { rounding: Rounding::apart(both.0, Some(wider)), out_bits, ..self })
    }

    /// The width of the upper bits of exponentials: what sums of them need, with the lower bits
    /// below.
    fn wide(function: &functions::Softmax) -> u32 {
        let sums = function.reciprocal.bits;
        function.width().max(sums.saturating_sub(function.exponent.lower))
    }

    /// Plans the layer in turns, with maxima in fewer rounds, tables of fewer levels and lower bits of
    /// exponentials as wide as their sums from the start: fewer rounds, more bytes. Between parties that
    /// are near maxima take fewer bytes and more rounds than between others.
    ///
    /// # Errors
    /// As [`Softmax::new`].
    pub fn shallow(self, radix: Radix, distance: Distance) -> Result<Self> {
        let functions::Softmax { cols, bits, .. } = self.function;
        let widths = [Self::wide(&self.function), self.function.reciprocal.bits];
        let exponent = Exponent::new(self.rows * cols, &self.function.exponent, widths);
        let plan =
            Self { exponent: exponent.shallow(&self.function.exponent), lower: None, ..self };
        let stages = || RowMaximum::new([plan.rows, cols], bits, radix, distance);
        let stages = plan.maximum.as_ref().map(|_| stages()).transpose()?;
        let plan = Self { maximum: None, ..plan };
        let begun_by = |first: Role| {
            let maximum = stages.clone().map(|stages| Largest::Stages(stages.begun_by(first)));
            Self { maximum, ..plan.clone() }.turned(first)
        };
        let [client, server] = [begun_by(Role::Client)?, begun_by(Role::Server)?];
        Ok(if server.cost().rounds < client.cost().rounds { server } else { client })
    }

    /// Plans the layer with parts that whoever spoke last begins, wherever either party may: fewer
    /// rounds of the same bytes.
    ///
    /// # Errors
    /// As [`Softmax::new`].
    pub fn in_turns(self) -> Result<Self> {
        self.turned(Role::Client)
    }

    /// In turns, the exponential being begun by `first` where there is no maximum.
    fn turned(self, first: Role) -> Result<Self> {
        let maximum = self.maximum.as_ref().map_or(Cost::NONE, Largest::cost);
        let first = turns::after(maximum, first);
        let exponent = self.exponent.in_turns(first);
        let last = turns::after(exponent.cost(), first);
        let lower = self.lower.map(|lower| lower.begun_by(last));
        let last = turns::after(lower.as_ref().map_or(Cost::NONE, Extend::cost), last);
        let last = turns::after(self.reciprocal.cost(), last);
        let product = self.product.begun_by(last);
        let last = turns::after(product.cost(), last);
        let functions::Softmax { cols, drop, .. } = self.function;
        let widths = [self.function.width(), drop, self.out_bits];
        let rounding = match self.radix {
            Radix::Chain => {
                Rounding::Beside(Box::new(Rescale::new(self.rows * cols, widths, last)?))
            }
            _ => self.rounding.begun_by(last)?,
        };
        Ok(Self { exponent, lower, product, rounding, ..self })
    }

    /// Returns what is computed of each row.
    pub fn function(&self) -> &functions::Softmax {
        &self.function
    }

    /// Returns the number of AND gates of all rows: none by OT.
    pub fn and_gates(&self) -> usize {
        self.reciprocal.and_gates()
    }

    /// The OTs of the extension of sums.
    fn extending(&self) -> Demand {
        self.lower.as_ref().map(Extend::demand).unwrap_or_default()
    }

    /// How far each value is below the maximum of its row.
    fn below(&self, x: &Share, largest: &Share) -> Share {
        let mut below = Vec::with_capacity(x.len());
        for (row, top) in x.words().chunks(self.function.cols).zip(largest.words()) {
            below.extend(row.iter().map(|x| top.wrapping_sub(*x)));
        }
        Share::new(below, self.function.bits)
    }

    /// The sums of rows, mod 2^bits.
    fn sums(&self, values: &Share, bits: u32) -> Share {
        let rows = values.words().chunks(self.function.cols);
        let sum = |row: &[u64]| row.iter().fold(0u64, |sum, value| sum.wrapping_add(*value));
        Share::new(rows.map(sum).collect(), bits)
    }

    /// The sums of exponentials, from their upper and their lower bits.
    fn totals(
        &self,
        channel: &mut Channel,
        [upper, lower]: [&Share; 2],
        ots: Correlations,
    ) -> Result<Share> {
        let (function, role) = (&self.function, channel.role());
        let bits = self.reciprocal.bits();
        let lower = self.sums(lower, lower.bits());
        let lower = match &self.lower {
            Some(extension) => extend::run(channel, extension, &lower, ots)?,
            None => lower,
        };
        let halves = function.cols as i64 * function.exponent.half();
        let upper = self.sums(upper, bits);
        Ok(lower.add_scaled(&upper, 1 << function.exponent.lower).plus(role, -halves))
    }
}

/// Runs the layer.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &Softmax,
    x: &Share,
    mut ots: Correlations,
) -> Result<Share> {
    x.check(plan.rows * plan.function.cols, plan.function.bits, "softmax")?;
    let role = channel.role();
    let largest = match &plan.maximum {
        Some(maximum) => {
            let now = ots.split(role, &maximum.demand())?;
            maximum.run(channel, x, now)?
        }
        None => {
            let top = server_only(role, plan.function.top.unwrap_or(0) as u64);
            Share::new(vec![top; plan.rows], plan.function.bits)
        }
    };
    let below = plan.below(x, &largest).narrow(plan.function.bits - 1)?;
    let now = ots.split(role, &plan.exponent.demand())?;
    let [upper, lower] = exponent::run(channel, &plan.exponent, &below, now)?;
    let now = ots.split(role, &plan.extending())?;
    let totals = plan.totals(channel, [&upper, &lower], now)?;
    let now = ots.split(role, &plan.reciprocal.demand())?;
    let factors = inverse::run(channel, &plan.reciprocal, &totals, now)?;
    let factors = factors.narrow(plan.function.factor_bits)?;
    let now = ots.split(role, &plan.product.demand())?;
    let upper = upper.narrow(plan.function.width())?;
    let shares = rows::run(channel, &plan.product, &upper, &factors, now)?;
    plan.rounding.run(channel, &shares.plus(role, plan.function.half()), ots)
}

impl Protocol for Softmax {
    fn operator(&self) -> &'static str {
        "softmax"
    }

    fn describe(&self) -> String {
        let first = if self.maximum.is_some() { "maximum, tables" } else { "tables" };
        match self.and_gates() {
            0 => format!("{first} and products by OT"),
            _ => format!("{first} and products by OT, reciprocals by garbled circuits"),
        }
    }

    fn demand(&self) -> Demand {
        let maximum = self.maximum.as_ref().map(Largest::demand).unwrap_or_default();
        let exponents = maximum + self.exponent.demand() + self.extending();
        exponents + self.reciprocal.demand() + self.product.demand() + self.rounding.demand()
    }

    fn cost(&self) -> Cost {
        let maximum = self.maximum.as_ref().map_or(Cost::NONE, Largest::cost);
        let lower = self.lower.as_ref().map_or(Cost::NONE, Extend::cost);
        let exponents = maximum.then(self.exponent.cost()).then(lower);
        let factors = exponents.then(self.reciprocal.cost());
        factors.then(self.product.cost()).then(self.rounding.cost())
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        run(channel, self, input(inputs, 0)?, ots)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
