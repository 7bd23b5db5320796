//! Products of elements with their rows' factors.
//!
//! A factor is found once a row, which is how everything here works but benches of published
//! systems: those hand a row's sum to all of its elements first, so that each finds the factor
//! for itself and multiplies by it.

use wire::{Channel, Cost, Error, Result, Role};

use super::rows::{self, Rows};
use crate::arithmetic::multiply::{self, Factor, Multiply};
use crate::boolean::compare::Radix;
use crate::boolean::wrap::Sign;
use crate::correlations::{Correlations, Demand};
use crate::protocol::Protocol;
use crate::share::Share;

/// The public plan of products of `rows` times `cols` elements.
#[derive(Clone, Debug)]
pub(crate) struct Factors {
    cols: usize,
    /// How many factors are found.
    count: usize,
    product: Product,
}

#[derive(Clone, Debug)]
enum Product {
    Rows(Rows),
    Elements(Box<Multiply>),
}

impl Factors {
    /// One factor for each row; widths as those of [`Rows`].
    ///
    /// # Errors
    /// As [`Rows::new`].
    pub(crate) fn of_rows(rows: usize, cols: usize, [bits, factor]: [u32; 2]) -> Result<Self> {
        let product = Product::Rows(Rows::new(rows, cols, bits, factor)?);
        Ok(Self { cols, count: rows, product })
    }

    /// One factor for each element.
    ///
    /// # Errors
    /// As [`Multiply::new`].
    pub(crate) fn of_elements(
        rows: usize,
        cols: usize,
        widths: [u32; 2],
        radix: Radix,
    ) -> Result<Self> {
        let count = rows.checked_mul(cols).ok_or_else(|| Error::misuse("too many factors"))?;
        let factors = widths.map(|bits| Factor { bits, sign: Sign::NonNegative });
        let product = Product::Elements(Box::new(Multiply::new(count, factors, widths[0], radix)?));
        Ok(Self { cols, count, product })
    }

    /// Lets `first` begin where there is one factor for each row.
    pub(crate) fn begun_by(self, first: Role) -> Self {
        let product = match self.product {
            Product::Rows(plan) => Product::Rows(plan.begun_by(first)),
            elements @ Product::Elements(_) => elements,
        };
        Self { product, ..self }
    }

    /// How many factors there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Correlations consumed.
    pub(crate) fn demand(&self) -> Demand {
        match &self.product {
            Product::Rows(plan) => plan.demand(),
            Product::Elements(plan) => plan.demand(),
        }
    }

    /// What [`run`] costs.
    pub(crate) fn cost(&self) -> Cost {
        match &self.product {
            Product::Rows(plan) => plan.cost(),
            Product::Elements(plan) => plan.cost(),
        }
    }

    /// What each factor is found from, of what each row has.
    pub(crate) fn spread(&self, of_rows: Share) -> Share {
        match &self.product {
            Product::Rows(_) => of_rows,
            Product::Elements(_) => {
                let mut words = Vec::with_capacity(of_rows.len() * self.cols);
                for word in of_rows.words() {
                    words.resize(words.len() + self.cols, *word);
                }
                Share::new(words, of_rows.bits())
            }
        }
    }

    /// The factor of each row.
    pub(crate) fn by_row(&self, factors: &Share) -> Share {
        let step = match &self.product {
            Product::Rows(_) => 1,
            Product::Elements(_) => self.cols.max(1),
        };
        Share::new(factors.words().iter().step_by(step).copied().collect(), factors.bits())
    }
}

/// Multiplies: as [`rows::run`], whatever there is a factor of.
///
/// # Errors
/// As [`rows::run`] and [`multiply::run`].
pub(crate) fn run(
    channel: &mut Channel,
    plan: &Factors,
    x: &Share,
    factors: &Share,
    ots: Correlations,
) -> Result<Share> {
    match &plan.product {
        Product::Rows(plan) => rows::run(channel, plan, x, factors, ots),
        Product::Elements(plan) => multiply::run(channel, plan, x, factors, ots),
    }
}
