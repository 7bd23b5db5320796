//! The public plan and what it costs.

use graph::Rounding;
use he::rlwe::{EXACT_BITS, Params};
use wire::{Cost, Error, Packed, Result, Role, Segment, tags};

use super::shape::{Left, Precision, Shape};
use super::term::{Sizes, Term, pairs};
use crate::linear::transport::rlwe::{Rescaling, Sent};
use crate::linear::transport::{ServerKeys, chunks};
use pricing::{Unit, Work};

/// The tag of ciphertexts from the client: seed and body of each.
pub(super) const INPUTS: u8 = tags::SHARED_INPUTS;
/// The tag of responses from the server: c1 and the useful part of c0 of each.
pub(super) const RESPONSES: u8 = tags::SHARED_RESPONSES;

/// Most uses of a multiplier that is made for each of them: to keep many of them takes memory that
/// is new, whose pages take longer than the transforms.
pub(super) const MADE: usize = 2;
/// What a multiplier takes that is made where it is used, of what one takes that is kept.
const MAKING: f64 = 0.15;

/// The public plan of a product of shared matrices.
#[derive(Clone, Debug)]
pub struct Layer {
    pub(super) shape: Shape,
    pub(super) left: Left,
    /// One term sends both factors, or one term for each factor sends that factor folded.
    pub(super) terms: Vec<Term>,
    /// Levels of unfolding, 0 if nothing is folded.
    pub(super) levels: usize,
    pub(super) params: Params,
    /// The lowest bits of the client's bodies, which are not sent.
    pub(super) dropped: u32,
    pub(super) response_bits: u32,
    pub(super) precision: Precision,
}

/// The place of a block of the result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) item: usize,
    pub(super) term: usize,
    pub(super) row: usize,
    pub(super) column: usize,
}

impl Layer {
    /// Returns the encryption parameters. Keys for unfolding have to have the same.
    pub fn params(&self) -> Params {
        self.params
    }

    /// Levels of unfolding, 0 if nothing is folded.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// P: width to which shares of both factors are reduced.
    pub fn plain_bits(&self) -> u32 {
        self.precision.plain_bits
    }

    /// Returns the width of the resulting shares.
    pub fn result_bits(&self) -> u32 {
        match self.precision.rounding {
            Rounding::Stochastic => self.precision.out_bits,
            Rounding::Exact => self.precision.plain_bits + EXACT_BITS,
        }
    }

    /// Returns the number of values of all results.
    pub fn outputs(&self) -> usize {
        self.shape.batch * self.shape.outputs()
    }

    /// Returns the number of ciphertexts both ways.
    pub fn ciphertexts(&self) -> usize {
        let (inputs, responses) = self.counts();
        inputs + responses
    }

    /// Returns the parameters and blocks, for people.
    pub fn describe(&self) -> String {
        let (inputs, responses) = self.counts();
        let block = |term: &Term| {
            let Sizes { rows, inner, columns } = term.block();
            format!("{rows}x{inner} by {inner}x{columns}")
        };
        let blocks: Vec<String> = self.terms.iter().map(block).collect();
        let blocks = blocks.join(" and ");
        let folded = match self.levels {
            0 => String::new(),
            levels => format!(" of up to {} blocks", 1 << levels),
        };
        format!("RLWE {}, {inputs} in{folded}, {responses} out, blocks {blocks}", self.params)
    }

    /// Returns what a run costs.
    pub fn cost(&self) -> Cost {
        self.asks().then(self.answers())
    }

    /// Returns what the client's ciphertexts cost.
    pub fn asks(&self) -> Cost {
        let inputs = chunks(self.input_layouts());
        let body = |layout| Packed::<INPUTS>::body_len(layout);
        inputs.iter().map(|layout| Cost::message(Role::Client, body(layout))).collect()
    }

    /// Returns what the server's responses cost.
    pub fn answers(&self) -> Cost {
        let responses = chunks(self.response_layouts());
        let body = |layout| Packed::<RESPONSES>::body_len(layout);
        responses.iter().map(|layout| Cost::message(Role::Server, body(layout))).collect()
    }

    /// Returns the bytes of the responses that a server holds until it sends them.
    pub fn held_bytes(&self) -> usize {
        let words = self.counts().1 * self.params.degree() + self.outputs() * self.terms.len();
        8 * words
    }

    /// Returns what both parties do in a run, beside the messages.
    pub fn work(&self) -> Work {
        let degree = self.params.degree() as f64;
        let (inputs, responses) = self.counts();
        let halves = if self.sends_right() { 2.0 } else { 1.0 };
        let (mut products, mut factors) = (0.0, 0.0);
        for term in &self.terms {
            let Sizes { rows, inner, columns } = term.grid();
            let batch = self.shape.batch as f64;
            products += halves * batch * (rows * inner * columns) as f64;
            let made = if rows <= MADE { rows as f64 * MAKING } else { 1.0 };
            factors += made * batch * (inner * columns) as f64;
            factors += (1 + self.levels) as f64 * self.blocks(term) as f64;
        }
        Work::of(Unit::Encrypted, inputs as f64 * degree)
            .and(Unit::Answered, responses as f64 * degree)
            .and(Unit::Kept, self.outputs() as f64 * self.terms.len() as f64)
            .and(Unit::Transformed, 2.0 * degree * (inputs + responses) as f64)
            .and(Unit::Pointwise, 2.0 * degree * products)
            .and(Unit::Factor, degree * factors)
    }

    /// Whether `keys` can answer this layer.
    pub(super) fn check_keys(&self, keys: &ServerKeys<'_>) -> Result<()> {
        match keys.fit(self.params, self.levels) {
            true => Ok(()),
            false => Err(Error::misuse("keys that do not fit the product of matrices")),
        }
    }

    /// Blocks of the left factor of `term`, of all items.
    pub(super) fn blocks(&self, term: &Term) -> usize {
        let Sizes { rows, inner, .. } = term.grid();
        rows.saturating_mul(inner).saturating_mul(self.shape.batch)
    }

    /// Inputs and responses, saturating.
    pub(super) fn counts(&self) -> (usize, usize) {
        let each = self.terms.iter().map(|term| {
            let Sizes { rows, inner, columns } = term.grid();
            let left = self.blocks(term).div_ceil(1 << self.levels);
            let all = |each: usize| each.saturating_mul(self.shape.batch);
            let right = if self.sends_right() { all(inner.saturating_mul(columns)) } else { 0 };
            (left.saturating_add(right), all(rows.saturating_mul(columns)))
        });
        each.fold((0, 0), |all, each| (all.0.saturating_add(each.0), all.1.saturating_add(each.1)))
    }

    /// Whether the only term multiplies ciphertexts of both factors.
    pub(super) fn sends_right(&self) -> bool {
        self.levels == 0 && self.left == Left::Shared
    }

    /// How ciphertexts come from the client; unfolding makes plaintexts larger.
    pub(super) fn sent(&self) -> Sent {
        let bits = self.precision.plain_bits + self.levels as u32;
        Sent { params: self.params, bits, dropped: self.dropped }
    }

    /// Layout of each input ciphertext.
    pub(super) fn input_layouts(&self) -> Vec<Vec<Segment>> {
        vec![self.sent().layout(); self.counts().0]
    }

    /// The responses' places, in the order in which they are sent.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        pairs(self.shape.batch, self.terms.len()).flat_map(|(item, term)| {
            let grid = self.terms.get(term).map(Term::grid);
            let blocks = grid.map(|grid| pairs(grid.rows, grid.columns)).into_iter().flatten();
            blocks.map(move |(row, column)| Place { item, term, row, column })
        })
    }

    /// Coefficients that are sent of a response, and entries of all results.
    pub(super) fn outputs_at(&self, place: Place) -> impl Iterator<Item = (usize, usize)> {
        let first = place.item * self.shape.outputs();
        let term = self.terms.get(place.term);
        let outputs = term.map(|term| term.outputs(place.row, place.column));
        outputs.into_iter().flatten().map(move |(at, to)| (at, first + to))
    }

    /// Layout of each response.
    pub(super) fn response_layouts(&self) -> Vec<Vec<Segment>> {
        let bits = self.response_bits;
        let of = |place| {
            let useful = self.outputs_at(place).count();
            vec![Segment { count: self.params.degree(), bits }, Segment { count: useful, bits }]
        };
        self.places().map(of).collect()
    }

    /// How phases and masks become shares of the result.
    pub(super) fn rescaling(&self) -> Rescaling {
        let Precision { plain_bits, out_bits, rounding } = self.precision;
        Rescaling { rounding, plain_bits, out_bits, result_bits: self.result_bits() }
    }

    /// Bytes both ways without headers.
    pub(super) fn payload(&self) -> u64 {
        let (inputs, responses) = self.counts();
        let (degree, bits) = (self.params.degree() as u64, u64::from(self.response_bits));
        let useful = (self.outputs() * self.terms.len()) as u64;
        inputs as u64 * self.sent().bytes() + (responses as u64 * degree + useful) * bits / 8
    }
}
