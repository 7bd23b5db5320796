//! The server's side: evaluates, masks, answers.

use he::bfv::{Ciphertext, Fresh, Response};
use ring::Random;
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::client::packed;
use super::evaluate::{self, ServerKeys};
use super::layout::NOTHING;
use super::message::{Answer, Request};
use super::plan::{Plan, check_request};
use super::weights::ServerWeights;
use crate::linear::residues::uniform;
use crate::linear::transport::{Worker, misuse, seed_of};
use crate::parallel;

/// Answers a request: the results flooded by 40 to 60 bits, under a fresh encryption of zero, every
/// slot that holds none of them masked. `request` gives the ciphertexts of a plaintext prime;
/// of batched inputs it is asked for the next ones when those before are done with.
///
/// # Errors
/// [`Error::Misuse`] when keys or weights do not fit the plan, [`Error::Peer`] for a request
/// that does not, what `request` returns.
pub fn answer(
    plan: &Plan,
    keys: &ServerKeys,
    weights: &ServerWeights,
    request: &mut dyn FnMut(usize) -> Result<Vec<Fresh>>,
    worker: &mut Worker<'_>,
) -> Result<Vec<Response>> {
    let job = Job { plan, keys, weights, owners: plan.result()?.owners() };
    if plan.batch() > 1 {
        let mut answers = Vec::new();
        for index in 0..plan.primes().len() {
            let rng = &mut worker.rng.child();
            answers.extend(job.run(index, request(index)?, worker.threads, rng)?);
        }
        return Ok(answers);
    }
    let mut parts = Vec::with_capacity(plan.primes().len());
    for index in 0..plan.primes().len() {
        parts.push((index, request(index)?, worker.rng.child()));
    }
    let run = |(index, request, mut rng)| job.run(index, request, 1, &mut rng);
    let answers = parallel::map(worker.threads, parts, run);
    Ok(answers.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

struct Job<'a> {
    plan: &'a Plan,
    keys: &'a ServerKeys,
    weights: &'a ServerWeights,
    owners: Vec<Vec<u32>>,
}

impl Job<'_> {
    /// The responses of one prime.
    fn run(
        &self,
        index: usize,
        request: Vec<Fresh>,
        threads: usize,
        rng: &mut Random,
    ) -> Result<Vec<Response>> {
        let Self { plan, keys, weights, owners } = self;
        check_request(plan, &request)?;
        let unfit = || Error::misuse("weights of another plan");
        let prime = *plan.primes().get(index).ok_or_else(unfit)?;
        let stages = weights.primes.get(index).ok_or_else(unfit)?;
        let encoder = weights.encoders.get(index).ok_or_else(unfit)?;
        let expand = |fresh: Fresh| {
            let cipher = fresh.expand(plan.params());
            cipher.map_err(|e| Error::peer("a ciphertext", e.to_string()))
        };
        let expanded = parallel::map(threads, request, expand);
        let expanded = expanded.into_iter().collect::<Result<Vec<Ciphertext>>>()?;
        let results = evaluate::run(plan, keys, stages, expanded, threads)?;
        let noise = evaluate::noise(plan, prime)?;
        let respond = |(result, owners): (Ciphertext, &Vec<u32>)| {
            let mask = mask(owners, prime, rng);
            result.respond_within(&keys.public, encoder, &mask, &noise, rng).map_err(misuse)
        };
        results.into_iter().zip(owners).map(respond).collect()
    }
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

/// Returns the request in messages of the plan's layouts.
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

/// Returns the messages of an answer.
///
/// # Errors
/// [`Error::Misuse`] for an answer of another plan.
pub fn answer_messages(plan: &Plan, answer: Vec<Response>) -> Result<Vec<Answer>> {
    let parts = answer.into_iter().flat_map(|response| [response.c1, response.c0]);
    packed(plan.answer_messages()?, parts)
}
