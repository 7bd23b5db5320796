//! The client's side: encrypts, decrypts.

use std::fmt;

use he::bfv::{Encoder, Fresh, Response, SecretKey};
use ring::Random;
use wire::{Error, Packed, Result, Segment};
use zeroize::Zeroizing;

use super::layout::NOTHING;
use super::message::{Answer, Request};
use super::plan::Plan;
use crate::linear::transport::{Worker, misuse, words_of};
use crate::parallel;

/// What a client packs and unpacks with.
pub struct Client {
    encoders: Vec<Encoder>,
    /// By message and slot the element of the input.
    owners: Vec<Vec<u32>>,
    /// By response and slot the result.
    results: Vec<Vec<u32>>,
    batch: usize,
}

impl Client {
    /// Prepares the client of a plan.
    ///
    /// # Errors
    /// None for a plan that exists.
    pub fn new(plan: &Plan) -> Result<Self> {
        let encoders = plan.encoders(plan.params())?;
        let (owners, results) = (plan.input.owners(), plan.result()?.owners());
        Ok(Self { encoders, owners, results, batch: plan.batch() })
    }

    /// Encrypts an input, or a batch of them, under one of the plaintext primes.
    ///
    /// # Errors
    /// [`Error::Misuse`] for an input of another length or a key of other parameters.
    pub fn encrypt(
        &self,
        plan: &Plan,
        key: &SecretKey,
        x: &[i64],
        prime: usize,
        worker: &mut Worker<'_>,
    ) -> Result<Vec<Fresh>> {
        if x.len() != plan.inputs() * plan.batch() {
            return Err(Error::misuse("an input that does not fit the network"));
        }
        let encoder = self.encoders.get(prime);
        let encoder = encoder.ok_or_else(|| Error::misuse("a prime of another plan"))?;
        let messages = self.owners.iter().enumerate();
        let jobs: Vec<_> = messages.map(|message| (message, worker.rng.child())).collect();
        let encrypt = |((element, owners), mut rng): ((usize, &Vec<u32>), Random)| {
            let slots = Zeroizing::new(if plan.batch() > 1 {
                let inputs = x.iter().skip(element).step_by(plan.inputs().max(1));
                inputs.map(|value| residue(*value, encoder.prime())).collect()
            } else {
                slots(owners, x, encoder.prime())
            });
            key.encrypt(encoder, &slots, &mut rng).map_err(misuse)
        };
        parallel::map(worker.threads, jobs, encrypt).into_iter().collect()
    }

    /// Returns the integers of an answer; of a batch those of one input after another.
    ///
    /// # Errors
    /// [`Error::Peer`] for an answer of other sizes, [`Error::Misuse`] for a key of other
    /// parameters.
    pub fn decrypt(&self, key: &SecretKey, answer: Vec<Response>) -> Result<Vec<i64>> {
        let each = self.results.len().max(1);
        if answer.len() != each * self.encoders.len() {
            return Err(Error::peer("an answer to this request", "another one"));
        }
        let mut residues: Vec<Vec<u64>> = Vec::with_capacity(self.encoders.len());
        for (encoder, responses) in self.encoders.iter().zip(answer.chunks(each)) {
            let opened = responses.iter().map(|r| key.decrypt(encoder, r).map_err(misuse));
            let opened = opened.collect::<Result<Vec<_>>>()?;
            residues.push(if self.batch > 1 {
                let input = |at: usize| opened.iter().filter_map(move |m| m.get(at).copied());
                (0..self.batch).flat_map(input).collect()
            } else {
                self.gathered(&opened)
            });
        }
        let primes: Vec<u64> = self.encoders.iter().map(Encoder::prime).collect();
        let count = residues.first().map_or(0, |some| some.len());
        let of = |i: usize| -> Vec<u64> {
            residues.iter().filter_map(|some| some.get(i).copied()).collect()
        };
        Ok((0..count).map(|i| combined(&of(i), &primes)).collect())
    }

    /// The results among the slots of all messages.
    fn gathered(&self, messages: &[Zeroizing<Vec<u64>>]) -> Vec<u64> {
        let mut results = Vec::new();
        for (owners, slots) in self.results.iter().zip(messages) {
            for (owner, slot) in owners.iter().zip(slots.iter()) {
                let owner = *owner as usize;
                if owner == NOTHING as usize {
                    continue;
                }
                if results.len() <= owner {
                    results.resize(owner + 1, 0);
                }
                results.iter_mut().skip(owner).take(1).for_each(|result| *result = *slot);
            }
        }
        results
    }
}

/// The elements in their slots, mod a prime.
fn slots(owners: &[u32], x: &[i64], prime: u64) -> Vec<u64> {
    let slot = |owner: &u32| {
        let value = x.get(*owner as usize).copied().unwrap_or(0);
        residue(value, prime)
    };
    owners.iter().map(slot).collect()
}

const fn residue(value: i64, prime: u64) -> u64 {
    value.rem_euclid(prime as i64) as u64
}

/// The smallest integer in magnitude that has these residues.
fn combined(residues: &[u64], primes: &[u64]) -> i64 {
    let (mut value, mut modulus) = (0u128, 1u128);
    for (residue, prime) in residues.iter().zip(primes.iter().map(|p| u128::from(*p))) {
        // value + modulus * digit has the residue.
        let missing = (u128::from(*residue) + prime - value % prime) % prime;
        let digit = missing * inverse(modulus % prime, prime) % prime;
        value += modulus * digit;
        modulus *= prime;
    }
    let centred = if value > modulus / 2 { value.wrapping_sub(modulus) } else { value };
    centred as i64
}

/// 1/x mod a prime below 2^62.
fn inverse(x: u128, prime: u128) -> u128 {
    let (mut power, mut result, mut exponent) = (x, 1, prime - 2);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * power % prime;
        }
        power = power * power % prime;
        exponent >>= 1;
    }
    result
}

/// Returns the messages of the ciphertexts of one plaintext prime.
///
/// # Errors
/// [`Error::Misuse`] for a request of another plan.
pub fn request_messages(plan: &Plan, request: Vec<Fresh>, prime: usize) -> Result<Vec<Request>> {
    let parts = request.into_iter().flat_map(|fresh| {
        let seed = words_of(&fresh.seed);
        std::iter::once(seed).chain(fresh.body)
    });
    let layouts = plan.request_messages().into_iter().nth(prime).unwrap_or_default();
    packed(layouts, parts)
}

/// Values in messages of some layouts.
pub(super) fn packed<const TAG: u8>(
    layouts: Vec<Vec<Segment>>,
    mut values: impl Iterator<Item = Vec<u64>>,
) -> Result<Vec<Packed<TAG>>> {
    let message = |layout: Vec<Segment>| {
        let filled = layout.into_iter().map(|segment| match values.next() {
            Some(values) if values.len() == segment.count => Ok((segment, values)),
            _ => Err(Error::misuse("ciphertexts of another plan")),
        });
        filled.collect::<Result<_>>().map(Packed)
    };
    layouts.into_iter().map(message).collect()
}

/// Returns the answer in messages of the plan's layouts.
pub fn answer_of(messages: Vec<Answer>) -> Vec<Response> {
    let mut answer = Vec::new();
    for message in messages {
        let mut parts = message.0.into_iter();
        while let (Some((first, c1)), Some((second, c0))) = (parts.next(), parts.next()) {
            answer.push(Response { c1, c0, bits: [first.bits, second.bits] });
        }
    }
    answer
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({} plaintext primes)", self.encoders.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residues_stand_for_integers_of_either_sign() {
        let primes = [147_457u64, 163_841, 786_433];
        for value in [0i64, 1, -1, 1 << 50, -(1 << 50), 123_456_789] {
            let residues = primes.map(|p| value.rem_euclid(p as i64) as u64);
            assert_eq!(combined(&residues, &primes), value);
        }
    }
}
