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

use std::collections::VecDeque;

use graph::Rounding;
use he::rlwe::{PublicKey, Response, SecretKey, rescale};
use ring::word::mask;
use ring::{Random, Seed};
use wire::{Channel, Error, Message, Result, Segment};
use zeroize::Zeroizing;

pub use ahead::{ClientAhead, ClientAsked, ServerAhead, ServerAsked};
pub(in crate::linear) use layer::chunks;
use layer::{Inputs, Responses};
pub use layer::{Layer, MOST_PACKINGS};
use packing::Place;
pub use product::ServerWeights;

use crate::parallel;
use crate::share::Share;

pub(in crate::linear) fn misuse(error: he::Error) -> Error {
    Error::misuse(error.to_string())
}

/// Sends the parts in chunks, each part a few segments.
pub(in crate::linear) fn send_chunks<M: Message>(
    channel: &mut Channel,
    layouts: &[Vec<Segment>],
    parts: &mut dyn Iterator<Item = Result<Vec<Vec<u64>>>>,
    wrap: impl Fn(Vec<(Segment, Vec<u64>)>) -> M,
) -> Result<()> {
    for layout in layouts {
        let mut segments = Vec::with_capacity(layout.len());
        let mut rest = layout.iter();
        while rest.len() > 0 {
            let part = parts.next().ok_or_else(|| Error::misuse("too few parts"))??;
            segments.extend(rest.by_ref().take(part.len()).copied().zip(part));
        }
        channel.send(&wrap(segments))?;
    }
    Ok(())
}

/// What a party works with.
pub struct Worker<'a> {
    /// Its own randomness.
    pub rng: &'a mut Random,
    /// Threads for its own work; what it sends does not depend on them.
    pub threads: usize,
}

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
    let threads = worker.threads;
    let encrypt = |(values, mut rng): (Zeroizing<Vec<u64>>, Random)| {
        let fresh = key.encrypt(layer.params, &values, layer.plain_bits, &mut rng);
        let fresh = fresh.map_err(misuse)?;
        Ok(vec![words_of(&fresh.seed), fresh.body])
    };
    let mut polynomials = polynomials.into_iter().map(Zeroizing::new);
    let mut done = VecDeque::new();
    let mut fresh = std::iter::from_fn(|| {
        if done.is_empty() {
            let some = polynomials.by_ref().take(parallel::batch(threads));
            let some = some.map(|values| (values, worker.rng.child())).collect();
            done.extend(parallel::map(threads, some, encrypt));
        }
        done.pop_front()
    });
    send_chunks(channel, &chunks(layer.input_layouts()), &mut fresh, Inputs::new)
}

/// The phases of the products that the server answers.
fn receive_phases(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    threads: usize,
) -> Result<Zeroizing<Vec<u64>>> {
    let mut phases = Zeroizing::new(vec![0; layer.outputs()]);
    let mut places = layer.packing.places();
    for layout in chunks(layer.response_layouts()) {
        let message: Responses = channel.receive(&layout)?;
        let mut parts = message.into_values();
        let mut answers = Vec::new();
        while let (Some(c1), Some(c0)) = (parts.next(), parts.next()) {
            let place = places.next().ok_or_else(|| Error::misuse("too many responses"))?;
            answers.push((place, Response { c1, c0, bits: layer.response_bits }));
        }
        let decrypt = |(place, response): (Place, Response)| {
            let (keep, to): (Vec<_>, Vec<_>) = layer.packing.outputs(place).into_iter().unzip();
            Ok((to, key.decrypt(&response, &keep).map_err(misuse)?))
        };
        for opened in parallel::map(threads, answers, decrypt) {
            let (to, opened) = opened?;
            scatter(&mut phases, &to, &opened);
        }
    }
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
    let (plain, response) = (layer.plain_bits, layer.response_bits);
    let width = plain.max(response);
    let sums = phases.iter().zip(added).map(|(phase, added)| {
        (phase << (width - response)).wrapping_add(added << (width - plain)) & mask(width)
    });
    let sums = Zeroizing::new(sums.collect::<Vec<u64>>());
    let words = match layer.rounding {
        Rounding::Stochastic => rescale::client(&sums, width, layer.out_bits),
        Rounding::Exact => rescale::exact_client(&sums, width, plain),
    };
    Ok(Share::new(words.map_err(misuse)?, layer.result_bits()))
}

fn server_share(layer: &Layer, masks: &mut [u64], bias: &[i64], added: &[u64]) -> Result<Share> {
    let (plain, modulus) = (layer.plain_bits, layer.params.modulus_bits());
    let per_channel = layer.conv.out_height() * layer.conv.out_width();
    let biases = bias.iter().flat_map(|b| std::iter::repeat_n(*b as u64, per_channel)).cycle();
    for ((word, added), bias) in masks.iter_mut().zip(added).zip(biases) {
        let known = added.wrapping_add(bias) << (modulus - plain);
        *word = word.wrapping_sub(known) & mask(modulus);
    }
    let words = match layer.rounding {
        Rounding::Stochastic => rescale::server(masks, modulus, layer.out_bits),
        Rounding::Exact => rescale::exact_server(masks, modulus, plain),
    };
    Ok(Share::new(words.map_err(misuse)?, layer.result_bits()))
}

fn scatter(all: &mut [u64], to: &[usize], values: &[u64]) {
    for (index, value) in to.iter().zip(values) {
        if let Some(slot) = all.get_mut(*index) {
            *slot = *value;
        }
    }
}

pub(in crate::linear) fn words_of(seed: &Seed) -> Vec<u64> {
    let (words, _) = seed.0.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

pub(in crate::linear) fn seed_of(words: &[u64]) -> Seed {
    let mut seed = Seed([0; 16]);
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    seed.0.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    seed
}
