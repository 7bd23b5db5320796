//! Convolution and matrix product under coefficient-packed RLWE.
//!
//! | | |
//! |---|---|
//! | In | shares of one or several inputs `x` mod 2^P or wider; the server's weights and bias; shares of an addend |
//! | Out | stochastic: shares mod 2^out of `(W*x + b + m*addend) / 2^shift`, off by less than [`noise::stochastic_error`](he::rlwe::noise::stochastic_error); exact: shares mod 2^(P+4) of `16*(W*x + b + m*addend) + e`, 0 < e < 16 |
//! | Reveals | to the client: phases masked by uniform R; to the server: ciphertexts |
//! | Security | semi-honest, under RLWE; the functionality is a linear map of the client's perturbed input plus weight-independent noise (ENGINE section 2) |
//! | Cost | `inputs*(16 + N*K/8)` up, `responses*N*K'/8 + outputs*K'/8` down, 2 rounds ([`Layer::cost`]) |
//! | Paper | Huang, Lu, Hong, Ding, "Cheetah" (USENIX Security 2022), sections 3 and 4 |
//!
//! P is `out + shift`: a result that fits `out` bits has an accumulator that fits P.
//!
//! Bias and the server's part of the addend go into the mask: R is uniform, so R
//! minus anything is. The client adds its part of the addend to the phase before
//! it rounds; when K' < P that adds less than 2^-8 to the rounding error.
//! Zero weights are multiplied like any other: messages and work depend on the
//! plan only.

mod ahead;
mod answers;
mod clear;
mod layer;
mod packing;
mod product;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
pub(super) mod tests;

use he::rlwe::{PublicKey, SecretKey};
use ring::word::mask;
use wire::{Channel, Error, Result};
use zeroize::Zeroizing;

pub use ahead::{ClientAhead, ClientAsked, ServerAhead, ServerAsked};
use layer::{INPUTS, RESPONSES};
pub use layer::{Layer, MOST_PACKINGS};
use packing::Place;
pub use product::ServerWeights;

pub use crate::linear::transport::Worker;
use crate::linear::transport::rlwe;
use crate::share::Share;

/// The client's side: encrypts its share, decrypts the responses.
///
/// # Errors
/// [`Error::Misuse`] when shares or key do not fit the layer, [`Error::Peer`],
/// [`Error::Transport`].
pub fn client(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    x: &Share,
    addend: Option<&Share>,
    worker: &mut Worker<'_>,
) -> Result<Share> {
    let added = check(layer, x, addend)?;
    let phases = client_products(channel, layer, key, x.words(), worker)?;
    client_share(layer, &phases, &added)
}

/// Sends `values` mod 2^P encrypted; the phases of their products.
fn client_products(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    values: &[u64],
    worker: &mut Worker<'_>,
) -> Result<Zeroizing<Vec<u64>>> {
    send_inputs(channel, layer, key, values, worker)?;
    receive_phases(channel, layer, key, worker.threads)
}

/// Sends `values` mod 2^P encrypted.
fn send_inputs(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    values: &[u64],
    worker: &mut Worker<'_>,
) -> Result<()> {
    let polynomials = layer.packing.encode_inputs(values, layer.params.degree());
    let polynomials = polynomials.into_iter().map(Zeroizing::new);
    let with = (key, layer.params, layer.plain_bits);
    rlwe::send_inputs::<INPUTS>(channel, layer.input_layouts(), with, polynomials, worker)
}

/// The phases of the products that the server answers.
fn receive_phases(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    threads: usize,
) -> Result<Zeroizing<Vec<u64>>> {
    let mut phases = Zeroizing::new(vec![0; layer.outputs()]);
    let (layouts, places) = (layer.response_layouts(), layer.packing.places());
    let outputs = |place: Place| layer.packing.outputs(place).into_iter().unzip();
    let with = (key, layer.response_bits, threads);
    rlwe::receive_phases::<RESPONSES, _>(channel, layouts, with, places, outputs, |to, opened| {
        scatter(&mut phases, &to, opened);
    })?;
    Ok(phases)
}

/// The server's side: adds its share, multiplies, masks.
///
/// # Errors
/// [`Error::Misuse`] when shares, key or weights do not fit the layer,
/// [`Error::Peer`], [`Error::Transport`].
pub fn server(
    channel: &mut Channel,
    layer: &Layer,
    key: &PublicKey,
    weights: &ServerWeights,
    x: &Share,
    addend: Option<&Share>,
    worker: &mut Worker<'_>,
) -> Result<Share> {
    let added = check(layer, x, addend)?;
    let mut masks = answers::stream(channel, layer, key, weights, x.words(), worker)?;
    server_share(layer, &mut masks, weights.bias(), &added)
}

fn check(layer: &Layer, x: &Share, addend: Option<&Share>) -> Result<Zeroizing<Vec<u64>>> {
    let fits = |share: &Share, len| share.len() == len && share.bits() >= layer.plain_bits;
    let added = match (layer.addend, addend) {
        (None, None) => Some(vec![0; layer.outputs()]),
        (Some(factor), Some(share)) if fits(share, layer.outputs()) => {
            let terms = share.words().iter().map(|word| word.wrapping_mul(factor as u64));
            Some(terms.map(|term| term & mask(layer.plain_bits)).collect())
        }
        _ => None,
    };
    match added {
        Some(added) if fits(x, layer.inputs()) => Ok(Zeroizing::new(added)),
        _ => Err(Error::misuse("shares that do not fit their linear layer")),
    }
}

fn client_share(layer: &Layer, phases: &[u64], added: &[u64]) -> Result<Share> {
    layer.rescaling().client(phases, layer.response_bits, added)
}

fn server_share(layer: &Layer, masks: &mut [u64], bias: &[i64], added: &[u64]) -> Result<Share> {
    let (plain, modulus) = (layer.plain_bits, layer.params.modulus_bits());
    let per_channel = layer.conv.out_height() * layer.conv.out_width();
    let biases = bias.iter().flat_map(|b| std::iter::repeat_n(*b as u64, per_channel)).cycle();
    for ((word, added), bias) in masks.iter_mut().zip(added).zip(biases) {
        let known = added.wrapping_add(bias) << (modulus - plain);
        *word = word.wrapping_sub(known) & mask(modulus);
    }
    layer.rescaling().server(masks, modulus)
}

fn scatter(all: &mut [u64], to: &[usize], values: &[u64]) {
    for (index, value) in to.iter().zip(values) {
        if let Some(slot) = all.get_mut(*index) {
            *slot = *value;
        }
    }
}
