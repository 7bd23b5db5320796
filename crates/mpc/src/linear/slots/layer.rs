//! The public plan of a layer.

use graph::Conv;
use wire::{Error, Result};

use super::machine::Operations;
use super::plan::Plan;
use crate::linear::{gala, gazelle};

/// Slots of the smallest row that carries a product: ring degree 4096.
const SMALLEST_ROW: usize = 2048;
/// Slots of the largest row.
const LARGEST_ROW: usize = 16384;

/// Which order of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// [`gazelle`].
    Gazelle,
    /// [`gala`].
    Gala,
}

impl Protocol {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gazelle => "gazelle",
            Self::Gala => "gala",
        }
    }

    /// Rotations of `conv` by the formulas of its paper, in rows of `slots` slots.
    ///
    /// # Errors
    /// As [`Layer::new`].
    pub fn published_rotations(self, conv: &Conv, slots: usize) -> Result<usize> {
        match self {
            Self::Gazelle => gazelle::rotations(conv, slots),
            Self::Gala => gala::rotations(conv, slots),
        }
    }

    pub(super) fn plan(self, conv: &Conv, slots: usize) -> Result<(Plan, Operations)> {
        match self {
            Self::Gazelle => gazelle::plan(conv, slots),
            Self::Gala => gala::plan(conv, slots),
        }
    }
}

/// The public plan of a linear layer on packed slots.
#[derive(Clone, Debug)]
pub struct Layer {
    pub(super) plan: Plan,
    operations: Operations,
    protocol: Protocol,
    plain_bits: u32,
}

impl Layer {
    /// Plans `conv` (a matrix product is a 1x1 kernel on a 1x1 image) for inputs of
    /// `input_bits` and accumulators that fit `plain_bits`, both signed. Rotations are cyclic
    /// in `slots` slots, a power of two: with `None` in the row of the cheapest secure
    /// parameters. Groups are zero weights; strides compute every position and keep some.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths that cannot be, and for layers that no row holds.
    pub fn new(
        conv: &Conv,
        protocol: Protocol,
        input_bits: u32,
        plain_bits: u32,
        slots: Option<usize>,
    ) -> Result<Self> {
        check(conv, input_bits, plain_bits)?;
        let (plan, operations) = match slots {
            Some(slots) if slots.is_power_of_two() && slots <= LARGEST_ROW => {
                protocol.plan(conv, slots)?
            }
            Some(slots) => {
                return Err(Error::misuse(format!(
                    "rows of {slots} slots; use a power of two up to {LARGEST_ROW}"
                )));
            }
            None => {
                let block = super::grid::Grid::new(conv)?.block;
                protocol.plan(conv, block.clamp(SMALLEST_ROW, LARGEST_ROW))?
            }
        };
        Ok(Self { plan, operations, protocol, plain_bits })
    }

    /// Values of the input.
    pub fn inputs(&self) -> usize {
        let conv = &self.plan.conv;
        conv.in_channels * conv.in_height * conv.in_width
    }

    /// Values of the output.
    pub fn outputs(&self) -> usize {
        let conv = &self.plan.conv;
        conv.out_channels * conv.out_height() * conv.out_width()
    }

    /// Signed width that holds every accumulator.
    pub fn plain_bits(&self) -> u32 {
        self.plain_bits
    }

    /// n: slots in which rotations are cyclic.
    pub fn slots(&self) -> usize {
        self.plan.slots
    }

    /// Ciphertexts up and down.
    pub fn ciphertexts(&self) -> (usize, usize) {
        (self.plan.pieces.len(), self.plan.blocks())
    }

    /// Steps of the rotation keys that a run needs, in ascending order.
    pub fn rotations(&self) -> Vec<usize> {
        self.plan.rotations()
    }

    /// What the server does in a run, counted by running it without data.
    pub fn operations(&self) -> Operations {
        self.operations
    }

    /// Protocol and packing, for people.
    pub fn describe(&self) -> String {
        let (inputs, responses) = self.ciphertexts();
        format!(
            "{} n={}, {inputs} in, {responses} out, {} channels together, {}",
            self.protocol.name(),
            self.plan.slots,
            self.plan.together,
            self.plan.sequence.name()
        )
    }
}

fn check(conv: &Conv, input_bits: u32, plain_bits: u32) -> Result<()> {
    let divides =
        |channels: usize| channels > 0 && conv.groups > 0 && channels.is_multiple_of(conv.groups);
    if !divides(conv.in_channels) || !divides(conv.out_channels) {
        return Err(Error::misuse("a convolution whose groups do not divide its channels"));
    }
    if input_bits == 0 || input_bits > plain_bits || plain_bits > 59 {
        return Err(Error::misuse(format!(
            "inputs of {input_bits} bits and accumulators of {plain_bits}; accumulators hold \
             their inputs and have at most 59 bits"
        )));
    }
    Ok(())
}
