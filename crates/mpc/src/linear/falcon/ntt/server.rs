//! The server's side.

use std::sync::atomic::{AtomicUsize, Ordering};

use he::bfv::{Accumulator, Ciphertext};
use ring::Random;
use wire::{Channel, Error, Result};
use zeroize::Zeroizing;

use super::layer::Layer;
use super::weights::ServerWeights;
use crate::linear::residues::{biased, check};
use crate::linear::slots::{Operations, Server, ServerKeys};
use crate::linear::transport::Worker;
use crate::linear::transport::bfv::{self, Arrivals};
use crate::linear::transport::misuse;
use crate::parallel;

/// Runs the server's side: adds the transform of its share `x` mod p, multiplies, masks.
///
/// # Errors
/// [`Error::Misuse`] when share, keys or weights do not fit the layer, [`Error::Peer`],
/// [`Error::Transport`].
pub fn server(
    channel: &mut Channel,
    own: &Own<'_>,
    x: &[u64],
    worker: &mut Worker<'_>,
) -> Result<Zeroizing<Vec<u64>>> {
    Ok(counted(channel, own, x, worker)?.0)
}

/// What the server of this protocol brings.
type Own<'a> = Server<'a, Layer, ServerWeights>;

/// Runs [`server`] and returns also which operations it did.
pub(super) fn counted(
    channel: &mut Channel,
    &Server { layer, keys, weights }: &Own<'_>,
    x: &[u64],
    worker: &mut Worker<'_>,
) -> Result<(Zeroizing<Vec<u64>>, Operations)> {
    check(x, layer.inputs(), layer.encoder(), keys.public.params())?;
    if !weights.fit(layer) {
        return Err(Error::misuse("weights that do not fit their layer"));
    }
    let mut products = Products::new(layer, weights, worker.threads);
    let mut arrivals = Arrivals::new(layer.params(), layer.input_layouts());
    for piece in 0..layer.packing.pieces() {
        let mut cipher = arrivals.next(channel)?;
        let own = layer.packing.input_slots(piece, x, &layer.transform);
        cipher.add_slots(layer.encoder(), &own).map_err(misuse)?;
        products.push(piece, cipher)?;
    }
    let results = send_responses(channel, &mut products, keys, worker)?;
    Ok((biased(weights.bias(), &results, layer.prime()), products.operations()))
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
        sum.multiply_add(cipher, weights.get()).map_err(misuse)
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

/// Masks and sends all responses. The masks of the results are returned.
fn send_responses(
    channel: &mut Channel,
    products: &mut Products<'_>,
    keys: &ServerKeys,
    worker: &mut Worker<'_>,
) -> Result<Zeroizing<Vec<u64>>> {
    let layer = products.layer;
    let (with, load) = ((&keys.public, layer.encoder()), layer.load());
    let sums = products.take();
    let products = &*products;
    let make = |((response, sum), mut rng): ((usize, Option<Accumulator>), Random)| {
        bfv::answer(with, &load, products.finish(response, sum)?, &mut rng)
    };
    let mut masks = Zeroizing::new(vec![0; layer.outputs()]);
    let keep = |next, mask: Zeroizing<Vec<u64>>| {
        layer.packing.collect(next, &mask, &layer.transform, &mut masks);
    };
    bfv::send_responses(channel, layer.response_layouts(), sums, make, keep, worker)?;
    Ok(masks)
}
