//! The server's side.

use ring::Random;
use wire::{Channel, Error, Result};
use zeroize::Zeroizing;

use super::encrypted::Encrypted;
use super::evaluate::{Evaluation, Part, Products};
use super::keys::ServerKeys;
use super::layer::Layer;
use super::machine::{Machine, Operations};
use super::weights::ServerWeights;
use crate::linear::residues::{biased, check};
use crate::linear::transport::Worker;
use crate::linear::transport::bfv::{self, Arrivals};
use crate::linear::transport::misuse;

/// Runs the server's side: adds its share `x` mod p, multiplies, masks.
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

/// What the server brings to a run beside its share: the layer, the client's evaluation keys and
/// the layer's encoded weights.
pub struct Server<'a, L, W> {
    /// The layer, which both parties planned.
    pub layer: &'a L,
    /// The client's public keys.
    pub keys: &'a ServerKeys,
    /// The weights, encoded for the layer.
    pub weights: &'a W,
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
    check(x, layer.inputs(), layer.encoder(), keys.rotations.params())?;
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
    let biased = biased(weights.bias(), &results, layer.prime());
    Ok((biased, machine.operations()))
}

/// Masks and sends all responses. The masks of the results are returned.
fn send_responses<'a>(
    channel: &mut Channel,
    layer: &Layer,
    keys: &ServerKeys,
    products: &Products<'_, Encrypted<'a>>,
    parts: Vec<Part<Encrypted<'a>>>,
    worker: &mut Worker<'_>,
) -> Result<Zeroizing<Vec<u64>>> {
    let prime = layer.prime();
    let (with, load) = ((&keys.public, layer.encoder()), layer.load());
    let answer = |(part, mut rng): (Part<Encrypted<'a>>, Random)| {
        bfv::answer(with, &load, products.response(part)?, &mut rng)
    };
    let mut masks = Zeroizing::new(vec![0; layer.outputs()]);
    let keep = |next, mask: Zeroizing<Vec<u64>>| {
        layer.plan.collect(next, &mask, prime, &mut masks);
    };
    let (layouts, parts) = (layer.response_layouts(), parts.into_iter());
    bfv::send_responses(channel, layouts, parts, answer, keep, worker)?;
    Ok(masks)
}
