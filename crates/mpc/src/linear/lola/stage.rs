//! One step of the server's computation: what it needs, how noise grows, what it takes.

use he::bfv::noise::Estimate;
use he::bfv::{Params, Switching};
use pricing::fixed::slots::{CONVERSION_SECONDS, PRODUCT_SECONDS, TRANSFORM_SECONDS};

use super::layout::Layout;
use super::product::{Columns, Fold, Product, Scalars, Weighted};

/// Bits that one of the primes that factors are extended to has at least.
const WIDE: u32 = 47;

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Scalars(Scalars),
    Product(Product),
    Columns(Columns),
    Weighted(Weighted),
    Square(Squares),
}

/// `m[0]*x^2 + m[1]*x`, plus constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Squares {
    pub(crate) multipliers: [i64; 2],
    pub(crate) to: Layout,
}

impl Stage {
    /// How the results are spread.
    pub(crate) const fn to(&self) -> &Layout {
        match self {
            Self::Scalars(Scalars { to, .. })
            | Self::Product(Product { to, .. })
            | Self::Columns(Columns { to, .. })
            | Self::Weighted(Weighted { to, .. })
            | Self::Square(Squares { to, .. }) => to,
        }
    }

    /// Turns of rows to the left, and whether rows are exchanged.
    pub(crate) fn turns(&self) -> (Vec<usize>, bool) {
        match self {
            Self::Product(product) => {
                let row = product.from.row;
                let babies = (1..product.baby).map(|baby| row - baby);
                let giant = (product.giants() > 1).then_some(row - product.baby);
                let folds = product.folds.iter().filter_map(|fold| match fold {
                    Fold::Left(by) => Some(*by),
                    Fold::Swap => None,
                });
                let swap = product.folds.contains(&Fold::Swap);
                (babies.chain(giant).chain(folds).collect(), swap)
            }
            Self::Scalars(scalars) => (scalars.turn().into_iter().collect(), false),
            Self::Columns(_) | Self::Weighted(_) | Self::Square(_) => (Vec::new(), false),
        }
    }

    /// The noise of the results. `weight_bits` is the public width of the weights.
    pub(crate) fn noise(&self, from: Estimate, weight_bits: u32) -> Estimate {
        match self {
            Self::Scalars(scalars) => {
                let sum = from.scaled(squares(scalars.matrix.taps(), weight_bits));
                let each = sum.clone();
                (1..scalars.each).fold(sum, |sum, _| sum.rotated().joined(&each))
            }
            Self::Product(product) => {
                let terms = product.from.messages * product.span;
                let turned = if product.baby > 1 { from.rotated() } else { from };
                let inner = turned.times_plain().times(terms);
                let sum = (1..product.giants()).fold(inner, |sum, _| sum.rotated());
                product.folds.iter().fold(sum, |sum, _| sum.clone().rotated().plus(&sum))
            }
            Self::Columns(columns) => from.times_plain().times(columns.matrix.inputs()),
            Self::Weighted(weighted) => from.scaled(squares(weighted.matrix.taps(), weight_bits)),
            Self::Square(Squares { multipliers: [1, 0], .. }) => from.clone().product(&from),
            Self::Square(Squares { multipliers, .. }) => {
                let [square, itself] = multipliers.map(|m| (m as f64).powi(2));
                let squared = from.clone().product(&from).scaled(square);
                squared.plus(&from.scaled(itself))
            }
        }
    }

    /// Rotations, products with plaintexts or integers, and products of ciphertexts.
    pub(crate) fn operations(&self) -> Operations {
        let (messages, none) = (self.to().messages, Operations::default());
        match self {
            Self::Scalars(scalars) => {
                let channels = scalars.matrix.conv().out_channels;
                let products = scalars.matrix.taps() * channels;
                Operations { rotations: channels - messages, scalars: products, ..none }
            }
            Self::Product(product) => {
                let from = product.from.messages;
                let after = messages * (product.giants() - 1 + product.folds.len());
                Operations {
                    hoisted: from * (product.baby - 1),
                    rotations: after,
                    plains: from * messages * product.span,
                    ..none
                }
            }
            Self::Columns(columns) => Operations { plains: columns.matrix.inputs(), ..none },
            Self::Weighted(Weighted { matrix, .. }) => {
                Operations { scalars: matrix.outputs() * matrix.taps(), ..none }
            }
            Self::Square(_) => Operations { squares: messages, ..none },
        }
    }
}

/// A bound on the squares of so many weights added up, by their public width.
fn squares(count: usize, weight_bits: u32) -> f64 {
    count as f64 * f64::from(weight_bits - 1).exp2().powi(2)
}

impl Scalars {
    /// By which the sums of a channel are turned left to get behind those of the one before.
    pub(crate) fn turn(&self) -> Option<usize> {
        (self.each > 1).then_some(self.to.row - self.matrix.windows())
    }
}

/// What the server does, for each plaintext prime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// Rotations of messages that were cut into digits before.
    pub hoisted: usize,
    /// Other rotations.
    pub rotations: usize,
    /// Products with plaintexts.
    pub plains: usize,
    /// Products with integers.
    pub scalars: usize,
    /// Squares.
    pub squares: usize,
}

impl std::ops::Add for Operations {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            hoisted: self.hoisted + other.hoisted,
            rotations: self.rotations + other.rotations,
            plains: self.plains + other.plains,
            scalars: self.scalars + other.scalars,
            squares: self.squares + other.squares,
        }
    }
}

impl Operations {
    /// About the seconds that they take at one prime, on one thread.
    pub(crate) fn seconds(&self, params: &Params, plain_bits: u32) -> f64 {
        let degree = params.degree() as f64;
        let primes = params.widths().len() as f64;
        let transform = TRANSFORM_SECONDS * degree * degree.log2();
        let (digits, extended) = digits(params);
        let hoist = transform * (primes + digits * (extended - 1.0).max(primes));
        let inner = PRODUCT_SECONDS * degree * 2.0 * digits * extended / 2.0;
        let turn = inner + transform * if extended > primes { 2.0 + 2.0 * primes } else { 0.0 };
        let product = PRODUCT_SECONDS * degree * 2.0 * primes;
        let wide = f64::from((params.modulus_bits() + plain_bits + 17).div_ceil(WIDE));
        let conversions = 5.0 * CONVERSION_SECONDS * degree * primes * wide;
        let square = transform * 5.0 * (primes + wide) + conversions + hoist + turn;
        let hoists = if self.hoisted > 0 { hoist } else { 0.0 };
        hoists
            + self.hoisted as f64 * turn
            + self.rotations as f64 * (hoist + turn)
            + (self.plains + self.scalars) as f64 * product
            + self.squares as f64 * square
    }
}

/// Digits of a polynomial, and primes of keys.
fn digits(params: &Params) -> (f64, f64) {
    let widths = params.widths();
    match params.switching() {
        Switching::Special(_) => (widths.len() as f64, widths.len() as f64 + 1.0),
        Switching::Digits(bits) => {
            let digits: u32 = widths.iter().map(|width| width.div_ceil(bits)).sum();
            (f64::from(digits), widths.len() as f64)
        }
    }
}
