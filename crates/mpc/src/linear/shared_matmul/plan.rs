//! The search for parameters and blocks: of the fewest bytes, among them those of the
//! least work, among them the first.

use graph::Rounding;
use he::rlwe::{self, EXACT_BITS, MOST_LEVELS, Params, UnfoldKey, Weights, noise};
use pricing::fixed::lattice::transform::{MULTIPLIER, OPERAND, PRODUCT, RESPONSE};
use wire::{Error, Result};

use super::layer::Layer;
use super::shape::{Left, Precision, Shape};
use super::term::{Sizes, Term};
use crate::linear::transport::rlwe::COARSE;

/// Widest P: products in the clear are mod 2^32, and so are multipliers.
const WIDEST: u32 = 32;

/// Most blocks from the client, and most responses.
const MOST_BLOCKS: usize = 1 << 20;

/// Bytes and work.
type Price = (u64, usize);

impl Layer {
    /// Plans products that are divided by `2^shift` for results of `out_bits`. Stochastic
    /// rounding yields shares mod 2^out_bits, exact rounding shares mod
    /// 2^(out_bits + shift + 4), see [`super`].
    ///
    /// # Errors
    /// [`Error::Misuse`] for empty or gigantic matrices, an accumulator of more than
    /// 32 bits, or when no secure parameters hold the precision.
    pub fn new(
        shape: Shape,
        left: Left,
        shift: u32,
        out_bits: u32,
        rounding: Rounding,
    ) -> Result<Self> {
        let precision = precision(shape, shift, out_bits, rounding)?;
        plain(shape, left, precision, &rlwe::TABLE).ok_or_else(|| refusal(shape, precision))
    }

    /// Plans products of other sizes that are as precise as these, in blocks, under keys that serve these.
    ///
    /// # Errors
    /// [`Error::Misuse`] for empty or gigantic matrices, or when those keys do not hold the precision.
    pub fn resized(&self, shape: Shape) -> Result<Self> {
        let Precision { plain_bits, out_bits, rounding } = self.precision;
        let precision = precision(shape, plain_bits - out_bits, out_bits, rounding)?;
        let degrees = [(self.params.degree(), self.params.modulus_bits())];
        plain(shape, self.left, precision, &degrees).ok_or_else(|| refusal(shape, precision))
    }

    /// Returns a bound on the probability that a result of a run is off by more than its width has
    /// room for, or an exact one by anything.
    pub fn failure(&self) -> f64 {
        let multipliers = |term: &Term| {
            let block = term.block();
            match (self.levels, self.left) {
                (0, Left::Shared) => self.shape.inner * (block.columns + block.rows),
                (0, Left::Client) => self.shape.inner * block.columns,
                _ => self.terms.len() * self.shape.inner * block.columns,
            }
        };
        let multipliers = self.terms.iter().map(multipliers).max().unwrap_or(0);
        let load = noise::Load::bounded(multipliers, largest(self.precision));
        let load = match self.levels {
            0 => load,
            levels => load.unfolded(self.params, levels, self.dropped),
        };
        let noise = noise::Noise::new(self.params, load, self.response_bits);
        let noise = noise.summed(self.terms.len() as u32);
        self.outputs() as f64 * self.rescaling().failure(noise)
    }

    /// Plans products with factors folded, for servers that hold keys of [`Layer::levels`].
    /// They take fewer bytes, more work and more precision.
    ///
    /// # Errors
    /// As [`Layer::new`], more often.
    pub fn folded(
        shape: Shape,
        left: Left,
        shift: u32,
        out_bits: u32,
        rounding: Rounding,
    ) -> Result<Self> {
        let precision = precision(shape, shift, out_bits, rounding)?;
        unfolded(shape, left, precision).ok_or_else(|| refusal(shape, precision))
    }

    /// Plans products with factors folded as those at `place` are, which counts the levels of unfolding of the first
    /// degree from 1 to [`MOST_LEVELS`] and then those of the next: fewer levels take more bytes and less work.
    ///
    /// # Errors
    /// As [`Layer::folded`], and for places that there are not.
    pub fn folded_at(
        shape: Shape,
        left: Left,
        shift: u32,
        out_bits: u32,
        rounding: Rounding,
        place: usize,
    ) -> Result<Self> {
        let precision = precision(shape, shift, out_bits, rounding)?;
        let found = place.checked_sub(1).and_then(|at| {
            let (degree, most) = *rlwe::TABLE.get(at / MOST_LEVELS)?;
            let params = Params::new(degree, most).ok()?;
            let layer = at_levels(shape, left, params, at % MOST_LEVELS + 1, precision)?;
            let (inputs, responses) = layer.counts();
            let blocks = inputs.saturating_mul(1 << layer.levels).max(responses);
            (blocks <= MOST_BLOCKS).then_some(layer)
        });
        found.ok_or_else(|| refusal(shape, precision))
    }
}

/// The best plan that sends both factors block by block, of these degrees with moduli of so many bits at most.
fn plain(
    shape: Shape,
    left: Left,
    precision: Precision,
    degrees: &[(usize, u32)],
) -> Option<Layer> {
    let mut best: Option<(Price, Layer)> = None;
    for (degree, most) in degrees.iter().copied() {
        for block in blocks(shape.sizes(), degree, 1) {
            let found = parameters(shape, left, block, degree, precision);
            let Some((params, response_bits)) =
                found.filter(|(params, _)| params.modulus_bits() <= most)
            else {
                continue;
            };
            let terms = vec![Term::new(shape.sizes(), block)];
            let (levels, dropped) = (0, 0);
            keep(
                &mut best,
                Layer { shape, left, terms, levels, params, dropped, response_bits, precision },
            );
        }
    }
    best.map(|(_, layer)| layer)
}

/// The best plan that sends the left factor of each term folded.
fn unfolded(shape: Shape, left: Left, precision: Precision) -> Option<Layer> {
    let mut best: Option<(Price, Layer)> = None;
    for (degree, most) in rlwe::TABLE {
        let Ok(params) = Params::new(degree, most) else { continue };
        for levels in 1..=MOST_LEVELS {
            if let Some(layer) = at_levels(shape, left, params, levels, precision) {
                keep(&mut best, layer);
            }
        }
    }
    best.map(|(_, layer)| layer)
}

fn keep(best: &mut Option<(Price, Layer)>, layer: Layer) {
    let (inputs, responses) = layer.counts();
    if inputs.saturating_mul(1 << layer.levels).max(responses) > MOST_BLOCKS {
        return;
    }
    let price = (layer.payload(), work(&layer));
    if best.as_ref().is_none_or(|(known, _)| price < *known) {
        *best = Some((price, layer));
    }
}

/// Each term is planned as if the other's noise were its own: then both fit together.
fn at_levels(
    shape: Shape,
    left: Left,
    params: Params,
    levels: usize,
    precision: Precision,
) -> Option<Layer> {
    let (sizes, spare) = (shape.sizes(), noise::STOCHASTIC_SPARE.max(noise::EXACT_SPARE));
    if precision.plain_bits + spare + levels as u32 > params.modulus_bits() {
        return None;
    }
    let encrypted_bits = precision.plain_bits + levels as u32;
    let makers: &[fn(Sizes, Sizes) -> Term] = match left {
        Left::Shared => &[Term::new, Term::transposed],
        Left::Client => &[Term::new],
    };
    let responses = makers.len() as u32;
    let response_bits = responses - 1
        + match precision.rounding {
            Rounding::Stochastic => precision.out_bits + noise::STOCHASTIC_SPARE,
            Rounding::Exact => precision.plain_bits + noise::EXACT_SPARE,
        };
    let term = |(maker, sizes): (&fn(Sizes, Sizes) -> Term, Sizes)| {
        let mut best: Option<(Price, Layer)> = None;
        for block in blocks(sizes, params.degree(), 1 << levels) {
            let multipliers = makers.len() * shape.inner * block.columns;
            let norm = (multipliers as u64).checked_mul(largest(precision));
            if norm.is_none_or(|norm| norm > Weights::largest_norm(params)) {
                continue;
            }
            let load = noise::Load::bounded(multipliers, largest(precision));
            let dropped = noise::droppable(params, encrypted_bits, |dropped| {
                let load = load.unfolded(params, levels, dropped);
                let noise = noise::Noise::new(params, load, response_bits).summed(responses);
                enough(noise, params, precision)
            });
            let Some(dropped) = dropped else { continue };
            let terms = vec![maker(shape.sizes(), block)];
            keep(
                &mut best,
                Layer { shape, left, terms, levels, params, dropped, response_bits, precision },
            );
        }
        best.and_then(|(_, layer)| Some((layer.terms.into_iter().next()?, layer.dropped)))
    };
    let terms = makers.iter().zip([sizes, sizes.transposed()]).map(term);
    let (terms, dropped): (Vec<_>, Vec<_>) = terms.collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let dropped = dropped.into_iter().min()?;
    Some(Layer { shape, left, terms, levels, params, dropped, response_bits, precision })
}

/// Whether results are as near as the protocol promises.
fn enough(noise: noise::Noise, params: Params, precision: Precision) -> bool {
    let Precision { plain_bits, out_bits, rounding } = precision;
    match rounding {
        Rounding::Stochastic => {
            let error = noise.rescale_error(out_bits, noise::PER_COEFFICIENT) + COARSE;
            error < noise::stochastic_error(params.degree())
        }
        Rounding::Exact => {
            let error = noise.rescale_error(plain_bits + EXACT_BITS, noise::PER_TENSOR);
            error < f64::from(1u32 << (EXACT_BITS - 1))
        }
    }
}

/// Parameters and K' at `degree`, if there are any: all multipliers of a response count,
/// those of both sums.
fn parameters(
    shape: Shape,
    left: Left,
    block: Sizes,
    degree: usize,
    precision: Precision,
) -> Option<(Params, u32)> {
    let Precision { plain_bits, out_bits, rounding } = precision;
    let by_left = if left == Left::Shared { block.rows } else { 0 };
    let multipliers = shape.inner.checked_mul(block.columns + by_left)?;
    let load = noise::Load::bounded(multipliers, largest(precision));
    let bound = noise::stochastic_error(degree) - COARSE;
    let chosen = match rounding {
        Rounding::Exact => noise::exact_at(degree, plain_bits, load),
        Rounding::Stochastic => noise::stochastic_within(degree, plain_bits, out_bits, load, bound),
    };
    let norm = largest(precision).checked_mul(multipliers as u64)?;
    chosen.ok().filter(|(params, _)| norm <= Weights::largest_norm(*params))
}

/// The largest magnitude of a multiplier.
fn largest(precision: Precision) -> u64 {
    1 << (precision.plain_bits - 1)
}

/// Blocks that fill a polynomial, cut evenly, with columns in multiples of `step`; when that
/// is above 1, those with half the columns as well, and so on: they make less noise.
fn blocks(sizes: Sizes, degree: usize, step: usize) -> impl Iterator<Item = Sizes> {
    even(sizes.rows, degree / step).flat_map(move |rows| {
        even(sizes.inner, degree / step / rows).flat_map(move |inner| {
            let most = degree / (rows * inner);
            let columns = sizes.columns.min(most);
            let columns = sizes.columns.div_ceil(sizes.columns.div_ceil(columns));
            let first = columns.next_multiple_of(step).min(most / step * step);
            let half = move |columns: &usize| {
                (step > 1 && *columns > step).then(|| (columns / 2).next_multiple_of(step))
            };
            std::iter::successors(Some(first), half).map(move |columns| Sizes {
                rows,
                inner,
                columns,
            })
        })
    })
}

/// Sizes up to `most` of equal parts of `whole`, the last part being smaller.
fn even(whole: usize, most: usize) -> impl Iterator<Item = usize> {
    (1..=most.min(whole)).filter(move |size| whole.div_ceil(whole.div_ceil(*size)) == *size)
}

/// Work of the server, in transforms mod one prime.
fn work(layer: &Layer) -> usize {
    let (inputs, _) = layer.counts();
    let unfolding = match layer.levels {
        0 => 0,
        levels => inputs * UnfoldKey::transforms(layer.params, levels),
    };
    let both = layer.levels == 0 && layer.left == Left::Shared;
    let each = layer.terms.iter().map(|term| {
        let Sizes { rows, inner, columns } = term.grid();
        let (left, right, responses) = (rows * inner, inner * columns, rows * columns);
        let crossed = if both { 2 } else { 1 };
        let operands = if both { left + right } else { left };
        let multipliers = if both { left + right } else { right };
        operands * OPERAND
            + multipliers * MULTIPLIER
            + responses * (RESPONSE + crossed * inner * PRODUCT)
    });
    let all = layer.shape.batch.saturating_mul(each.sum()).saturating_add(unfolding);
    all.saturating_mul(layer.params.degree())
}

fn precision(shape: Shape, shift: u32, out_bits: u32, rounding: Rounding) -> Result<Precision> {
    let plain_bits = out_bits.saturating_add(shift);
    if shape.is_sound() && out_bits > 0 && plain_bits <= WIDEST {
        return Ok(Precision { plain_bits, out_bits, rounding });
    }
    Err(Error::misuse(
        "a product of matrices without values, with too many, or of more than 32 bits",
    ))
}

fn refusal(shape: Shape, precision: Precision) -> Error {
    let Shape { batch, rows, inner, columns } = shape;
    Error::misuse(format!(
        "{batch} products {rows}x{inner} times {inner}x{columns} with {}-bit accumulators demand \
         more ciphertexts or more precision than 128-bit secure parameters have; use fewer \
         activation bits, smaller matrices or stochastic rounding",
        precision.plain_bits
    ))
}
