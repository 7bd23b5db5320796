//! The public plan of a layer.

use std::sync::Arc;

use graph::Conv;
use he::bfv::noise::{Estimate, Load};
use he::bfv::{Encoder, Params};
use wire::{Cost, Error, Result, Segment};
use zeroize::Zeroizing;

use super::grid::Grid;
use super::machine::Operations;
use super::parameters;
use super::plan::{Plan, Rows};
use crate::linear::transport::bfv;
use crate::linear::transport::misuse;
use crate::linear::{gala, gazelle};

/// Slots of the smallest row that carries a product: ring degree 4096.
const SMALLEST_ROW: usize = 2048;
/// Slots of the largest row.
const LARGEST_ROW: usize = 16384;

/// The order of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// [`gazelle`].
    Gazelle,
    /// [`gala`].
    Gala,
}

impl Protocol {
    /// Returns the name of the protocol in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gazelle => "gazelle",
            Self::Gala => "gala",
        }
    }

    /// Returns the rotations of `conv` by the formulas of its paper, in rows of `slots` slots.
    ///
    /// # Errors
    /// As [`Layer::new`].
    pub fn published_rotations(self, conv: &Conv, slots: usize) -> Result<usize> {
        match self {
            Self::Gazelle => gazelle::rotations(conv, slots),
            Self::Gala => gala::rotations(conv, slots),
        }
    }

    pub(super) fn plan(self, conv: &Conv, rows: Rows) -> Result<(Plan, Operations)> {
        match self {
            Self::Gazelle => gazelle::plan(conv, rows),
            Self::Gala => gala::plan(conv, rows),
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
    /// Slots that were asked for.
    asked: Option<usize>,
    encoder: Arc<Encoder>,
}

impl Layer {
    /// Plans `conv` (a matrix product is a 1x1 kernel on a 1x1 image) for inputs of `input_bits`
    /// and accumulators that fit `plain_bits`, both signed. Rotations are cyclic in `slots` slots,
    /// a power of two, of one row; a longer row repeats them. With `None` they are both rows of the
    /// cheapest secure parameters. Groups are zero weights; strides compute every position and keep
    /// some.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths that cannot be, and for layers that no row or no secure
    /// parameters hold.
    pub fn new(
        conv: &Conv,
        protocol: Protocol,
        input_bits: u32,
        plain_bits: u32,
        slots: Option<usize>,
    ) -> Result<Self> {
        check(conv, input_bits, plain_bits)?;
        let block = Grid::new(conv)?.block;
        let rows = match slots {
            Some(slots) if slots.is_power_of_two() && slots <= LARGEST_ROW => slots..=slots,
            Some(slots) => {
                return Err(Error::misuse(format!(
                    "rows of {slots} slots; use a power of two up to {LARGEST_ROW}"
                )));
            }
            None => block.clamp(SMALLEST_ROW, LARGEST_ROW)..=LARGEST_ROW,
        };
        let mut row = *rows.start();
        loop {
            let (plan, operations) = protocol.plan(conv, rows_of(row, slots))?;
            match parameters::choose(&plan, row, plain_bits) {
                Ok(encoder) if slots.is_some() || encoder.params().row() == row => {
                    let asked = slots;
                    return Ok(Self { plan, operations, protocol, plain_bits, asked, encoder });
                }
                Err(error) if 2 * row > *rows.end() => return Err(error),
                // Only longer rows come with parameters that hold the noise.
                _ => row *= 2,
            }
        }
    }

    /// Takes the layer to other parameters, which a whole plan shares. It is packed anew unless a
    /// number of slots was asked for.
    ///
    /// # Errors
    /// [`Error::Misuse`] when `params` do not hold the layer.
    pub fn with_params(&self, params: &Params) -> Result<Self> {
        let mut layer = self.clone();
        if self.asked.is_none() && self.plan.slots != params.row() {
            (layer.plan, layer.operations) =
                self.protocol.plan(&self.plan.conv, rows_of(params.row(), None))?;
        }
        if layer.plan.slots > params.row() {
            let (wanted, row) = (layer.plan.slots, params.row());
            return Err(Error::misuse(format!("rows of {row} slots for a layer of {wanted}")));
        }
        layer.encoder = parameters::encoder(params, self.plain_bits)?;
        let noise = Estimate::of(&layer.encoder, &layer.load());
        noise.and_then(|noise| noise.flooding()).map_err(misuse)?;
        Ok(layer)
    }

    /// Returns the parameters of the encryption.
    pub fn params(&self) -> &Params {
        self.encoder.params()
    }

    /// Returns the plaintext prime p, above 2^plain_bits.
    pub fn prime(&self) -> u64 {
        self.encoder.prime()
    }

    pub(super) fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// What responses have been through.
    pub(super) fn load(&self) -> Load {
        parameters::load(&self.plan, self.plain_bits)
    }

    /// The n `slots` of each row as often as the ring's row has room for them.
    pub(super) fn rows_of(&self, slots: &[u64]) -> Zeroizing<Vec<u64>> {
        let times = self.params().row() / self.plan.slots;
        let rows = slots.chunks_exact(self.plan.slots);
        Zeroizing::new(rows.flat_map(|row| row.repeat(times)).collect())
    }

    /// Layout of each input ciphertext: seed and body.
    pub(super) fn input_layouts(&self) -> Vec<Vec<Segment>> {
        bfv::input_layouts(self.params(), self.plan.pieces.len())
    }

    /// Layout of each response.
    pub(super) fn response_layouts(&self) -> Vec<Vec<Segment>> {
        bfv::response_layouts(&self.encoder, self.plan.responses())
    }

    /// Returns the bits that the flooding of its responses is above their noise.
    pub fn flooded(&self) -> u32 {
        let noise = Estimate::of(&self.encoder, &self.load());
        noise.and_then(|noise| noise.flooded()).unwrap_or_default()
    }

    /// Returns a bound on the probability that a result of a run is wrong.
    pub fn failure(&self) -> f64 {
        bfv::failure(&self.encoder, self.plan.responses())
    }

    /// Returns what a run costs.
    pub fn cost(&self) -> Cost {
        bfv::cost(self.input_layouts(), self.response_layouts())
    }

    /// Returns the number of values of the input.
    pub fn inputs(&self) -> usize {
        let conv = &self.plan.conv;
        conv.in_channels * conv.in_height * conv.in_width
    }

    /// Returns the number of values of the output.
    pub fn outputs(&self) -> usize {
        let conv = &self.plan.conv;
        conv.out_channels * conv.out_height() * conv.out_width()
    }

    /// Returns whether it is a matrix product.
    pub fn is_fully_connected(&self) -> bool {
        self.plan.conv.is_fully_connected()
    }

    /// Returns the signed width that holds every accumulator.
    pub fn plain_bits(&self) -> u32 {
        self.plain_bits
    }

    /// Returns n, the number of slots in which rotations are cyclic.
    pub fn slots(&self) -> usize {
        self.plan.slots
    }

    /// Returns the ciphertexts up and down.
    pub fn ciphertexts(&self) -> (usize, usize) {
        (self.plan.pieces.len(), self.plan.responses())
    }

    /// Returns the steps of the rotation keys that a run needs, in ascending order.
    pub fn rotations(&self) -> Vec<usize> {
        self.plan.rotations()
    }

    /// Returns what the server does in a run, counted by running it without data.
    pub fn operations(&self) -> Operations {
        self.operations
    }

    /// Returns the protocol and packing, for people.
    pub fn describe(&self) -> String {
        let (inputs, responses) = self.ciphertexts();
        format!(
            "{}, BFV {}, n = {}, {inputs} in, {responses} out, flooded by {} bits, {} channels \
             together, {}",
            self.protocol.name(),
            self.params(),
            self.plan.slots,
            self.flooded(),
            self.plan.together,
            self.plan.sequence.name()
        )
    }
}

/// Slots that were asked for are in one row.
fn rows_of(row: usize, asked: Option<usize>) -> Rows {
    Rows { slots: row, count: if asked.is_some() { 1 } else { 2 } }
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
