//! Ciphertexts to the server, masked responses back: the messages that all layers on packed
//! slots have in common.

use std::collections::VecDeque;

use he::bfv::{Ciphertext, Encoder, Fresh, Params, Response, SecretKey};
use ring::Random;
use wire::{Channel, Cost, Error, Packed, Result, Role, Segment, tags};
use zeroize::Zeroizing;

use super::coefficient::{Worker, chunks, misuse, seed_of, send_chunks, words_of};
use crate::parallel;

/// Ciphertexts from the client: seed and body of each.
type Inputs = Packed<{ tags::SLOT_INPUTS }>;
/// Responses from the server: c1 and c0 of each.
pub(super) type Responses = Packed<{ tags::SLOT_RESPONSES }>;

/// What both messages cost, by the layouts of ciphertexts and of responses.
pub(super) fn cost(inputs: Vec<Vec<Segment>>, responses: Vec<Vec<Segment>>) -> Cost {
    let (inputs, responses) = (chunks(inputs), chunks(responses));
    let up = inputs.iter().map(|l| Cost::message(Role::Client, Inputs::body_len(l)));
    let down = responses.iter().map(|l| Cost::message(Role::Server, Responses::body_len(l)));
    up.chain(down).collect()
}

/// Encrypts the `slots` of each of `pieces` and sends them in messages of `layouts`; only as
/// many as are worked on at a time are held.
///
/// # Errors
/// [`Error::Misuse`] when there are other pieces than layouts or slots than the ring's,
/// [`Error::Transport`].
pub(super) fn send_inputs<T: Send>(
    channel: &mut Channel,
    layouts: Vec<Vec<Segment>>,
    (key, encoder): (&SecretKey, &Encoder),
    mut pieces: impl Iterator<Item = T>,
    slots: impl Fn(T) -> Zeroizing<Vec<u64>> + Sync,
    worker: &mut Worker<'_>,
) -> Result<()> {
    let encrypt = |(piece, mut rng): (T, Random)| {
        let fresh = key.encrypt(encoder, &slots(piece), &mut rng).map_err(misuse)?;
        Ok(std::iter::once(words_of(&fresh.seed)).chain(fresh.body).collect())
    };
    let mut fresh = ahead(&mut pieces, worker, encrypt);
    send_chunks(channel, &chunks(layouts), &mut fresh, Inputs::new)
}

/// Receives responses in messages of `layouts` and hands the slots of each to `each`, in order.
///
/// # Errors
/// [`Error::Misuse`] for a key of other parameters, [`Error::Peer`], [`Error::Transport`].
pub(super) fn receive_responses(
    channel: &mut Channel,
    layouts: Vec<Vec<Segment>>,
    (key, encoder): (&SecretKey, &Encoder),
    threads: usize,
    mut each: impl FnMut(Zeroizing<Vec<u64>>),
) -> Result<()> {
    let bits = Response::layout(encoder).map(|(_, bits)| bits);
    for layout in chunks(layouts) {
        let message: Responses = channel.receive(&layout)?;
        let mut parts = message.into_values();
        let mut answers = Vec::new();
        while let (Some(c1), Some(c0)) = (parts.next(), parts.next()) {
            answers.push(Response { c1, c0, bits });
        }
        let decrypt = |answer: Response| key.decrypt(encoder, &answer).map_err(misuse);
        for slots in parallel::map(threads, answers, decrypt) {
            each(slots?);
        }
    }
    Ok(())
}

/// Makes and sends the response to each of `items` in messages of `layouts`; `keep` gets the
/// mask of each, in order.
///
/// # Errors
/// What `answer` returns, [`Error::Transport`].
pub(super) fn send_responses<T: Send, M: Send>(
    channel: &mut Channel,
    layouts: Vec<Vec<Segment>>,
    mut items: impl Iterator<Item = T>,
    answer: impl Fn((T, Random)) -> Result<(Vec<Vec<u64>>, M)> + Sync,
    mut keep: impl FnMut(M),
    worker: &mut Worker<'_>,
) -> Result<()> {
    let mut responses = ahead(&mut items, worker, answer).map(|answered| {
        let (parts, mask) = answered?;
        keep(mask);
        Ok(parts)
    });
    send_chunks(channel, &chunks(layouts), &mut responses, Responses::new)
}

/// Maps items in their order, each with a generator of its own, a batch at a time on all
/// threads.
fn ahead<'a, T: Send, U: Send + 'a>(
    items: &'a mut impl Iterator<Item = T>,
    worker: &'a mut Worker<'_>,
    make: impl Fn((T, Random)) -> U + Sync + 'a,
) -> impl Iterator<Item = U> + 'a {
    let threads = worker.threads;
    let mut ready = VecDeque::new();
    std::iter::from_fn(move || {
        if ready.is_empty() {
            let some = items.by_ref().take(parallel::batch(threads));
            let some = some.map(|item| (item, worker.rng.child())).collect();
            ready.extend(parallel::map(threads, some, &make));
        }
        ready.pop_front()
    })
}

/// The client's ciphertexts, in order.
pub(super) struct Arrivals<'a> {
    params: &'a Params,
    layouts: std::vec::IntoIter<Vec<Segment>>,
    parts: std::vec::IntoIter<Vec<u64>>,
}

impl<'a> Arrivals<'a> {
    /// In messages of `layouts`.
    pub(super) fn new(params: &'a Params, layouts: Vec<Vec<Segment>>) -> Self {
        let layouts = chunks(layouts).into_iter();
        Self { params, layouts, parts: Vec::new().into_iter() }
    }

    /// The next one.
    ///
    /// # Errors
    /// [`Error::Misuse`] after the last, [`Error::Peer`], [`Error::Transport`].
    pub(super) fn next(&mut self, channel: &mut Channel) -> Result<Ciphertext> {
        if self.parts.len() == 0 {
            let layout = self.layouts.next();
            let layout = layout.ok_or_else(|| Error::misuse("too few ciphertexts"))?;
            let message: Inputs = channel.receive(&layout)?;
            self.parts = message.into_values().collect::<Vec<_>>().into_iter();
        }
        let seed = self.parts.next().unwrap_or_default();
        let body = self.parts.by_ref().take(self.params.widths().len()).collect();
        let expanded = Fresh { seed: seed_of(&seed), body }.expand(self.params);
        expanded.map_err(|e| Error::peer("a ciphertext", e.to_string()))
    }
}
