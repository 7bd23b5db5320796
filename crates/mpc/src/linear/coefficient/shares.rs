//! The parties' shares at both ends of a layer: their checks, and the results from phases and
//! masks.

use ring::word::mask;
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::layer::Layer;
use crate::share::Share;

/// Refuses shares that do not fit the layer. Returns the party's part of the addend, times its
/// factor, mod 2^P: zeros without an addend.
pub(super) fn check(
    layer: &Layer,
    x: &Share,
    addend: Option<&Share>,
) -> Result<Zeroizing<Vec<u64>>> {
    let fits = |share: &Share, len| share.len() == len && share.bits() >= layer.plain_bits;
    let added = match (layer.addend, addend) {
        (None, None) => Some(vec![0; layer.run_outputs()]),
        (Some(factor), Some(share)) if fits(share, layer.run_outputs()) => {
            let terms = share.words().iter().map(|word| word.wrapping_mul(factor as u64));
            Some(terms.map(|term| term & mask(layer.plain_bits)).collect())
        }
        _ => None,
    };
    match added {
        Some(added) if fits(x, layer.run_inputs()) => Ok(Zeroizing::new(added)),
        _ => Err(Error::misuse("shares that do not fit their linear layer")),
    }
}

/// The client's share of the result, from the phases and its part of the addend.
pub(super) fn client_share(layer: &Layer, phases: &[u64], added: &[u64]) -> Result<Share> {
    layer.rescaling().client(phases, layer.response_bits, added)
}

/// The server's share of the result, from the masks, the bias and its part of the addend.
pub(super) fn server_share(
    layer: &Layer,
    masks: &mut [u64],
    bias: &[i64],
    added: &[u64],
) -> Result<Share> {
    less_known(layer, masks, bias, added);
    layer.rescaling().server(masks, layer.params.modulus_bits())
}

/// Takes what the server knows of the results off the masks: the bias and its part of the addend.
pub(super) fn less_known(layer: &Layer, masks: &mut [u64], bias: &[i64], added: &[u64]) {
    let (plain, modulus) = (layer.plain_bits, layer.params.modulus_bits());
    let per_channel = layer.conv.out_height() * layer.conv.out_width();
    let biases = bias.iter().flat_map(|b| std::iter::repeat_n(*b as u64, per_channel)).cycle();
    for ((word, added), bias) in masks.iter_mut().zip(added).zip(biases) {
        let known = added.wrapping_add(bias) << (modulus - plain);
        *word = word.wrapping_sub(known) & mask(modulus);
    }
}

/// Writes each value to the index in `to` that belongs to it.
pub(super) fn scatter(all: &mut [u64], to: &[usize], values: &[u64]) {
    for (index, value) in to.iter().zip(values) {
        if let Some(slot) = all.get_mut(*index) {
            *slot = *value;
        }
    }
}
