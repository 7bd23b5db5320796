//! The client's side.

use he::bfv::SecretKey;
use wire::{Channel, Result};
use zeroize::Zeroizing;

use super::check::check;
use super::layer::Layer;
use super::slots::Parts;
use crate::linear::transport::Worker;
use crate::linear::transport::bfv;

/// Runs the client's side: encrypts both parts of the transform of its share `x`, decrypts those of
/// its share of the result.
///
/// # Errors
/// [`Error::Misuse`](wire::Error::Misuse) when share or key do not fit the layer,
/// [`Error::Peer`](wire::Error::Peer), [`Error::Transport`](wire::Error::Transport).
pub fn client(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    x: &[i64],
    worker: &mut Worker<'_>,
) -> Result<Zeroizing<Vec<i64>>> {
    check(layer, x, key.params())?;
    let keys = (key, layer.encoder());
    let parts = (0..layer.packing.pieces()).flat_map(|piece| layer.input_slots(piece, x));
    bfv::send_inputs(channel, layer.input_layouts(), keys, parts, |slots| slots, worker)?;
    let mut results = Zeroizing::new(vec![0; layer.outputs()]);
    let mut real = None;
    let layouts = layer.response_layouts();
    bfv::receive_responses(channel, layouts, keys, worker.threads, |index, slots| {
        let Some(first) = real.take() else {
            real = Some(slots);
            return;
        };
        let both: Parts = [first, slots];
        layer.collect(index / 2, &both, &mut results);
    })?;
    Ok(results)
}
