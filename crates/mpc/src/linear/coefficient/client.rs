//! The client's side.

use he::rlwe::SecretKey;
use wire::{Channel, Result};
use zeroize::Zeroizing;

use super::layer::{INPUTS, Layer, RESPONSES};
use super::packing::Place;
use super::shares::{check, client_share, scatter};
use crate::linear::transport::Worker;
use crate::linear::transport::rlwe;
use crate::share::Share;

/// Runs the client's side: encrypts its share, decrypts the responses.
///
/// # Errors
/// [`Error::Misuse`](wire::Error::Misuse) when shares or key do not fit the layer,
/// [`Error::Peer`](wire::Error::Peer), [`Error::Transport`](wire::Error::Transport).
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
pub(super) fn send_inputs(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    values: &[u64],
    worker: &mut Worker<'_>,
) -> Result<()> {
    let polynomials = layer.packing.encode_folded(values, layer.params.degree()).into_iter();
    let with = (key, layer.sent());
    rlwe::send_inputs::<INPUTS>(channel, layer.input_layouts(), with, polynomials, worker)
}

/// The phases of the products that the server answers.
pub(super) fn receive_phases(
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
