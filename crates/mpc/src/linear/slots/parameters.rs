//! Parameters for what a layer does to noise.

use std::sync::{Arc, Mutex, PoisonError};

use he::bfv::noise::{self, Load};
use he::bfv::{Encoder, Params};
use wire::Result;

use super::plan::{Plan, Sequence};
use crate::linear::transport::misuse;

/// Least bits of a plaintext prime: it is 1 mod 2N at every degree.
const LEAST_BITS: u32 = 16;
/// Choices that are remembered.
const MOST_KNOWN: usize = 64;

/// What was asked, and what came of it.
struct Known {
    row: usize,
    load: Load,
    rotates: bool,
    encoder: Arc<Encoder>,
}

/// The cheapest parameters with rows of at least `row` slots for `plan`, and a plaintext
/// prime for accumulators of `plain_bits`.
///
/// # Errors
/// [`wire::Error::Misuse`] when no secure parameters hold the noise.
pub(super) fn choose(plan: &Plan, row: usize, plain_bits: u32) -> Result<Arc<Encoder>> {
    // Layers of a network repeat, and tables of a ring take longer than all the rest.
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let (load, rotates) = (load(plan, plain_bits), !plan.rotations().is_empty());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |one: &&Known| (one.row, one.load, one.rotates) == (row, load, rotates);
    if let Some(found) = known.iter().find(same) {
        return Ok(Arc::clone(&found.encoder));
    }
    let (params, _) = noise::choose_from(row, &load, rotates).map_err(misuse)?;
    let shared = known.iter().map(|one| &one.encoder).find(|encoder| {
        *encoder.params() == params && encoder.bits() == plain_bits.max(LEAST_BITS) + 1
    });
    let encoder = match shared {
        Some(encoder) => Arc::clone(encoder),
        None => encoder(&params, plain_bits)?,
    };
    if known.len() == MOST_KNOWN {
        known.clear();
    }
    known.push(Known { row, load, rotates, encoder: Arc::clone(&encoder) });
    Ok(encoder)
}

/// The smallest plaintext prime for accumulators of `plain_bits`.
///
/// # Errors
/// [`wire::Error::Misuse`] when there is none.
pub(super) fn encoder(params: &Params, plain_bits: u32) -> Result<Arc<Encoder>> {
    let prime = Encoder::prime_above(params, plain_bits.max(LEAST_BITS)).map_err(misuse)?;
    Encoder::new(params, prime).map(Arc::new).map_err(misuse)
}

/// What a response of `plan` has been through, whatever the weights are.
pub(super) fn load(plan: &Plan, plain_bits: u32) -> Load {
    let products: usize = plan.pieces.iter().map(|piece| plan.diagonals(piece)).sum();
    let rotations_after = match plan.sequence {
        Sequence::Inputs => 0,
        Sequence::Pairs => products - plan.pieces.len(),
        Sequence::Grouped => plan.turns() - 1,
    };
    let turned = plan.pieces.iter().any(|piece| plan.steps(piece).iter().any(|step| *step > 0));
    let load = Load {
        plain_bits: plain_bits.max(LEAST_BITS),
        rotations_before: usize::from(turned),
        terms: products * plan.grid.shifts.len(),
        rotations_after,
    };
    load.folded(plan.doublings().len() as u32)
}
