//! GAZELLE's order of operations: the baseline of [`gala`](super::gala).
//!
//! | | |
//! |---|---|
//! | In | shares mod p of the input; the server's weights and bias |
//! | Out | shares mod p of `W*x + b` |
//! | Reveals | to the client: slots masked by uniform R; to the server: ciphertexts |
//! | Security | semi-honest, under RLWE; responses flooded by 40 to 60 bits |
//! | Cost | [`Layer::cost`](super::slots::Layer::cost), 2 rounds |
//! | Paper | Juvekar, Vaikuntanathan, Chandrakasan, "GAZELLE" (USENIX Security 2018), sections 4 and 5 |
//!
//! Matrix times vector (the hybrid method): the input is rotated by the diagonals, with one
//! decomposition, the products are added, and partial sums are added by rotations.
//! Convolution: the input is rotated by the taps, with one decomposition; for each pair of
//! input and response the diagonals are then rotated and added.

use graph::Conv;
use wire::Result;

use super::slots::choose::{Quotients, fewest_ciphertexts};
use super::slots::evaluate::operations;
use super::slots::machine::Operations;
use super::slots::plan::{Plan, Rows, Sequence};

/// The plan of the fewest ciphertexts that takes no more rotations than [`rotations`].
pub(super) fn plan(conv: &Conv, rows: Rows) -> Result<(Plan, Operations)> {
    let sequence = if conv.is_fully_connected() { Sequence::Inputs } else { Sequence::Pairs };
    let limit = rotations(conv, rows.slots)?;
    fewest_ciphertexts(limit, |divisions| {
        let plan = Plan::new(conv, rows, divisions, sequence, true)?;
        let counted = operations(&plan)?;
        Ok((plan, counted))
    })
}

/// Returns the rotations by the published formulas, for rows of `slots` slots.
///
/// Matrix times vector: `log2(n/n_o) + n_i*n_o/n - 1`, n_o padded to a power of two.
/// Convolution: `(c_i/c_n)*(k*k - 1) + (c_i*c_o/c_n^2)*(c_n - 1)`; where a layer has fewer
/// channels than c_n, `c_n - 1` is one less than its diagonals, and the partial sums that are
/// left are added by `log2` of their number in each response.
///
/// # Errors
/// As [`Layer::new`](super::slots::Layer::new).
pub fn rotations(conv: &Conv, slots: usize) -> Result<usize> {
    let of = Quotients::new(conv, slots)?;
    let added = of.blocks * of.sums.ilog2() as usize;
    Ok(match of.products {
        Some(products) => products - 1 + added,
        None => of.pieces * (of.blocks * (of.diagonals - 1) + of.taps - 1) + added,
    })
}
