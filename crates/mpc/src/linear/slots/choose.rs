//! The choice among plans, and the numbers of the published formulas.

use graph::Conv;
use wire::{Error, Result};

use super::grid::Grid;
use super::machine::Operations;
use super::plan::{Plan, too_large};

/// What the published formulas are made of. Quotients are rounded up.
pub(in crate::linear) struct Quotients {
    /// Input ciphertexts.
    pub(in crate::linear) pieces: usize,
    /// Responses.
    pub(in crate::linear) blocks: usize,
    /// Diagonals of a full input ciphertext; c_n for layers with at least c_n channels.
    pub(in crate::linear) diagonals: usize,
    /// Positions of the kernel.
    pub(in crate::linear) taps: usize,
    /// Partial sums of each output.
    pub(in crate::linear) sums: usize,
    /// n_i*n_o/n of a matrix product.
    pub(in crate::linear) products: Option<usize>,
}

impl Quotients {
    /// Counts the quotients of `conv` in rows of `slots` slots.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a channel that does not fit.
    pub(in crate::linear) fn new(conv: &Conv, slots: usize) -> Result<Self> {
        let block = Grid::new(conv)?.block;
        if block > slots || conv.in_channels == 0 {
            return Err(too_large(conv, block, slots));
        }
        let positions = slots / block;
        let (inputs, outputs) = (conv.in_channels, conv.out_channels);
        let together = outputs.min(positions).next_power_of_two();
        let blocks = outputs.div_ceil(together);
        let padded = inputs.min(positions).next_power_of_two();
        let products = inputs.saturating_mul(together).div_ceil(slots).saturating_mul(blocks);
        Ok(Self {
            pieces: inputs.div_ceil(positions),
            blocks,
            diagonals: (padded * together / positions).max(1),
            taps: conv.kernel[0].saturating_mul(conv.kernel[1]),
            sums: positions / together,
            products: conv.is_fully_connected().then_some(products),
        })
    }
}

/// The plan of the fewest ciphertexts with at most `limit` rotations; if there is none,
/// that of the fewest rotations. `plan` is asked for more and more divisions of the input,
/// and what they do.
///
/// # Errors
/// The errors that `plan` returns.
pub(in crate::linear) fn fewest_ciphertexts(
    limit: usize,
    plan: impl Fn(usize) -> Result<(Plan, Operations)>,
) -> Result<(Plan, Operations)> {
    let mut best: Option<(Plan, Operations)> = None;
    let mut before = 0;
    for divisions in 1.. {
        let (next, counted) = plan(divisions)?;
        if next.pieces.len() == before {
            break;
        }
        before = next.pieces.len();
        if counted.rotations <= limit {
            return Ok((next, counted));
        }
        if best.as_ref().is_none_or(|(_, fewest)| counted.rotations < fewest.rotations) {
            best = Some((next, counted));
        }
    }
    best.ok_or_else(|| Error::misuse("a layer without inputs"))
}
