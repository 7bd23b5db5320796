//! Which channels lie in which ciphertext, and in what order it is computed.
//!
//! A ciphertext has `positions` places for channels. A *piece* of the input has a power
//! of two of channels, each `copies` times in a row:
//!
//! ```text
//! 8 positions, piece of 4 channels      a a b b c c d d
//! responses of 4 outputs                0 1 2 3 0 1 2 3
//! diagonal 0: weights to output, input  0a 1a 2b 3b 0c 1c 2d 3d
//! diagonal 1, two places further on     0b 1b 2c 3c 0d 1d 2a 3a
//! ```
//!
//! Position t of a response belongs to output `t mod together`, and diagonal d reads
//! `d*copies` places further on: together they meet every channel once. There are
//! `together / copies` diagonals, and `positions / together` partial sums of an output.
//! A matrix product is the same with one slot a channel.

use graph::Conv;
use wire::{Error, Result};

use super::grid::Grid;

/// Most ciphertexts each way in one layer: a plan from outside is priced before it is
/// accepted.
const MOST_CIPHERTEXTS: usize = 1 << 20;
/// Most products of a ciphertext and weights in one layer, for the same reason.
const MOST_PRODUCTS: usize = 1 << 22;

/// What is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::linear) enum Sequence {
    /// The inputs, by taps and diagonals; outputs are sums of products.
    Inputs,
    /// The inputs by taps, then the diagonals of each pair of input and output.
    Pairs,
    /// The inputs by taps, then the diagonals of each output, summed over all inputs.
    Grouped,
}

impl Sequence {
    /// The sequence in words, for reports.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Inputs => "rotates inputs",
            Self::Pairs => "rotates pairs",
            Self::Grouped => "rotates sums",
        }
    }
}

/// Slots of a ciphertext.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::linear) struct Rows {
    /// Returns n, the number of slots in which rotations are cyclic.
    pub(in crate::linear) slots: usize,
    /// Rows of so many slots, one or two. Rotations turn both.
    pub(in crate::linear) count: usize,
}

/// Channels of one input ciphertext.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The first channel.
    pub(super) first: usize,
    /// How many there are; zeros fill the rest.
    pub(super) channels: usize,
    /// Places that each channel takes.
    pub(super) copies: usize,
}

/// Packing and order of a layer.
#[derive(Clone, Debug)]
pub(in crate::linear) struct Plan {
    pub(super) conv: Conv,
    pub(super) grid: Grid,
    /// Returns n, the number of slots in which rotations are cyclic.
    pub(super) slots: usize,
    /// Rows in use. Both hold the same input, and each other outputs.
    pub(super) rows: usize,
    pub(super) pieces: Vec<Piece>,
    /// Output channels of a row of a response, a power of two.
    pub(super) together: usize,
    pub(super) sequence: Sequence,
    /// Whether partial sums are added under encryption, by rotations.
    pub(super) adds_under_encryption: bool,
}

impl Plan {
    /// The plan with the input in the fewest ciphertexts, if `divisions` is 1. With more, the
    /// channels that do not fill a ciphertext are divided among up to so many: each has more
    /// copies and fewer diagonals.
    ///
    /// # Errors
    /// [`Error::Misuse`] when a channel does not fit `slots`, or the layer takes too much.
    pub(in crate::linear) fn new(
        conv: &Conv,
        rows: Rows,
        divisions: usize,
        sequence: Sequence,
        adds_under_encryption: bool,
    ) -> Result<Self> {
        let (grid, slots) = (Grid::new(conv)?, rows.slots);
        if grid.block > slots {
            return Err(too_large(conv, grid.block, slots));
        }
        let positions = slots / grid.block;
        let together = conv.out_channels.min(positions).next_power_of_two();
        let pieces = pieces(conv.in_channels, positions, together, divisions)?;
        let plan = Self {
            conv: conv.clone(),
            grid,
            slots,
            rows: rows.count.min(conv.out_channels.div_ceil(together)),
            pieces,
            together,
            sequence,
            adds_under_encryption,
        };
        plan.check().map(|()| plan)
    }

    fn check(&self) -> Result<()> {
        let products = self.pieces.iter().try_fold(0usize, |sum, piece| {
            let each = self.diagonals(piece).checked_mul(self.grid.shifts.len())?;
            sum.checked_add(each.checked_mul(self.responses())?)
        });
        if products.is_some_and(|count| count <= MOST_PRODUCTS)
            && self.responses() <= MOST_CIPHERTEXTS
        {
            return Ok(());
        }
        Err(Error::misuse(format!(
            "a layer of more than {MOST_PRODUCTS} products of ciphertexts; use a smaller layer"
        )))
    }

    /// Places for channels in a ciphertext.
    pub(super) fn positions(&self) -> usize {
        self.slots / self.grid.block
    }

    /// Responses.
    pub(super) fn responses(&self) -> usize {
        self.conv.out_channels.div_ceil(self.together).div_ceil(self.rows)
    }

    /// The first output of a row of a response.
    pub(super) fn first_output(&self, response: usize, row: usize) -> usize {
        (response * self.rows + row) * self.together
    }

    /// Diagonals of a piece.
    pub(super) fn diagonals(&self, piece: &Piece) -> usize {
        self.together / piece.copies
    }

    /// The fewest copies: outputs are rotated by so many places at a time.
    pub(super) fn stride(&self) -> usize {
        self.pieces.iter().map(|piece| piece.copies).min().unwrap_or(self.together)
    }

    /// Diagonals for which `piece` itself is rotated; the others use the same rotations.
    pub(super) fn turned(&self, piece: &Piece) -> usize {
        match self.sequence {
            Sequence::Inputs => self.diagonals(piece),
            Sequence::Pairs | Sequence::Grouped => 1,
        }
    }

    /// Rotations of `piece` that its products need, in ascending order; 0 is the
    /// ciphertext itself.
    pub(super) fn steps(&self, piece: &Piece) -> Vec<usize> {
        let steps = (0..self.turned(piece)).flat_map(|diagonal| self.factors(piece, diagonal));
        let steps: std::collections::BTreeSet<usize> = steps.collect();
        steps.into_iter().collect()
    }

    /// The rotations of `piece` that the weights of a diagonal are multiplied with, one for
    /// each shift.
    pub(super) fn factors(&self, piece: &Piece, diagonal: usize) -> Vec<usize> {
        let across = match self.sequence {
            Sequence::Inputs => diagonal * piece.copies * self.grid.block,
            Sequence::Pairs | Sequence::Grouped => 0,
        };
        let step = |distance: isize| (distance + across as isize).rem_euclid(self.slots as isize);
        self.grid.shifts.iter().map(|shift| step(shift.distance) as usize).collect()
    }

    /// How many sums of a response are rotated differently: 0, 1, 2 and so on times.
    pub(super) fn turns(&self) -> usize {
        match self.sequence {
            Sequence::Inputs | Sequence::Pairs => 1,
            Sequence::Grouped => self.together / self.stride(),
        }
    }

    /// The diagonals of `piece` whose products are rotated `turns` times.
    pub(super) fn diagonals_at(&self, piece: &Piece, turns: usize) -> std::ops::Range<usize> {
        if self.sequence == Sequence::Inputs {
            return 0..self.diagonals(piece);
        }
        let each = piece.copies / self.stride();
        let diagonal = turns / each;
        if turns.is_multiple_of(each) { diagonal..diagonal + 1 } else { 0..0 }
    }

    /// Whether pieces are kept and multiplied at the end: when they take less memory, with
    /// their rotations, than the sums of all responses.
    pub(super) fn holds(&self) -> bool {
        let held: usize = self.pieces.iter().map(|piece| self.steps(piece).len()).sum();
        held < self.turns().saturating_mul(self.responses())
    }

    /// Rotations that add the partial sums of each output.
    pub(super) fn doublings(&self) -> Vec<usize> {
        let first = self.together * self.grid.block;
        let doubled = std::iter::successors(Some(first), |step| Some(2 * step));
        let wanted = if self.adds_under_encryption { self.slots } else { 0 };
        doubled.take_while(|step| *step < wanted).collect()
    }

    /// Places by which the outputs of a piece are rotated at a time.
    pub(super) fn output_step(&self, piece: &Piece) -> usize {
        let copies = match self.sequence {
            Sequence::Grouped => self.stride(),
            Sequence::Pairs | Sequence::Inputs => piece.copies,
        };
        copies * self.grid.block
    }

    /// All rotations that occur, each once, in ascending order.
    pub(super) fn rotations(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.pieces.iter().flat_map(|piece| self.steps(piece)).collect();
        if self.sequence != Sequence::Inputs {
            let rotated = self.pieces.iter().filter(|piece| self.diagonals(piece) > 1);
            all.extend(rotated.map(|piece| self.output_step(piece)));
        }
        all.extend(self.doublings());
        all.retain(|step| *step > 0);
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Divides `channels` into pieces.
fn pieces(
    channels: usize,
    positions: usize,
    together: usize,
    divisions: usize,
) -> Result<Vec<Piece>> {
    let full = channels / positions;
    if full > MOST_CIPHERTEXTS || channels == 0 {
        return Err(Error::misuse(format!(
            "a layer of {channels} input channels does not fit {MOST_CIPHERTEXTS} ciphertexts"
        )));
    }
    let whole = |at| Piece { first: at * positions, channels: positions, copies: 1 };
    let mut pieces: Vec<Piece> = (0..full).map(whole).collect();
    // A piece of `least` channels has one diagonal.
    let least = positions / together;
    let (mut first, mut left) = (full * positions, divisions.max(1));
    while first < channels {
        let units = (channels - first).div_ceil(least);
        let rounded = units.next_power_of_two();
        let size = if left == 1 || rounded == units { rounded } else { rounded / 2 };
        let taken = (size * least).min(channels - first);
        pieces.push(Piece { first, channels: taken, copies: positions / (size * least) });
        first += taken;
        left -= 1;
    }
    Ok(pieces)
}

pub(super) fn too_large(conv: &Conv, block: usize, slots: usize) -> Error {
    Error::misuse(format!(
        "a channel of {}x{} pixels takes {block} slots, a ciphertext has {slots}; use a \
         larger ring, a smaller image, or suite `auto`, which cuts images into tiles",
        conv.in_height, conv.in_width
    ))
}
