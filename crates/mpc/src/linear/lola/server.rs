//! The server's side: evaluates, masks, answers.

use he::bfv::{Ciphertext, Fresh, Response};
use ring::Random;
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::client::{Answer, Request, packed};
use super::evaluate::{self, ServerKeys};
use super::layout::NOTHING;
use super::plan::{Plan, check_request};
use super::weights::ServerWeights;
use crate::linear::coefficient::{Worker, misuse, seed_of};
use crate::linear::slots::uniform;
use crate::parallel;

/// Answers a request: the results flooded by 40 bits, under a fresh encryption of zero, every
/// slot that holds none of them masked.
///
/// # Errors
/// [`Error::Misuse`] when keys or weights do not fit the plan, [`Error::Peer`] for a request
/// that does not.
pub fn answer(
    plan: &Plan,
    keys: &ServerKeys,
    weights: &ServerWeights,
    request: Vec<Fresh>,
    worker: &mut Worker<'_>,
) -> Result<Vec<Response>> {
    check_request(plan, &request)?;
    let each = plan.input.messages();
    let mut request = request.into_iter();
    let parts = plan.primes().iter().enumerate().map(|(index, prime)| {
        let messages: Vec<Fresh> = request.by_ref().take(each).collect();
        (index, *prime, messages, worker.rng.child())
    });
    let parts: Vec<_> = parts.collect();
    let owners = plan.result()?.owners();
    let one = |(index, prime, messages, mut rng): (usize, u64, Vec<Fresh>, Random)| {
        let expanded = messages.into_iter().map(|fresh| {
            let cipher = fresh.expand(plan.params());
            cipher.map_err(|e| Error::peer("a ciphertext", e.to_string()))
        });
        let expanded = expanded.collect::<Result<Vec<Ciphertext>>>()?;
        let unfit = || Error::misuse("weights of another plan");
        let stages = weights.primes.get(index).ok_or_else(unfit)?;
        let encoder = weights.encoders.get(index).ok_or_else(unfit)?;
        let results = evaluate::run(plan, keys, stages, expanded)?;
        let noise = evaluate::noise(plan, prime)?;
        let respond = |(result, owners): (Ciphertext, &Vec<u32>)| {
            let mask = mask(owners, prime, &mut rng);
            let response = result.respond_within(&keys.public, encoder, &mask, &noise, &mut rng);
            response.map_err(misuse)
        };
        results.into_iter().zip(&owners).map(respond).collect::<Result<Vec<_>>>()
    };
    let answers = parallel::map(worker.threads, parts, one);
    Ok(answers.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Uniform where there is no result.
fn mask(owners: &[u32], prime: u64, rng: &mut Random) -> Zeroizing<Vec<u64>> {
    let mut mask = uniform(rng, owners.len(), prime);
    for (mask, owner) in mask.iter_mut().zip(owners) {
        if *owner != NOTHING {
            *mask = 0;
        }
    }
    mask
}

/// The request in messages of the plan's layouts.
pub fn request_of(plan: &Plan, messages: Vec<Request>) -> Vec<Fresh> {
    let mut request = Vec::new();
    for message in messages {
        let mut parts = message.into_values();
        while let Some(seed) = parts.next() {
            let body = parts.by_ref().take(plan.params().widths().len()).collect();
            request.push(Fresh { seed: seed_of(&seed), body });
        }
    }
    request
}

/// The messages of an answer.
///
/// # Errors
/// [`Error::Misuse`] for an answer of another plan.
pub fn answer_messages(plan: &Plan, answer: Vec<Response>) -> Result<Vec<Answer>> {
    let parts = answer.into_iter().flat_map(|response| [response.c1, response.c0]);
    packed(plan.answer_messages()?, parts)
}
