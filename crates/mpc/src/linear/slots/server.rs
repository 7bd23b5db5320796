//! The server's side.

use he::bfv::Ciphertext;
use ring::Random;
use wire::{Channel, Error, Result};
use zeroize::Zeroizing;

use super::encrypted::Encrypted;
use super::evaluate::{Evaluation, Part, Products};
use super::layer::Layer;
use super::machine::{Machine, Operations};
use super::modular::{add, lift, negate, uniform};
use super::weights::ServerWeights;
use super::{Answer, ServerKeys, Worker, check};
use crate::linear::coefficient::misuse;
use crate::linear::transport::{self, Arrivals};

/// The server's side: adds its share `x` mod p, multiplies, masks.
///
/// # Errors
/// [`Error::Misuse`] when share, keys or weights do not fit the layer, [`Error::Peer`],
/// [`Error::Transport`].
pub fn server(
    channel: &mut Channel,
    layer: &Layer,
    keys: &ServerKeys,
    weights: &ServerWeights,
    x: &[u64],
    worker: &mut Worker<'_>,
) -> Result<Zeroizing<Vec<u64>>> {
    Ok(counted_server(channel, layer, keys, weights, x, worker)?.0)
}

/// As [`server`], with what was done.
pub(super) fn counted_server(
    channel: &mut Channel,
    layer: &Layer,
    keys: &ServerKeys,
    weights: &ServerWeights,
    x: &[u64],
    worker: &mut Worker<'_>,
) -> Result<(Zeroizing<Vec<u64>>, Operations)> {
    check(layer, x, keys.public.params())?;
    check(layer, x, keys.rotations.params())?;
    if !weights.fit(layer) {
        return Err(Error::misuse("weights that do not fit their layer"));
    }
    let machine = Machine::new(Encrypted { layer, keys: &keys.rotations, weights });
    let mut evaluation = Evaluation::new(&layer.plan, &machine, worker.threads)?;
    let mut arrivals = Arrivals::new(layer.params(), layer.input_layouts());
    for piece in &layer.plan.pieces {
        let mut cipher = arrivals.next(channel)?;
        let own = layer.rows_of(&layer.plan.input_slots(piece, x));
        cipher.add_slots(layer.encoder(), &own).map_err(misuse)?;
        evaluation.push(cipher)?;
    }
    let (products, parts) = evaluation.finish()?;
    let results = send_responses(channel, layer, keys, &products, parts, worker)?;
    let biased = bias(layer, weights.bias(), &results);
    Ok((biased, machine.operations()))
}

/// Masks a response.
pub(super) fn answer(
    layer: &Layer,
    keys: &ServerKeys,
    cipher: Ciphertext,
    rng: &mut Random,
) -> Result<Answer> {
    let mask = uniform(rng, layer.params().degree(), layer.prime());
    let answered = cipher.respond(&keys.public, layer.encoder(), &mask, &layer.load(), rng);
    answered.map_err(misuse).map(|response| (vec![response.c1, response.c0], mask))
}

/// Masks and sends all responses; the masks of the results.
fn send_responses<'a>(
    channel: &mut Channel,
    layer: &Layer,
    keys: &ServerKeys,
    products: &Products<'_, Encrypted<'a>>,
    parts: Vec<Part<Encrypted<'a>>>,
    worker: &mut Worker<'_>,
) -> Result<Zeroizing<Vec<u64>>> {
    let prime = layer.prime();
    let answer = |(part, mut rng): (Part<Encrypted<'a>>, Random)| {
        answer(layer, keys, products.response(part)?, &mut rng)
    };
    let mut masks = Zeroizing::new(vec![0; layer.outputs()]);
    let mut responses = 0..;
    let keep = |mask: Zeroizing<Vec<u64>>| {
        let next = responses.next().unwrap_or_default();
        layer.plan.collect(next, &mask, prime, &mut masks);
    };
    let (layouts, parts) = (layer.response_layouts(), parts.into_iter());
    transport::send_responses(channel, layouts, parts, answer, keep, worker)?;
    Ok(masks)
}

/// The server's share: bias minus mask.
fn bias(layer: &Layer, bias: &[i64], masks: &[u64]) -> Zeroizing<Vec<u64>> {
    let (prime, each) = (layer.prime(), layer.outputs() / bias.len().max(1));
    let biases = bias.iter().flat_map(|b| std::iter::repeat_n(lift(*b, prime), each));
    let shares = masks.iter().zip(biases).map(|(mask, b)| add(negate(*mask, prime), b, prime));
    Zeroizing::new(shares.collect())
}
