//! The server's side.

use std::collections::VecDeque;

use he::bfv::{Ciphertext, Fresh};
use ring::Random;
use wire::{Channel, Error, Result, Segment};
use zeroize::Zeroizing;

use super::encrypted::Encrypted;
use super::evaluate::{Evaluation, Part, Products};
use super::layer::{Inputs, Layer};
use super::machine::{Machine, Operations};
use super::modular::{add, lift, negate, uniform};
use super::weights::ServerWeights;
use super::{Answer, ServerKeys, Worker, check};
use crate::linear::coefficient::{chunks, misuse, seed_of, send_chunks};
use crate::parallel;

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
    let mut arrivals = Arrivals::new(layer, x);
    for _ in &layer.plan.pieces {
        evaluation.push(arrivals.next(channel)?)?;
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
    let (threads, prime) = (worker.threads, layer.prime());
    let answer = |(part, mut rng): (Part<Encrypted<'a>>, Random)| {
        answer(layer, keys, products.response(part)?, &mut rng)
    };
    let mut masks = Zeroizing::new(vec![0; layer.outputs()]);
    let mut parts = parts.into_iter();
    let (mut ready, mut next) = (VecDeque::new(), 0);
    let mut responses = std::iter::from_fn(|| {
        if ready.is_empty() {
            let some = parts.by_ref().take(parallel::batch(threads));
            let some = some.map(|part| (part, worker.rng.child())).collect();
            ready.extend(parallel::map(threads, some, answer));
        }
        ready.pop_front().map(|answered| {
            let (parts, mask) = answered?;
            layer.plan.collect(next, &mask, prime, &mut masks);
            next += 1;
            Ok(parts)
        })
    });
    let layouts = chunks(layer.response_layouts());
    send_chunks(channel, &layouts, &mut responses, wire::Packed::<0x46>)?;
    Ok(masks)
}

/// The server's share: bias minus mask.
fn bias(layer: &Layer, bias: &[i64], masks: &[u64]) -> Zeroizing<Vec<u64>> {
    let (prime, each) = (layer.prime(), layer.outputs() / bias.len().max(1));
    let biases = bias.iter().flat_map(|b| std::iter::repeat_n(lift(*b, prime), each));
    let shares = masks.iter().zip(biases).map(|(mask, b)| add(negate(*mask, prime), b, prime));
    Zeroizing::new(shares.collect())
}

/// The client's ciphertexts in order, with the server's share added.
struct Arrivals<'a> {
    layer: &'a Layer,
    own: &'a [u64],
    next: usize,
    layouts: std::vec::IntoIter<Vec<Segment>>,
    parts: std::vec::IntoIter<Vec<u64>>,
}

impl<'a> Arrivals<'a> {
    fn new(layer: &'a Layer, own: &'a [u64]) -> Self {
        let layouts = chunks(layer.input_layouts()).into_iter();
        Self { layer, own, next: 0, layouts, parts: Vec::new().into_iter() }
    }

    fn next(&mut self, channel: &mut Channel) -> Result<Ciphertext> {
        let layer = self.layer;
        let piece = layer.plan.pieces.get(self.next);
        let piece = piece.ok_or_else(|| Error::misuse("too few ciphertexts"))?;
        self.next += 1;
        if self.parts.len() == 0 {
            let layout = self.layouts.next();
            let layout = layout.ok_or_else(|| Error::misuse("too few ciphertexts"))?;
            let message: Inputs = channel.receive(&layout)?;
            self.parts = message.into_values().collect::<Vec<_>>().into_iter();
        }
        let seed = self.parts.next().unwrap_or_default();
        let body = self.parts.by_ref().take(layer.params().widths().len()).collect();
        let expanded = Fresh { seed: seed_of(&seed), body }.expand(layer.params());
        let mut cipher = expanded.map_err(|e| Error::peer("a ciphertext", e.to_string()))?;
        let own = layer.rows_of(&layer.plan.input_slots(piece, self.own));
        cipher.add_slots(layer.encoder(), &own).map_err(misuse)?;
        Ok(cipher)
    }
}
