//! The client's side: made of shapes only, not of kernels.

use std::collections::VecDeque;

use he::bfv::{Response, SecretKey};
use ring::Random;
use wire::{Channel, Result};
use zeroize::Zeroizing;

use super::layer::{Layer, Responses};
use super::{Worker, check};
use crate::linear::coefficient::{chunks, misuse, send_chunks, words_of};
use crate::parallel;

/// The client's side: encrypts the transform of its share `x` mod p, decrypts that of its
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
    check(layer, x, key.params())?;
    send_inputs(channel, layer, key, x, worker)?;
    receive_responses(channel, layer, key, worker.threads)
}

fn send_inputs(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    x: &[u64],
    worker: &mut Worker<'_>,
) -> Result<()> {
    let threads = worker.threads;
    let encrypt = |(piece, mut rng): (usize, Random)| {
        let slots = layer.packing.input_slots(piece, x, &layer.transform);
        let fresh = key.encrypt(layer.encoder(), &slots, &mut rng).map_err(misuse)?;
        Ok(std::iter::once(words_of(&fresh.seed)).chain(fresh.body).collect())
    };
    let mut pieces = 0..layer.packing.pieces();
    let mut done = VecDeque::new();
    let mut fresh = std::iter::from_fn(|| {
        if done.is_empty() {
            let some = pieces.by_ref().take(parallel::batch(threads));
            let some = some.map(|piece| (piece, worker.rng.child())).collect();
            done.extend(parallel::map(threads, some, encrypt));
        }
        done.pop_front()
    });
    send_chunks(channel, &chunks(layer.input_layouts()), &mut fresh, wire::Packed::<0x45>)
}

fn receive_responses(
    channel: &mut Channel,
    layer: &Layer,
    key: &SecretKey,
    threads: usize,
) -> Result<Zeroizing<Vec<u64>>> {
    let mut results = Zeroizing::new(vec![0; layer.outputs()]);
    let bits = Response::layout(layer.encoder()).map(|(_, bits)| bits);
    let mut next = 0;
    for layout in chunks(layer.response_layouts()) {
        let message: Responses = channel.receive(&layout)?;
        let mut parts = message.into_values();
        let mut answers = Vec::new();
        while let (Some(c1), Some(c0)) = (parts.next(), parts.next()) {
            answers.push(Response { c1, c0, bits });
        }
        let decrypt = |answer: Response| key.decrypt(layer.encoder(), &answer).map_err(misuse);
        for slots in parallel::map(threads, answers, decrypt) {
            layer.packing.collect(next, &slots?, &layer.transform, &mut results);
            next += 1;
        }
    }
    Ok(results)
}
