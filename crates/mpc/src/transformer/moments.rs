//! What a layer norm needs of each row: a factor, and what the row is moved by unless its mean stays.
//!
//! | | |
//! |---|---|
//! | In | for each row shares of the sum of squares mod 2^squares and of the sum s mod 2^sum_bits, neither negative; correlations |
//! | Out | shares of f, about `unit*n/sqrt(v)` for `v = n*squares - s^2`, and of `s*f/n`; where no mean is taken off, of f for `v = n*squares` |
//! | Reveals | nothing but masked choices and openings, masked shares and labels |
//! | Security | semi-honest, given the correlations |
//! | Cost | by OT an extension, a square, an inverse root, a product and a truncation; or one garbled circuit, 2 rounds ([`Moments::cost`]) |
//! | Paper | Rathee et al., SiRNN (S&P 2021), inverse root by normalisation and a table; circuits as [`crate::garbled`] |
//!
//! The integers are those of [`functions::LayerNorm`].

use gc::{Builder, Ring, Word};
use graph::functions;
use graph::functions::root::Rooted;
use wire::{Channel, Cost, Error, Result};

use super::circuits;
use super::inverse::{self, Inverse};
use crate::arithmetic::extend::{self, Extend, Sign};
use crate::arithmetic::factors::Factors;
use crate::arithmetic::multiply::{self, Factor, Multiply};
use crate::arithmetic::square::{self, Square};
use crate::arithmetic::truncate::{self, Truncate};
use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::garbled::{self, Garbled};
use crate::nonlinear::comet::straight_line::{self, Program};
use crate::protocol::Protocol;
use crate::share::Share;

/// The public plan.
#[derive(Clone, Debug)]
pub(super) enum Moments {
    Ots(Box<Ots>),
    Circuit(Garbled),
}

/// By OT.
#[derive(Clone, Debug)]
pub(super) struct Ots {
    cols: u64,
    /// Width of variances.
    variance: u32,
    /// The extension of the sums of squares, where they are needed wider.
    sum: Option<Extend>,
    root: Root,
    mean: Option<Mean>,
}

/// What the mean of a row takes, where it is taken off.
#[derive(Clone, Debug)]
struct Mean {
    squared: Square,
    quotient: u64,
    shifted: Multiply,
    truncation: Truncate,
}

impl Mean {
    fn new(rows: usize, function: &functions::LayerNorm, radix: Radix) -> Result<Self> {
        let functions::LayerNorm { element, moved, sum_bits, quotient, .. } = *function;
        let [variance, factor] = function.root.bits();
        let known = |bits| Factor { bits, sign: Sign::NonNegative };
        Ok(Self {
            squared: Square::new(rows, known(sum_bits), variance, radix)?,
            quotient: quotient.0 as u64,
            shifted: Multiply::new(rows, [known(sum_bits), known(factor)], moved, radix)?,
            truncation: Truncate::new(rows, moved, quotient.1, element, radix)?,
        })
    }

    /// What every row is moved by, `sum*factor/cols`.
    fn moved(
        &self,
        channel: &mut Channel,
        sum: &Share,
        factor: &Share,
        mut ots: Correlations,
    ) -> Result<Share> {
        let now = ots.split(channel.role(), &self.shifted.demand())?;
        let product = multiply::run(channel, &self.shifted, sum, factor, now)?;
        let scaled = product.words().iter().map(|word| word.wrapping_mul(self.quotient)).collect();
        let scaled = Share::new(scaled, self.shifted.out_bits());
        truncate::run(channel, &self.truncation, &scaled, ots)
    }
}

/// How a row's factor is found.
#[derive(Clone, Debug)]
enum Root {
    Table(Box<Inverse>),
    Newton(Box<Program>),
}

impl Root {
    fn new(rows: usize, function: &Rooted, radix: Radix) -> Result<Self> {
        Ok(match function {
            Rooted::Table(inverse) => Self::Table(Box::new(Inverse::new(rows, inverse, radix)?)),
            Rooted::Newton(root) => {
                let bits = root.straight_line.bits()[0];
                Self::Newton(Box::new(Program::new(rows, &root.straight_line, bits, radix)?))
            }
        })
    }

    fn demand(&self) -> Demand {
        match self {
            Self::Table(plan) => plan.demand(),
            Self::Newton(plan) => plan.demand(),
        }
    }

    fn cost(&self) -> Cost {
        match self {
            Self::Table(plan) => plan.cost(),
            Self::Newton(plan) => plan.cost(),
        }
    }

    fn run(&self, channel: &mut Channel, y: &Share, ots: Correlations) -> Result<Share> {
        match self {
            Self::Table(plan) => inverse::run(channel, plan, y, ots),
            Self::Newton(plan) => straight_line::run(channel, plan, y, ots),
        }
    }
}

/// Width of shares of a row's sum of squares.
pub(super) fn squares_bits(function: &functions::LayerNorm) -> u32 {
    2 * (function.bits - 1) + function.cols.next_power_of_two().ilog2() + 1
}

impl Moments {
    /// `rows` by OT, with an inverse root for each of `roots`, rows or elements.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths that no protocol has.
    pub(super) fn new(
        [rows, roots]: [usize; 2],
        function: &functions::LayerNorm,
        radix: Radix,
    ) -> Result<Self> {
        let ([variance, _], squares) = (function.root.bits(), squares_bits(function));
        let extend = || Extend::new(rows, squares, variance, Sign::NonNegative, radix);
        Ok(Self::Ots(Box::new(Ots {
            cols: function.cols as u64,
            variance,
            sum: (squares < variance).then(extend).transpose()?,
            root: Root::new(roots, &function.root, radix)?,
            mean: function.centred.then(|| Mean::new(rows, function, radix)).transpose()?,
        })))
    }

    /// `rows` by garbled circuits, one each.
    ///
    /// # Errors
    /// [`Error::Misuse`] for roots by Newton's iteration, and for widths that no circuit has.
    pub(super) fn by_circuit(rows: usize, function: &functions::LayerNorm) -> Result<Self> {
        let Rooted::Table(root) = &function.root else {
            return Err(Error::misuse("a circuit of Newton's iterations"));
        };
        circuits::check(root)?;
        let squares = squares_bits(function);
        let circuit = |values: &[Word], b: &mut Builder| match values {
            [squares] => vec![circuits::factor(b, function, root, squares)],
            [squares, sum] => circuits::factor_and_mean(b, function, root, [squares, sum]).into(),
            _ => Vec::new(),
        };
        // Neither has its top bit.
        let widths = [squares - 1, function.sum_bits - 1];
        let to = [root.out_bits, function.element].map(Ring::Power);
        let lists = if function.centred { 2 } else { 1 };
        let (widths, to) = (&widths[..lists], &to[..lists]);
        Garbled::lists(rows, Ring::Power(squares), widths, circuit, to).map(Self::Circuit)
    }

    /// AND gates of all rows: none by OT.
    pub(super) fn and_gates(&self) -> usize {
        match self {
            Self::Ots(_) => 0,
            Self::Circuit(plan) => plan.and_gates(),
        }
    }

    /// Correlations consumed.
    pub(super) fn demand(&self) -> Demand {
        match self {
            Self::Ots(plan) => plan.demand(),
            Self::Circuit(plan) => plan.demand(),
        }
    }

    /// What [`run`] costs.
    pub(super) fn cost(&self) -> Cost {
        match self {
            Self::Ots(plan) => plan.cost(),
            Self::Circuit(plan) => plan.cost(),
        }
    }
}

impl Ots {
    fn demand(&self) -> Demand {
        let sum = self.sum.as_ref().map(Extend::demand).unwrap_or_default();
        let Some(mean) = &self.mean else { return sum + self.root.demand() };
        let factor = sum + mean.squared.demand() + self.root.demand();
        factor + mean.shifted.demand() + mean.truncation.demand()
    }

    fn cost(&self) -> Cost {
        let sum = self.sum.as_ref().map_or(Cost::NONE, Extend::cost);
        let Some(mean) = &self.mean else { return sum.then(self.root.cost()) };
        let factor = sum.then(mean.squared.cost()).then(self.root.cost());
        factor.then(mean.shifted.cost()).then(mean.truncation.cost())
    }

    /// `cols*squares - sum^2`, or `cols*squares` where no mean is taken off, from shares of the
    /// sums of squares.
    fn variance(
        &self,
        channel: &mut Channel,
        squares: &Share,
        sum: &Share,
        ots: &mut Correlations,
    ) -> Result<Share> {
        let role = channel.role();
        let squares = match &self.sum {
            Some(plan) => {
                let now = ots.split(role, &plan.demand())?;
                extend::run(channel, plan, squares, now)?
            }
            None => squares.narrow(self.variance)?,
        };
        let scaled = squares.words().iter().map(|word| word.wrapping_mul(self.cols));
        let scaled = Share::new(scaled.collect(), self.variance);
        let Some(mean) = &self.mean else { return Ok(scaled) };
        let now = ots.split(role, &mean.squared.demand())?;
        let squared = square::run(channel, &mean.squared, sum, now)?;
        Ok(scaled.add_scaled(&squared, -1))
    }
}

/// Runs the protocol: the factors, as many as `product` takes, and what each row is moved by, if
/// it is.
///
/// # Errors
/// [`Error::Misuse`] when the shares or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub(super) fn run(
    channel: &mut Channel,
    plan: &Moments,
    product: &Factors,
    [squares, sum]: [&Share; 2],
    mut ots: Correlations,
) -> Result<(Share, Option<Share>)> {
    match plan {
        Moments::Ots(plan) => {
            let variance = plan.variance(channel, squares, sum, &mut ots)?;
            let now = ots.split(channel.role(), &plan.root.demand())?;
            let factor = plan.root.run(channel, &product.spread(variance), now)?;
            let moved = match &plan.mean {
                Some(mean) => Some(mean.moved(channel, sum, &product.by_row(&factor), ots)?),
                None => None,
            };
            Ok((factor, moved))
        }
        Moments::Circuit(plan) => {
            let lists = match plan.inputs() == squares.len() {
                true => squares.words().to_vec(),
                false => [squares.words(), sum.words()].concat(),
            };
            let both = Share::new(lists, squares.bits());
            let mut found = garbled::run_all(channel, plan, &both, ots)?.into_iter();
            let factor = found.next().ok_or_else(|| defect("a layer norm has no factor"))?;
            Ok((factor, found.next()))
        }
    }
}
