//! The client's side: made of shapes only, not of kernels.

use he::bfv::SecretKey;
use wire::{Channel, Result};
use zeroize::Zeroizing;

use super::layer::Layer;
use crate::linear::residues::check;
use crate::linear::transport::Worker;
use crate::linear::transport::bfv;

/// Runs the client's side: encrypts the transform of its share `x` mod p, decrypts that of its
/// share of the result.
///
/// # Errors
/// [`Error::Misuse`](wire::Error::Misuse) when share or key do not fit the layer,
/// [`Error::Peer`](wire::Error::Peer), [`Error::Transport`](wire::Error::Transport).
pub fn client(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    x: &[u64],
    worker: &mut Worker<'_>,
) -> Result<Zeroizing<Vec<u64>>> {
    check(x, layer.inputs(), layer.encoder(), key.params())?;
    let (keys, packing) = ((key, layer.encoder()), &layer.packing);
    let slots = |piece| packing.input_slots(piece, x, &layer.transform);
    let (layouts, pieces) = (layer.input_layouts(), 0..packing.pieces());
    bfv::send_inputs(channel, layouts, keys, pieces, slots, worker)?;
    let mut results = Zeroizing::new(vec![0; layer.outputs()]);
    let layouts = layer.response_layouts();
    bfv::receive_responses(channel, layouts, keys, worker.threads, |next, slots| {
        packing.collect(next, &slots, &layer.transform, &mut results);
    })?;
    Ok(results)
}
