//! The server's side.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use he::bfv::{Accumulator, Ciphertext, Fresh};
use ring::Random;
use wire::{Channel, Error, Result, Segment};
use zeroize::Zeroizing;

use super::layer::{Inputs, Layer};
use super::weights::ServerWeights;
use super::{Operations, ServerKeys, Worker, check};
use crate::linear::coefficient::{chunks, misuse, seed_of, send_chunks};
use crate::linear::slots::{Answer, uniform};
use crate::parallel;

/// The server's side: adds the transform of its share `x` mod p, multiplies, masks.
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
    if !weights.fit(layer) {
        return Err(Error::misuse("weights that do not fit their layer"));
    }
    let mut products = Products::new(layer, weights, worker.threads);
    let mut arrivals = Arrivals::new(layer, x);
    for piece in 0..layer.packing.pieces() {
        products.push(piece, arrivals.next(piece, channel)?)?;
    }
    let results = send_responses(channel, &mut products, keys, worker)?;
    Ok((bias(layer, weights.bias(), &results), products.operations()))
}

/// Sums of products. They are made as ciphertexts arrive, or, where there are fewer
/// ciphertexts than responses, response by response at the end.
pub(super) struct Products<'a> {
    layer: &'a Layer,
    weights: &'a ServerWeights,
    threads: usize,
    held: Vec<Ciphertext>,
    sums: Vec<Option<Accumulator>>,
    multiplied: AtomicUsize,
}

impl<'a> Products<'a> {
    pub(super) fn new(layer: &'a Layer, weights: &'a ServerWeights, threads: usize) -> Self {
        let (pieces, responses) = layer.ciphertexts();
        let sum = |_| (pieces > responses).then(|| Accumulator::new(layer.params()));
        let sums = (0..responses).map(sum).collect();
        Self { layer, weights, threads, held: Vec::new(), sums, multiplied: AtomicUsize::new(0) }
    }

    /// Takes the ciphertext of a piece, in order.
    pub(super) fn push(&mut self, piece: usize, cipher: Ciphertext) -> Result<()> {
        let mut sums = std::mem::take(&mut self.sums);
        let started = sums.iter_mut().enumerate();
        let started = started.filter_map(|(i, sum)| sum.as_mut().map(|sum| (i, sum)));
        let started: Vec<_> = started.collect();
        let added = if started.is_empty() {
            self.held.push(cipher);
            Ok(())
        } else {
            let add = |(response, sum)| self.add(sum, response, piece, &cipher);
            parallel::map(self.threads, started, add).into_iter().collect()
        };
        self.sums = sums;
        added
    }

    fn add(
        &self,
        sum: &mut Accumulator,
        response: usize,
        piece: usize,
        cipher: &Ciphertext,
    ) -> Result<()> {
        self.multiplied.fetch_add(1, Ordering::Relaxed);
        let weights = self.weights.at(self.layer, response, piece)?;
        sum.multiply_add(cipher, weights.plain()).map_err(misuse)
    }

    /// What was added up for each response so far.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (usize, Option<Accumulator>)> + use<> {
        std::mem::take(&mut self.sums).into_iter().enumerate()
    }

    /// A response, without its mask.
    pub(super) fn finish(&self, response: usize, sum: Option<Accumulator>) -> Result<Ciphertext> {
        let mut sum = sum.unwrap_or_else(|| Accumulator::new(self.layer.params()));
        for (piece, cipher) in self.held.iter().enumerate() {
            self.add(&mut sum, response, piece, cipher)?;
        }
        Ok(sum.finish())
    }

    pub(super) fn operations(&self) -> Operations {
        let multiplications = self.multiplied.load(Ordering::Relaxed);
        let additions = multiplications.saturating_sub(self.layer.ciphertexts().1);
        Operations { multiplications, additions, ..Operations::default() }
    }
}

/// Masks a response.
pub(super) fn answer(
    layer: &Layer,
    keys: &ServerKeys,
    cipher: Ciphertext,
    rng: &mut Random,
) -> Result<Answer> {
    let mask = uniform(rng, layer.slots(), layer.prime());
    let answered = cipher.respond(&keys.public, layer.encoder(), &mask, &layer.load(), rng);
    answered.map_err(misuse).map(|response| (vec![response.c1, response.c0], mask))
}

/// Masks and sends all responses; the masks of the results.
fn send_responses(
    channel: &mut Channel,
    products: &mut Products<'_>,
    keys: &ServerKeys,
    worker: &mut Worker<'_>,
) -> Result<Zeroizing<Vec<u64>>> {
    let (threads, layer) = (worker.threads, products.layer);
    let mut sums = products.take();
    let products = &*products;
    let make = |((response, sum), mut rng): ((usize, Option<Accumulator>), Random)| {
        answer(layer, keys, products.finish(response, sum)?, &mut rng)
    };
    let mut masks = Zeroizing::new(vec![0; layer.outputs()]);
    let (mut ready, mut next) = (VecDeque::new(), 0);
    let mut responses = std::iter::from_fn(|| {
        if ready.is_empty() {
            let some = sums.by_ref().take(parallel::batch(threads));
            let some = some.map(|sum| (sum, worker.rng.child())).collect();
            ready.extend(parallel::map(threads, some, make));
        }
        ready.pop_front().map(|answered| {
            let (parts, mask) = answered?;
            layer.packing.collect(next, &mask, &layer.transform, &mut masks);
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
    let (modulus, each) = (layer.transform.modulus(), layer.outputs() / bias.len().max(1));
    let biases = bias.iter().flat_map(|b| std::iter::repeat_n(modulus.of_signed(*b), each));
    let shares = masks.iter().zip(biases).map(|(mask, b)| modulus.subtract(b, *mask));
    Zeroizing::new(shares.collect())
}

/// The client's ciphertexts in order, with the server's share added.
struct Arrivals<'a> {
    layer: &'a Layer,
    own: &'a [u64],
    layouts: std::vec::IntoIter<Vec<Segment>>,
    parts: std::vec::IntoIter<Vec<u64>>,
}

impl<'a> Arrivals<'a> {
    fn new(layer: &'a Layer, own: &'a [u64]) -> Self {
        let layouts = chunks(layer.input_layouts()).into_iter();
        Self { layer, own, layouts, parts: Vec::new().into_iter() }
    }

    fn next(&mut self, piece: usize, channel: &mut Channel) -> Result<Ciphertext> {
        let layer = self.layer;
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
        let own = layer.packing.input_slots(piece, self.own, &layer.transform);
        cipher.add_slots(layer.encoder(), &own).map_err(misuse)?;
        Ok(cipher)
    }
}
