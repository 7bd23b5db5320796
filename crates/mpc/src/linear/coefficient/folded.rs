//! Plans with several input polynomials in one ciphertext.

use graph::{Linear, Rounding};
use he::rlwe::{EXACT_BITS, MOST_LEVELS, Params, TABLE, UnfoldKey, noise};

use wire::{Error, Result};

use super::layer::{Chosen, Layer, MOST_CIPHERTEXTS, labour, largest, payload};
use super::packing::Folding;
use crate::linear::transport::misuse;
use crate::linear::transport::rlwe::Sent;

/// Most folded plans of a layer, one for each degree and number of levels.
pub const MOST_FOLDINGS: usize = TABLE.len() * MOST_LEVELS;

impl Layer {
    /// Plans `linear` as [`Layer::new`] does, with input polynomials folded, for servers that hold
    /// keys for unfolding of [`Layer::params`] and [`Layer::levels`]: the plan of the fewest bytes
    /// for the degree and number of levels at `place`, which counts the levels of the first degree
    /// from 1 to [`MOST_LEVELS`] and then those of the next.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other places, and where no packing holds the precision.
    pub fn folded(linear: &Linear, out_bits: u32, batch: usize, place: usize) -> Result<Self> {
        let at = place.checked_sub(1).ok_or_else(none)?;
        let (degree, bits) = TABLE.get(at / MOST_LEVELS).copied().ok_or_else(none)?;
        let params = Params::new(degree, bits).map_err(misuse)?;
        best(linear, out_bits, batch, params, at % MOST_LEVELS + 1).ok_or_else(none)
    }

    /// Returns the levels of unfolding, 0 if nothing is folded.
    pub fn levels(&self) -> usize {
        self.packing.levels()
    }

    /// How ciphertexts come from the client; unfolding makes plaintexts larger.
    pub(super) fn sent(&self) -> Sent {
        let bits = self.plain_bits + self.levels() as u32;
        Sent { params: self.params, bits, dropped: self.dropped }
    }

    /// Transforms that unfolding a ciphertext takes, each for as many primes as a product.
    pub(super) fn unfolding(&self) -> f64 {
        UnfoldKey::transforms(self.params, self.levels()) as f64 / 2.0
    }

    /// The load of the weights of a response.
    pub(super) fn load(&self) -> noise::Load {
        let Self { params, dropped, .. } = *self;
        load(&self.packing, (self.largest, self.square_bits), (params, dropped))
    }
}

fn none() -> Error {
    Error::misuse("a folding that the layer does not have")
}

/// The load of weights up to `largest`; folded, of channels of at most 2^bits in squares.
fn load(
    packing: &Folding,
    (largest, square_bits): (u64, Option<u32>),
    (params, dropped): (Params, u32),
) -> noise::Load {
    let count = packing.weights_per_response();
    let levels = packing.levels();
    let load = match square_bits {
        Some(bits) if levels > 0 => {
            let channels = count.div_ceil(packing.taps().max(1));
            noise::Load::from_squares(channels as f64 * 2f64.powi(bits as i32))
        }
        _ => noise::Load::bounded(count, largest),
    };
    match levels {
        0 => load,
        levels => load.unfolded(params, levels, dropped),
    }
}

/// The plan of the fewest bytes, among them of the least work.
fn best(
    linear: &Linear,
    out_bits: u32,
    batch: usize,
    params: Params,
    levels: usize,
) -> Option<Layer> {
    let plain_bits = out_bits + linear.shift;
    let response_bits = match linear.rounding {
        Rounding::Exact => plain_bits + noise::EXACT_SPARE,
        Rounding::Stochastic => out_bits + noise::STOCHASTIC_SPARE,
    };
    let encrypted_bits = plain_bits + levels as u32;
    if response_bits.max(encrypted_bits) > params.modulus_bits() {
        return None;
    }
    let enough = |packing: &Folding, dropped: u32| {
        let load = load(packing, (largest(linear), linear.square_bits), (params, dropped));
        let noise = noise::Noise::new(params, load, response_bits);
        match linear.rounding {
            Rounding::Stochastic => {
                let error = noise.rescale_error(out_bits, noise::PER_COEFFICIENT);
                error < noise::stochastic_error(params.degree())
            }
            Rounding::Exact => {
                let error = noise.rescale_error(plain_bits + EXACT_BITS, noise::PER_TENSOR);
                error < f64::from(1u32 << (EXACT_BITS - 1))
            }
        }
    };
    let mut best: Option<(u64, usize, Folding, Chosen)> = None;
    let most_dropped = params.modulus_bits() - encrypted_bits;
    for packing in Folding::candidates(&linear.conv, batch, params.degree(), levels) {
        if packing.inputs().max(packing.responses()) > MOST_CIPHERTEXTS {
            continue;
        }
        let with = |dropped: u32| Chosen { params, dropped, response_bits };
        let most = best.as_ref().map_or(u64::MAX, |(bytes, ..)| *bytes);
        if payload(&packing, with(most_dropped)) > most {
            continue;
        }
        let dropped = noise::droppable(params, encrypted_bits, |bits| enough(&packing, bits));
        let Some(chosen) = dropped.map(with) else { continue };
        let bytes = payload(&packing, chosen);
        if bytes > most {
            continue;
        }
        let labour = labour(&packing, params);
        if best.as_ref().is_none_or(|(known, least, ..)| (bytes, labour) < (*known, *least)) {
            best = Some((bytes, labour, packing, chosen));
        }
    }
    best.map(|(.., packing, chosen)| Layer::of(linear, out_bits, packing, chosen))
}
