//! Ciphertexts to the server, masked responses back: the messages that all layers on packed
//! slots have in common.

use he::bfv::noise::{self, Load};
use he::bfv::{Ciphertext, Encoder, Fresh, Params, PublicKey, Response, SecretKey};
use ring::Random;
use wire::{Channel, Cost, Error, Packed, Result, Role, Segment, tags};
use zeroize::Zeroizing;

use super::{Received, Worker, chunks, misuse, seed_of, send_chunks, words_of};
use crate::linear::residues::uniform;
use crate::parallel;

/// The tag of ciphertexts from the client: seed and body of each.
const INPUTS: u8 = tags::SLOT_INPUTS;
/// The tag of responses from the server: c1 and c0 of each.
pub(in crate::linear) const RESPONSES: u8 = tags::SLOT_RESPONSES;

/// What both messages cost, by the layouts of ciphertexts and of responses.
pub(in crate::linear) fn cost(inputs: Vec<Vec<Segment>>, responses: Vec<Vec<Segment>>) -> Cost {
    let (inputs, responses) = (chunks(inputs), chunks(responses));
    let up = inputs.iter().map(|l| Cost::message(Role::Client, Packed::<INPUTS>::body_len(l)));
    let down =
        responses.iter().map(|l| Cost::message(Role::Server, Packed::<RESPONSES>::body_len(l)));
    up.chain(down).collect()
}

/// Encrypts the `slots` of each of `pieces` and sends them in messages of `layouts`; only as
/// many as are worked on at a time are held.
///
/// # Errors
/// [`Error::Misuse`] when there are other pieces than layouts or slots than the ring's,
/// [`Error::Transport`].
pub(in crate::linear) fn send_inputs<T: Send>(
    channel: &mut Channel,
    layouts: Vec<Vec<Segment>>,
    (key, encoder): (&SecretKey, &Encoder),
    pieces: impl Iterator<Item = T>,
    slots: impl Fn(T) -> Zeroizing<Vec<u64>> + Sync,
    worker: &mut Worker<'_>,
) -> Result<()> {
    let encrypt = |(piece, mut rng): (T, Random)| {
        let fresh = key.encrypt(encoder, &slots(piece), &mut rng).map_err(misuse)?;
        Ok(std::iter::once(words_of(&fresh.seed)).chain(fresh.body).collect())
    };
    send_chunks::<INPUTS>(channel, layouts, worker.map(pieces, encrypt))
}

/// Receives responses in messages of `layouts` and hands the slots of each to `each`, in order,
/// with its number.
///
/// # Errors
/// [`Error::Misuse`] for a key of other parameters, [`Error::Peer`], [`Error::Transport`].
pub(in crate::linear) fn receive_responses(
    channel: &mut Channel,
    layouts: Vec<Vec<Segment>>,
    (key, encoder): (&SecretKey, &Encoder),
    threads: usize,
    mut each: impl FnMut(usize, Zeroizing<Vec<u64>>),
) -> Result<()> {
    let bits = Response::layout(encoder).map(|(_, bits)| bits);
    let mut responses = 0..;
    for layout in chunks(layouts) {
        let message: Packed<RESPONSES> = channel.receive(&layout)?;
        let mut parts = message.into_values();
        let mut answers = Vec::new();
        while let (Some(c1), Some(c0)) = (parts.next(), parts.next()) {
            answers.push(Response { c1, c0, bits });
        }
        let decrypt = |answer: Response| key.decrypt(encoder, &answer).map_err(misuse);
        for slots in parallel::map(threads, answers, decrypt) {
            each(responses.next().unwrap_or_default(), slots?);
        }
    }
    Ok(())
}

/// Makes and sends the response to each of `items` in messages of `layouts`; `keep` gets the
/// mask of each, in order, with its number.
///
/// # Errors
/// What `answer` returns, [`Error::Transport`].
pub(in crate::linear) fn send_responses<T: Send, M: Send>(
    channel: &mut Channel,
    layouts: Vec<Vec<Segment>>,
    items: impl Iterator<Item = T>,
    answer: impl Fn((T, Random)) -> Result<(Vec<Vec<u64>>, M)> + Sync,
    mut keep: impl FnMut(usize, M),
    worker: &mut Worker<'_>,
) -> Result<()> {
    let responses = worker.map(items, answer).enumerate().map(|(index, answered)| {
        let (parts, mask) = answered?;
        keep(index, mask);
        Ok(parts)
    });
    send_chunks::<RESPONSES>(channel, layouts, responses)
}

/// The client's ciphertexts, in order.
pub(in crate::linear) struct Arrivals<'a> {
    params: &'a Params,
    received: Received<INPUTS>,
}

impl<'a> Arrivals<'a> {
    /// Nothing is received yet; ciphertexts of `layouts` come in chunks.
    pub(in crate::linear) fn new(params: &'a Params, layouts: Vec<Vec<Segment>>) -> Self {
        Self { params, received: Received::new(layouts) }
    }

    /// The next ciphertext.
    ///
    /// # Errors
    /// [`Error::Internal`] after the last, [`Error::Peer`], [`Error::Transport`].
    pub(in crate::linear) fn next(&mut self, channel: &mut Channel) -> Result<Ciphertext> {
        let seed = self.received.next(channel)?;
        let widths = self.params.widths();
        let body = widths.iter().map(|_| self.received.next(channel)).collect::<Result<_>>()?;
        let expanded = Fresh { seed: seed_of(&seed), body }.expand(self.params);
        expanded.map_err(|e| Error::peer("a ciphertext", e.to_string()))
    }
}

/// Layouts of `count` ciphertexts from the client: seed and body.
pub(in crate::linear) fn input_layouts(params: &Params, count: usize) -> Vec<Vec<Segment>> {
    let seed = Segment { count: 2, bits: 64 };
    let body = params.widths().into_iter();
    let body = body.map(|bits| Segment { count: params.degree(), bits });
    vec![std::iter::once(seed).chain(body).collect(); count]
}

/// A bound on the probability that a coefficient of `count` responses does not decrypt.
pub(in crate::linear) fn failure(encoder: &Encoder, count: usize) -> f64 {
    (count * encoder.params().degree()) as f64 * noise::coefficient_failure()
}

/// Layouts of `count` responses.
pub(in crate::linear) fn response_layouts(encoder: &Encoder, count: usize) -> Vec<Vec<Segment>> {
    let layout = Response::layout(encoder);
    let each = layout.map(|(count, bits)| Segment { count, bits });
    vec![each.to_vec(); count]
}

/// The two halves of a response as they are sent, and the mask of its slots.
pub(in crate::linear) type Answer = (Vec<Vec<u64>>, Zeroizing<Vec<u64>>);

/// Masks a response with uniform slots.
pub(in crate::linear) fn answer(
    (key, encoder): (&PublicKey, &Encoder),
    load: &Load,
    cipher: Ciphertext,
    rng: &mut Random,
) -> Result<Answer> {
    let mask = uniform(rng, encoder.params().degree(), encoder.prime());
    let answered = cipher.respond(key, encoder, &mask, load, rng);
    answered.map_err(misuse).map(|response| (vec![response.c1, response.c0], mask))
}
