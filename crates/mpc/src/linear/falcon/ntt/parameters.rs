//! Parameters for what a layer does to noise.

use std::sync::{Arc, Mutex, PoisonError};

use he::bfv::noise::{self, Estimate, Load};
use he::bfv::{Encoder, Params};
use wire::Result;

use super::packing::Packing;
use super::shape::{DIVISOR, MOST_SLOTS, Shape};
use crate::linear::transport::misuse;

/// Slots of the smallest ring that carries a product.
const LEAST_SLOTS: usize = 4096;
/// Least bits of a plaintext prime: it is 1 mod 2N at every degree.
const LEAST_BITS: u32 = 16;
/// Choices that are remembered.
const MOST_KNOWN: usize = 64;

/// What was asked, and what came of it.
struct Known {
    slots: usize,
    terms: usize,
    bits: u32,
    encoder: Option<Arc<Encoder>>,
}

/// The packing of a layer under the cheapest parameters, and a plaintext prime for
/// accumulators of `plain_bits` that is 1 mod [`DIVISOR`]. Of every channel's ciphertext
/// `products` are added up in a response.
///
/// # Errors
/// [`wire::Error::Misuse`] when no secure parameters hold the noise.
pub(in crate::linear) fn choose(
    shape: &Shape,
    plain_bits: u32,
    products: usize,
) -> Result<(Packing, Arc<Encoder>)> {
    let mut slots = shape.block().next_power_of_two().max(LEAST_SLOTS);
    loop {
        let packing = Packing::new(shape, slots)?;
        let terms = products * packing.pieces();
        match remembered(slots, terms, plain_bits.max(LEAST_BITS)) {
            Ok(Some(encoder)) => return Ok((packing, encoder)),
            Err(error) if 2 * slots > MOST_SLOTS => return Err(error),
            // Only longer ciphertexts come with parameters that hold the noise.
            _ => slots *= 2,
        }
    }
}

/// What encodes slots of that number for sums of so many products, if it is the cheapest.
fn remembered(slots: usize, terms: usize, bits: u32) -> Result<Option<Arc<Encoder>>> {
    // Layers of a network repeat, and tables of a ring take longer than all the rest.
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |one: &&Known| (one.slots, one.terms, one.bits) == (slots, terms, bits);
    if let Some(found) = known.iter().find(same) {
        return Ok(found.encoder.clone());
    }
    let load = Load { plain_bits: bits, rotations_before: 0, terms, rotations_after: 0 };
    let chosen = noise::choose_with(slots / 2, &load, false, DIVISOR);
    let (params, _) = chosen.map_err(misuse)?;
    let encoder = match params.degree() == slots {
        true => Some(shared(&known, &params, bits)?),
        false => None,
    };
    if known.len() == MOST_KNOWN {
        known.clear();
    }
    known.push(Known { slots, terms, bits, encoder: encoder.clone() });
    Ok(encoder)
}

fn shared(known: &[Known], params: &Params, bits: u32) -> Result<Arc<Encoder>> {
    let mut encoders = known.iter().filter(|one| one.bits == bits).filter_map(|one| {
        let encoder = one.encoder.as_ref()?;
        (encoder.params() == params).then(|| Arc::clone(encoder))
    });
    encoders.next().map_or_else(|| encoder(params, bits), Ok)
}

/// The smallest plaintext prime for accumulators of `plain_bits`.
///
/// # Errors
/// [`wire::Error::Misuse`] when there is none.
pub(in crate::linear) fn encoder(params: &Params, plain_bits: u32) -> Result<Arc<Encoder>> {
    let prime = Encoder::prime_with(params, plain_bits.max(LEAST_BITS), DIVISOR);
    let prime = prime.map_err(misuse)?;
    Encoder::new(params, prime).map(Arc::new).map_err(misuse)
}

/// What a response has been through, whatever the weights are.
pub(in crate::linear) fn load(terms: usize, encoder: &Encoder) -> Load {
    let plain_bits = encoder.bits() - 1;
    Load { plain_bits, rotations_before: 0, terms, rotations_after: 0 }
}

/// Whether the encoder's parameters hold a flooded response.
///
/// # Errors
/// [`wire::Error::Misuse`] when they do not.
pub(in crate::linear) fn hold(terms: usize, encoder: &Encoder) -> Result<()> {
    let noise = Estimate::of(encoder, &load(terms, encoder));
    noise.and_then(|noise| noise.flooding()).map(|_| ()).map_err(misuse)
}
