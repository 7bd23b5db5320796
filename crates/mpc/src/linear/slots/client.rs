//! The client's side.

use he::bfv::SecretKey;
use wire::{Channel, Result};
use zeroize::Zeroizing;

use super::layer::Layer;
use crate::linear::residues::check;
use crate::linear::transport::Worker;
use crate::linear::transport::bfv;

/// Runs the client's side: encrypts its share `x` mod p, decrypts its share of the result.
///
/// # Errors
/// [`wire::Error::Misuse`] when share or key do not fit the layer, [`wire::Error::Peer`],
/// [`wire::Error::Transport`].
pub fn client(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    x: &[u64],
    worker: &mut Worker<'_>,
) -> Result<Zeroizing<Vec<u64>>> {
    check(x, layer.inputs(), layer.encoder(), key.params())?;
    let keys = (key, layer.encoder());
    let slots = |piece| Zeroizing::new(layer.rows_of(&layer.plan.input_slots(piece, x)).to_vec());
    let (layouts, pieces) = (layer.input_layouts(), layer.plan.pieces.iter());
    bfv::send_inputs(channel, layouts, keys, pieces, slots, worker)?;
    let mut results = Zeroizing::new(vec![0; layer.outputs()]);
    let layouts = layer.response_layouts();
    bfv::receive_responses(channel, layouts, keys, worker.threads, |next, slots| {
        layer.plan.collect(next, &slots, layer.prime(), &mut results);
    })?;
    Ok(results)
}
