//! Which OTs a product takes, in which order, and what they cost.

use std::ops::Range;

use ot::{Entry, Job};
use pricing::equivalent::STREAM_BYTES_OF_TRANSFER;
use wire::{Cost, Error, Lane, Result, Role, Segment};

use super::message::{Choices, Corrections};
use crate::correlations::Demand;
use pricing::{Unit, Work};

/// OTs whose pads are held at a time.
pub(super) const MOST_OTS: usize = 1 << 21;
/// Bits of one piece, beyond which it is cut.
const PIECE: u64 = 1 << 23;
/// Bytes of a message, beyond which nothing is added to it.
pub const MESSAGE: u64 = 1 << 20;
/// Bytes of the longest message.
const LONGEST: u64 = 1 << 27;
/// Most pieces of a product: pricing takes time for each, and a client prices the plan of a
/// server it does not trust.
const MOST_PIECES: usize = 1 << 20;
/// Most elements of a factor or the result.
const MOST_ELEMENTS: usize = 1 << 30;
/// Widest ring.
const MOST_BITS: u32 = 62;

/// The public plan of matrix products `y[p] = w[p] * x[p]` mod 2^bits, one for each place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    pub(super) places: usize,
    pub(super) rows: usize,
    pub(super) inner: usize,
    pub(super) columns: usize,
    pub(super) bits: u32,
    pub(super) choices: Vec<Choice>,
    /// What a weight without bits is.
    pub(super) offset: i64,
}

/// One bit of every weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The position of the bit in the numbers that the server gives.
    pub(super) bit: u32,
    /// What it is worth mod 2^bits.
    pub(super) importance: u64,
    /// Low bits of a vector that are sent: the others would be lost in a product with the
    /// importance.
    pub(super) width: u32,
}

/// Some inner positions of one row and one bit of its weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The row, counted through all places.
    pub(super) line: usize,
    /// Index of the bit among those that an OT is made for.
    pub(super) choice: usize,
    /// Inner positions.
    pub(super) inner: Range<usize>,
}

impl Product {
    /// Plans `[places, rows, inner, columns]`, mod 2^bits (1 to 62), of weights that are `offset`
    /// and the sum of the `importance` of their bits; 1 to 16 of these.
    ///
    /// # Errors
    /// [`Error::Misuse`] for sizes, widths and numbers of bits out of range.
    pub fn new(sides: [usize; 4], bits: u32, importance: &[i64], offset: i64) -> Result<Self> {
        let [places, rows, inner, columns] = sides;
        let volume =
            |sides: &[usize]| sides.iter().try_fold(1usize, |n, side| n.checked_mul(*side));
        let small =
            |sides: &[usize]| volume(sides).is_some_and(|n| (1..=MOST_ELEMENTS).contains(&n));
        let sized = small(&[places, rows, inner])
            && small(&[places, inner, columns])
            && small(&[places, rows, columns]);
        if !sized || !(1..=MOST_BITS).contains(&bits) || !(1..=16).contains(&importance.len()) {
            return Err(Error::misuse("a product by OT of this size"));
        }
        let choice = |(bit, importance): (u32, &i64)| {
            let width = bits.checked_sub(importance.trailing_zeros()).filter(|width| *width > 0)?;
            Some(Choice { bit, importance: *importance as u64, width })
        };
        let choices = (0..).zip(importance).filter_map(choice).collect();
        let plan = Self { places, rows, inner, columns, bits, choices, offset };
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<()> {
        if self.pieces() > MOST_PIECES || self.columns as u64 * u64::from(self.bits) / 8 > LONGEST {
            return Err(Error::misuse("a product by OT of this size"));
        }
        Ok(())
    }

    /// Returns the pieces in which vectors are sent.
    pub fn pieces(&self) -> usize {
        let of = |choice: &Choice| {
            self.lines().saturating_mul(self.inner.div_ceil(self.inner_step(choice)))
        };
        self.choices.iter().map(of).fold(0, usize::saturating_add)
    }

    /// Rows of all places.
    pub(super) fn lines(&self) -> usize {
        self.places * self.rows
    }

    /// Returns the number of elements of the right factor: `[places, inner, columns]`.
    pub fn inputs(&self) -> usize {
        self.places * self.inner * self.columns
    }

    /// Returns the number of elements of the result: `[places, rows, columns]`.
    pub fn outputs(&self) -> usize {
        self.lines() * self.columns
    }

    /// Returns the width of the ring.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// OTs of a row.
    pub(super) fn per_line(&self) -> usize {
        self.choices.len() * self.inner
    }

    /// Returns the number of OTs of all rows.
    pub fn ots(&self) -> usize {
        self.lines().saturating_mul(self.per_line())
    }

    /// The rows whose pads are made together, part by part.
    pub(super) fn parts(&self) -> Vec<Range<usize>> {
        let lines = (MOST_OTS / self.per_line().max(1)).max(1);
        let starts = (0..self.lines()).step_by(lines);
        starts.map(|start| start..self.lines().min(start + lines)).collect()
    }

    /// The OTs of some rows; the client sends in them.
    pub(super) fn job(&self, lines: &Range<usize>) -> Job {
        let count = lines.len().saturating_mul(self.per_line());
        Job { count, choice_bits: 1, entry: Entry::Pair(64, 64) }
    }

    /// Returns the pads of each part, in order.
    pub fn demands(&self) -> Vec<Demand> {
        let demand = |lines: &Range<usize>| Demand::from(Role::Client, vec![self.job(lines)]);
        self.parts().iter().map(demand).collect()
    }

    /// Returns what choices and corrections of each part cost, in order, once its pads are there.
    pub fn costs(&self) -> Vec<[Cost; 2]> {
        self.parts().iter().map(|lines| self.part_cost(lines)).collect()
    }

    /// Work of each part, in order: corrections are streams out of pads.
    pub(super) fn works(&self) -> Vec<Work> {
        let bits: u64 = self.choices.iter().map(|choice| u64::from(choice.width)).sum();
        let each = self.choices.len() as f64 * STREAM_BYTES_OF_TRANSFER;
        let row = self.inner as f64 * (each + self.columns as f64 * bits as f64 / 8.0);
        let streamed = |lines: &Range<usize>| Work::of(Unit::Stream, lines.len() as f64 * row);
        self.parts().iter().map(streamed).collect()
    }

    fn part_cost(&self, lines: &Range<usize>) -> [Cost; 2] {
        let asked = Choices::body_len(&self.asked(lines));
        let sent = |pieces: &Vec<Piece>| {
            Cost::message(Role::Client, Corrections::body_len(&self.layout(pieces)))
        };
        let corrections = self.messages(lines).iter().map(sent).collect();
        [Cost::message(Role::Server, asked), corrections]
    }

    /// Layout of the server's masked choices.
    pub(super) fn asked(&self, lines: &Range<usize>) -> Vec<Lane> {
        vec![self.job(lines).choice_lane()]
    }

    /// Inner positions of a piece.
    fn inner_step(&self, choice: &Choice) -> usize {
        let each = self.columns as u64 * u64::from(choice.width);
        (PIECE / each.max(1)).clamp(1, self.inner as u64) as usize
    }

    /// The pieces of some rows, message by message.
    pub(super) fn messages(&self, lines: &Range<usize>) -> Vec<Vec<Piece>> {
        let (mut messages, mut held) = (Vec::new(), 0);
        let mut pieces = Vec::new();
        for line in lines.clone() {
            for (choice, of) in self.choices.iter().enumerate() {
                let step = self.inner_step(of);
                for start in (0..self.inner).step_by(step) {
                    let inner = start..self.inner.min(start + step);
                    let piece = Piece { line, choice, inner };
                    held += self.segment(&piece).len();
                    pieces.push(piece);
                    if held >= MESSAGE {
                        messages.push(std::mem::take(&mut pieces));
                        held = 0;
                    }
                }
            }
        }
        if !pieces.is_empty() {
            messages.push(pieces);
        }
        messages
    }

    /// What is sent for a piece.
    pub(super) fn segment(&self, piece: &Piece) -> Segment {
        let bits = self.choices.get(piece.choice).map_or(1, |choice| choice.width);
        Segment { count: piece.inner.len() * self.columns, bits }
    }

    /// Layout of a message.
    pub(super) fn layout(&self, pieces: &[Piece]) -> Vec<Segment> {
        pieces.iter().map(|piece| self.segment(piece)).collect()
    }

    /// The OTs of a piece among those of `lines`.
    pub(super) fn ots_of(&self, piece: &Piece, lines: &Range<usize>) -> Range<usize> {
        let line = (piece.line - lines.start) * self.per_line();
        let start = line + piece.choice * self.inner + piece.inner.start;
        start..start + piece.inner.len()
    }
}
