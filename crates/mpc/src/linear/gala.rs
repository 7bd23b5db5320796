//! GALA's order of operations: fewer rotations than [`gazelle`](super::gazelle).
//!
//! | | |
//! |---|---|
//! | In | shares mod p of the input; the server's weights and bias |
//! | Out | shares mod p of `W*x + b` |
//! | Reveals | to the client: slots masked by uniform R; to the server: ciphertexts |
//! | Security | semi-honest, under RLWE; responses flooded by 40 to 60 bits |
//! | Cost | [`Layer::cost`](super::slots::Layer::cost), 2 rounds |
//! | Paper | Zhang, Xin, Wu, "GALA" (NDSS 2021), section III |
//!
//! *Row encoding, share-RaS*: products are rotated instead of the input, and partial sums are
//! not added under encryption: all slots are masked, and both parties add their own.
//! *Kernel grouping*: products of a diagonal are added over all inputs before they are
//! rotated. *Greedy*: where it takes fewer rotations, inputs are rotated by the diagonals too.

use graph::Conv;
use wire::Result;

use super::slots::choose::{Quotients, fewest_ciphertexts};
use super::slots::evaluate::operations;
use super::slots::machine::Operations;
use super::slots::plan::{Plan, Rows, Sequence};

/// Chooses among the plans of the fewest ciphertexts that take no more rotations than
/// [`rotations`]: the one of the fewest rotations, among them the one that rotates outputs.
pub(super) fn plan(conv: &Conv, rows: Rows) -> Result<(Plan, Operations)> {
    let limit = rotations(conv, rows.slots)?;
    fewest_ciphertexts(limit, |divisions| {
        let outputs = Plan::new(conv, rows, divisions, Sequence::Grouped, false)?;
        let inputs = Plan::new(conv, rows, divisions, Sequence::Inputs, false)?;
        let counted = [operations(&outputs)?, operations(&inputs)?];
        let fewer = counted[1].rotations < counted[0].rotations;
        Ok(if fewer { (inputs, counted[1]) } else { (outputs, counted[0]) })
    })
}

/// Returns the rotations by the published formulas, for rows of `slots` slots.
///
/// Matrix times vector: `n_i*n_o/n - 1`, n_o padded to a power of two. Convolution:
/// `(c_i/c_n)*(k*k - 1) + (c_o/c_n)*(c_n - 1)`; where a layer has fewer channels than c_n,
/// `c_n - 1` is one less than its diagonals.
///
/// # Errors
/// As [`Layer::new`](super::slots::Layer::new).
pub fn rotations(conv: &Conv, slots: usize) -> Result<usize> {
    let of = Quotients::new(conv, slots)?;
    Ok(match of.products {
        Some(products) => products - 1,
        None => of.pieces * (of.taps - 1) + of.blocks * (of.diagonals - 1),
    })
}
