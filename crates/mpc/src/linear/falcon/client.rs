//! The client's side.

use he::bfv::{Response, SecretKey};
use wire::{Channel, Result};
use zeroize::Zeroizing;

use super::layer::{Layer, Responses};
use super::slots::Parts;
use super::{Worker, check};
use crate::linear::coefficient::{chunks, misuse, send_chunks, words_of};
use crate::parallel;

/// The client's side: encrypts both parts of the transform of its share `x`, decrypts those of
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
    let pieces = (0..layer.packing.pieces()).flat_map(|piece| layer.input_slots(piece, x));
    let mut fresh = pieces.map(|slots| {
        let fresh =
            key.encrypt(layer.encoder(), &slots, &mut worker.rng.child()).map_err(misuse)?;
        Ok(std::iter::once(words_of(&fresh.seed)).chain(fresh.body).collect())
    });
    send_chunks(channel, &chunks(layer.input_layouts()), &mut fresh, wire::Packed::<0x45>)?;
    drop(fresh);
    receive_responses(channel, layer, key, worker.threads)
}

fn receive_responses(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    threads: usize,
) -> Result<Zeroizing<Vec<i64>>> {
    let mut results = Zeroizing::new(vec![0; layer.outputs()]);
    let bits = Response::layout(layer.encoder()).map(|(_, bits)| bits);
    let (mut real, mut next) = (None, 0);
    for layout in chunks(layer.response_layouts()) {
        let message: Responses = channel.receive(&layout)?;
        let mut parts = message.into_values();
        let mut answers = Vec::new();
        while let (Some(c1), Some(c0)) = (parts.next(), parts.next()) {
            answers.push(Response { c1, c0, bits });
        }
        let decrypt = |answer: Response| key.decrypt(layer.encoder(), &answer).map_err(misuse);
        for slots in parallel::map(threads, answers, decrypt) {
            let Some(first) = real.take() else {
                real = Some(slots?);
                continue;
            };
            let both: Parts = [first, slots?];
            layer.collect(next, &both, &mut results);
            next += 1;
        }
    }
    Ok(results)
}
