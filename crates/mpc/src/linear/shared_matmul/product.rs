//! The server's products: the client's blocks times its own.

use he::rlwe::{Accumulator, Ciphertext, Operand, PublicKey, Weights};
use ring::Random;
use ring::word::signed;
use wire::{Channel, Error, Result};
use zeroize::Zeroizing;

use super::arrivals::{Arrivals, Folded};
use super::layer::{Layer, MADE, Place};
use super::shape::Left;
use super::term::Term;
use crate::defect::defect;
use crate::linear::transport::{Worker, misuse};
use crate::parallel;

/// Both factors of one term of one product, in the evaluation basis.
pub(super) struct Part<'a> {
    term: &'a Term,
    /// The client's share of the left factor, with the server's if that is to be added.
    left: Vec<Operand>,
    /// The client's share of the right factor, if it sends that.
    right: Vec<Operand>,
    own_left: Multipliers,
    own_right: Multipliers,
}

/// The server's own blocks, as centred multipliers.
enum Multipliers {
    /// Transformed once.
    Kept(Vec<Weights>),
    /// Transformed wherever they are used.
    Made(Vec<Zeroizing<Vec<i64>>>),
}

/// Responses, as they are sent.
type Answers = Vec<Vec<Vec<u64>>>;

impl<'a> Part<'a> {
    /// Takes the ciphertexts of the next product, of which `a` and `b` are the server's
    /// shares.
    pub(super) fn receive(
        channel: &mut Channel,
        layer: &'a Layer,
        arrivals: &mut Arrivals<'_>,
        (a, b): (&[u64], &[u64]),
        threads: usize,
    ) -> Result<Vec<Self>> {
        let (bits, degree) = (layer.precision.plain_bits, layer.params.degree());
        let term = layer.terms.first().ok_or_else(unfit)?;
        let (left, right) = (term.left(a, bits, degree), term.right(b, bits, term.filled()));
        let grid = term.grid();
        let own_right = Multipliers::new(layer, &right, grid.rows, threads)?;
        let (known, count) = match layer.left {
            Left::Shared => (true, right.len()),
            Left::Client => (false, 0),
        };
        let own_left = if known { left.as_slice() } else { &[] };
        let own_left = Multipliers::new(layer, own_left, grid.columns, threads)?;
        let own = left.into_iter().map(|own| known.then_some(own)).collect();
        let left = arrivals.operands(channel, own, threads)?;
        let right = arrivals.operands(channel, vec![None; count], threads)?;
        Ok(vec![Self { term, left, right, own_left, own_right }])
    }

    /// Takes the blocks of factors that came folded; there is a part for each term.
    pub(super) fn unfold(
        layer: &'a Layer,
        folded: &mut [Folded<'_>],
        (a, b): (&[u64], &[u64]),
        worker: &mut Worker<'_>,
    ) -> Result<Vec<Self>> {
        let bits = layer.precision.plain_bits;
        let parts = layer.terms.iter().zip(folded).map(|(term, folded)| {
            let (_, right) = term.factors(a, b);
            let grid = term.grid();
            let right = term.right(right, bits, term.filled());
            let own_right = Multipliers::new(layer, &right, grid.rows, worker.threads)?;
            let left = folded.take(grid.rows * grid.inner, layer.levels, worker)?;
            let own_left = Multipliers::Kept(Vec::new());
            Ok(Self { term, left, right: Vec::new(), own_left, own_right })
        });
        parts.collect()
    }

    /// The products of one row and one column of blocks.
    fn sum(&self, layer: &Layer, row: usize, column: usize) -> Result<Ciphertext> {
        let grid = self.term.grid();
        let mut sum = Accumulator::new(layer.params).map_err(misuse)?;
        let mut add = |one: &[Operand], at: usize, other: &Multipliers, by: usize| {
            let operand = one.get(at).ok_or_else(unfit)?;
            match other {
                Multipliers::Kept(all) => sum.accumulate(operand, all.get(by).ok_or_else(unfit)?),
                Multipliers::Made(all) => {
                    Weights::short(layer.params, all.get(by).ok_or_else(unfit)?)
                        .and_then(|weights| sum.accumulate(operand, &weights))
                }
            }
            .map_err(misuse)
        };
        for l in 0..grid.inner {
            let (left, right) = (row * grid.inner + l, l * grid.columns + column);
            add(&self.left, left, &self.own_right, right)?;
            if layer.sends_right() {
                add(&self.right, right, &self.own_left, left)?;
            }
        }
        sum.finish().map_err(misuse)
    }
}

/// Answers the places of one product; what hides its entries is added to `masks`.
pub(super) fn respond(
    layer: &Layer,
    parts: &[Part<'_>],
    places: Vec<Place>,
    key: &PublicKey,
    masks: &mut [u64],
    worker: &mut Worker<'_>,
) -> Result<Answers> {
    let jobs = places.iter().map(|place| (*place, worker.rng.child())).collect();
    let answer = |(place, mut rng): (Place, Random)| {
        let keep: Vec<usize> = layer.outputs_at(place).map(|(at, _)| at).collect();
        let part = parts.get(place.term).ok_or_else(unfit)?;
        let sum = part.sum(layer, place.row, place.column)?;
        let answered = sum.respond(key, &keep, layer.response_bits, &mut rng);
        let (response, hidden) = answered.map_err(misuse)?;
        Ok((vec![response.c1, response.c0], hidden))
    };
    let mut answers = Vec::with_capacity(places.len());
    let done = parallel::map(worker.threads, jobs, answer);
    for (place, answered) in places.into_iter().zip(done) {
        let (parts, hidden): (_, Zeroizing<Vec<u64>>) = answered?;
        add_at(masks, layer.outputs_at(place).map(|(_, to)| to), &hidden);
        answers.push(parts);
    }
    Ok(answers)
}

/// Adds `values` to the entries `to`, mod 2^64.
pub(super) fn add_at(all: &mut [u64], to: impl Iterator<Item = usize>, values: &[u64]) {
    for (index, value) in to.zip(values) {
        if let Some(slot) = all.get_mut(index) {
            *slot = slot.wrapping_add(*value);
        }
    }
}

impl Multipliers {
    /// From blocks that are multiplied `uses` times each.
    fn new(
        layer: &Layer,
        blocks: &[Zeroizing<Vec<u64>>],
        uses: usize,
        threads: usize,
    ) -> Result<Self> {
        let bits = layer.precision.plain_bits;
        let centred = |block: &Zeroizing<Vec<u64>>| {
            Zeroizing::new(block.iter().map(|word| signed(*word, bits)).collect::<Vec<_>>())
        };
        if uses <= MADE {
            return Ok(Self::Made(blocks.iter().map(centred).collect()));
        }
        let transform = |block: &Zeroizing<Vec<u64>>| {
            Weights::short(layer.params, &centred(block)).map_err(misuse)
        };
        let all = parallel::map(threads, blocks.iter().collect(), transform).into_iter();
        Ok(Self::Kept(all.collect::<Result<_>>()?))
    }
}

fn unfit() -> Error {
    defect("a product of matrices lacks a block")
}
