//! `e^(-scale*d)` as a circuit: a table for the high bits of d, a product for each further
//! piece of them.
//!
//! The low `drop` bits of d are cut off and the middle of the step is taken. A term with a
//! bit above the others' `a` is zero. The rest is cut into pieces, the highest first: the
//! first one's table holds `e^-h`, those of the others `1 - e^-l`, which is small, so that
//! `T*e^-l = T - T*(1 - e^-l)` is a short product. Products leave out partial products
//! below a few guard bits and add what centres the error. Tables are looked up by one-hot
//! positions, whose exclusive ors are free.

use gc::{Builder, Wire, Word};
use ring::word::mask;
use wire::{Error, Result};

use super::fixed::{RESULT, argument, exponential};

/// Guard bits of a product.
const GUARD: u32 = 6;
/// Longest piece.
const LONGEST: u32 = 10;
/// Most pieces.
const MOST_PIECES: usize = 3;
/// Most fraction bits.
const MOST_FRACTION: u32 = 46;
/// Error of a table entry in units of the last place: a half, and what `fixed.rs` adds.
const ROUNDING: f64 = 0.51;

/// The public parameters of all terms.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Exponent {
    /// Bits of a difference, and how many low ones are cut off.
    width: u32,
    drop: u32,
    /// One step after that, in units of `2^-80`.
    step: u128,
    fraction: u32,
    /// The first piece and the others.
    first: Piece,
    later: Vec<Piece>,
}

/// A run of bits of the steps and its table.
#[derive(Clone, Debug, PartialEq)]
struct Piece {
    shift: u32,
    bits: u32,
    table: Vec<u64>,
}

impl Exponent {
    /// The cheapest that keeps the budgets of the module's documentation.
    ///
    /// # Errors
    /// [`Error::Misuse`] when there is none.
    pub(super) fn new(classes: usize, width: u32, scale: f64, digits: u32) -> Result<Self> {
        let decimals = 10u64.pow(digits);
        let others = classes as u64 - 1;
        // Steps of at most 2/decimals; products with powers of two are exact.
        let fits = |drop: &u32| scale * 2f64.powi(*drop as i32) * decimals as f64 <= 2.0;
        let drop = (1..width).take_while(fits).last().unwrap_or(0);
        let step = argument(scale * 2f64.powi(drop as i32));
        let small = |bits: &u32| {
            let dropped = u128::from(exponential(step.saturating_mul(1 << bits)));
            let all = dropped * u128::from(others) * u128::from(2 * decimals - 1);
            // A little later than Theorem 1, by more than the error of `exponential`.
            all + (all >> 20) + ((u128::from(others) * u128::from(decimals)) << 12) <= 1 << RESULT
        };
        let bits = (1..width - drop).find(small).unwrap_or(width - drop);
        let budget = 0.25 / decimals as f64 / others as f64;
        let least = (f64::from(digits) * 10f64.log2()).ceil() as u32 + 4;
        let shaped = |cut: Vec<u32>| {
            (least..=MOST_FRACTION).find_map(|fraction| {
                let shape = Self::shaped(width, drop, step, fraction, &cut);
                (shape.error() <= budget).then_some(shape)
            })
        };
        let candidates = cuts(bits).into_iter().filter_map(shaped);
        let cheapest = candidates.min_by_key(Self::estimate);
        cheapest.ok_or_else(|| {
            Error::misuse(format!("no softmax of {classes} classes to {digits} decimals"))
        })
    }

    /// With pieces of these widths, highest first.
    fn shaped(width: u32, drop: u32, step: u128, fraction: u32, cut: &[u32]) -> Self {
        let mut shift: u32 = cut.iter().sum();
        let mut pieces = cut.iter().map(|bits| {
            shift -= bits;
            Piece { shift, bits: *bits, table: Vec::new() }
        });
        let first = pieces.next().unwrap_or(Piece { shift: 0, bits: 0, table: Vec::new() });
        let later = pieces.collect();
        let mut shape = Self { width, drop, step, fraction, first, later };
        let middle = if drop == 0 { 0 } else { step / 2 };
        let (first, rest) = (shape.first.clone(), shape.later.clone());
        shape.first.table = shape.entries(&first, middle, |value| value);
        for (piece, empty) in shape.later.iter_mut().zip(&rest) {
            piece.table = entries(step, fraction, empty, 0, |value| (1 << RESULT) - value);
        }
        shape
    }

    fn entries(&self, piece: &Piece, more: u128, of: impl Fn(u64) -> u64) -> Vec<u64> {
        entries(self.step, self.fraction, piece, more, of)
    }

    /// One, as a fixed-point number.
    pub(super) fn one(&self) -> u64 {
        1 << self.fraction
    }

    /// Bits after the point.
    pub(super) fn fraction_bits(&self) -> u32 {
        self.fraction
    }

    /// Bits of the steps that the tables are for; what is above is zero.
    fn bits(&self) -> u32 {
        self.first.shift + self.first.bits
    }

    /// The greatest error of a term, but for the cut of low bits.
    pub(super) fn error(&self) -> f64 {
        let product = |piece: &Piece| ROUNDING + Product::new(self.fraction, piece).error();
        let places = ROUNDING + self.later.iter().map(product).sum::<f64>();
        places / self.one() as f64
    }

    /// About as many AND gates.
    fn estimate(&self) -> usize {
        let pieces = std::iter::once(&self.first).chain(&self.later);
        let tables: usize = pieces.map(|piece| (1 << piece.bits) - piece.bits as usize).sum();
        let product = |piece: &Piece| 2 * Product::new(self.fraction, piece).kept();
        tables + self.later.iter().map(product).sum::<usize>()
    }

    /// The term of a difference of `width` bits.
    pub(super) fn circuit(&self, builder: &mut Builder, difference: &[Wire]) -> Word {
        let steps = difference.get(self.drop as usize..).unwrap_or_default();
        let (steps, above) = steps.split_at((self.bits() as usize).min(steps.len()));
        let beyond = builder.any(above);
        let mut term = self.first.look_up(builder, steps, self.fraction + 1);
        term = builder.gated(beyond.negated(), &term);
        for piece in &self.later {
            let product = Product::new(self.fraction, piece);
            let factor = piece.look_up(builder, steps, product.factor_bits);
            let less = product.circuit(builder, &term, &factor);
            term = builder.subtract(&term, &less);
        }
        term
    }

    /// What the circuit computes.
    pub(super) fn clear(&self, difference: u64) -> u64 {
        let steps = (difference & mask(self.width)) >> self.drop;
        if steps >> self.bits() != 0 {
            return 0;
        }
        let first = self.first.entry(steps);
        self.later.iter().fold(first, |term, piece| {
            term - Product::new(self.fraction, piece).clear(term, piece.entry(steps))
        })
    }
}

/// `of(e^-(k*2^shift*step + more))` for every `k`, rounded.
fn entries(
    step: u128,
    fraction: u32,
    piece: &Piece,
    more: u128,
    of: impl Fn(u64) -> u64,
) -> Vec<u64> {
    let places = RESULT - fraction;
    let entry = |at: u128| {
        let value = of(exponential((step * (at << piece.shift)).saturating_add(more)));
        (value + (1 << (places - 1))) >> places
    };
    (0..1 << piece.bits).map(entry).collect()
}

/// All ways to cut `bits` into a few pieces.
fn cuts(bits: u32) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = vec![Vec::new()];
    let mut done = Vec::new();
    for _ in 0..MOST_PIECES {
        let longer = |cut: &Vec<u32>| {
            let left = bits - cut.iter().sum::<u32>();
            let next = (1..=left.min(LONGEST)).map(|piece| [cut.as_slice(), &[piece]].concat());
            next.collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
        done.extend(all.iter().filter(|cut| cut.iter().sum::<u32>() == bits).cloned());
    }
    done
}

impl Piece {
    fn entry(&self, steps: u64) -> u64 {
        let at = (steps >> self.shift) & (mask(self.bits + 1) >> 1);
        self.table.get(at as usize).copied().unwrap_or_default()
    }

    fn look_up(&self, builder: &mut Builder, steps: &[Wire], bits: u32) -> Word {
        let bits_of = steps.iter().skip(self.shift as usize).take(self.bits as usize);
        let position: Word = bits_of.copied().collect();
        let hot = builder.one_hot(&position);
        builder.look_up(&hot, &self.table, bits as usize)
    }
}

/// `term * factor / 2^fraction`, rounded, without the partial products below `cut`.
struct Product {
    fraction: u32,
    cut: u32,
    factor_bits: u32,
    /// Added, in units of `2^cut`.
    constant: u64,
    /// The most that is left out, in the same units.
    omitted: f64,
}

impl Product {
    fn new(fraction: u32, piece: &Piece) -> Self {
        let largest = piece.table.iter().max().copied().unwrap_or_default();
        let factor_bits = u64::BITS - largest.leading_zeros();
        let cut = fraction - GUARD;
        // Column c below the cut has as many partial products as the factor has bits up to c.
        let column = |c: u32| f64::from((c + 1).min(factor_bits)) * 2f64.powi(c as i32);
        let omitted = (0..cut).map(column).sum::<f64>() / 2f64.powi(cut as i32);
        let constant = (1 << (GUARD - 1)) + (omitted / 2.0) as u64;
        Self { fraction, cut, factor_bits, constant, omitted }
    }

    /// The number of partial products.
    fn kept(&self) -> usize {
        let row = |bit: u32| (self.fraction + 1).saturating_sub(self.cut.saturating_sub(bit));
        (0..self.factor_bits).map(|bit| row(bit) as usize).sum()
    }

    /// The error in units of the last place. The constant is below one, so that no difference is
    /// negative.
    fn error(&self) -> f64 {
        let unit = 2f64.powi(GUARD as i32);
        let (constant, omitted) = (self.constant as f64 / unit, self.omitted / unit);
        if constant >= 1.0 { f64::INFINITY } else { constant.max(1.0 + omitted - constant) }
    }

    fn circuit(&self, builder: &mut Builder, term: &[Wire], factor: &[Wire]) -> Word {
        let (cut, guard) = (self.cut as usize, GUARD as usize);
        let bits = term.len() + guard;
        let product = builder.multiply(term, factor, cut, self.constant, bits);
        product.into_iter().skip(guard).collect()
    }

    fn clear(&self, term: u64, factor: u64) -> u64 {
        let row = |bit: u32| {
            let kept = term >> self.cut.saturating_sub(bit) << bit.saturating_sub(self.cut);
            kept * (factor >> bit & 1)
        };
        let sum: u64 = (0..self.factor_bits).map(row).sum();
        (sum + self.constant) >> GUARD
    }
}
