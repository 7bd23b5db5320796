//! The client's keys: one secret, and what the server evaluates with.

use he::bfv::{PublicKey, RelinearizationKey, RotationKeys, SecretKey};
use ring::{Random, Seed};
use wire::{Error, Result};

use super::evaluate::ServerKeys;
use super::message::Bodies;
use super::plan::Plan;
use crate::linear::transport::misuse;

/// Seeds of the uniform halves: of the public key, of that for products, of the rotations.
/// Fixed by a hash that the client cannot steer.
#[derive(Clone)]
pub struct Seeds(pub [Seed; 3]);

/// Returns the keys that the server gets, as messages in their order; those of rotations are made
/// as they are asked for, one at a time.
///
/// # Errors
/// [`Error::Misuse`] for a secret of other parameters.
pub fn evaluation_keys<'a>(
    plan: &Plan,
    secret: &'a SecretKey,
    seeds: &Seeds,
    rng: &'a mut Random,
) -> Result<impl Iterator<Item = Bodies> + use<'a>> {
    let Seeds([public, products, rotations]) = seeds;
    let mut first = vec![secret.public_key(public, rng).map_err(misuse)?.bodies()];
    if plan.squares() {
        first.push(secret.relinearization_key(products, rng).map_err(misuse)?.bodies());
    }
    let (steps, swap) = plan.rotations();
    let rest = secret.rotation_bodies(&steps, swap, rotations, rng).map_err(misuse)?;
    let messages = plan.key_layouts()?.into_iter().zip(first.into_iter().chain(rest));
    Ok(messages.map(|(layout, bodies)| Bodies::new(layout.into_iter().zip(bodies).collect())))
}

impl ServerKeys {
    /// From the client's messages, each read before the next is asked for.
    ///
    /// # Errors
    /// [`Error::Peer`] for what are no keys of the plan, and the first of the messages.
    pub fn new(
        plan: &Plan,
        seeds: &Seeds,
        messages: impl IntoIterator<Item = Result<Bodies>>,
    ) -> Result<Self> {
        let theirs = |e: he::Error| Error::peer("keys", e.to_string());
        let mut messages = messages.into_iter().map(|message| {
            let bodies: Vec<Vec<u64>> = message?.into_values().collect();
            Ok::<_, Error>(bodies)
        });
        let mut next = || messages.next().transpose().map(Option::unwrap_or_default);
        let Seeds([public, products, rotations]) = seeds;
        let public = PublicKey::new(plan.params(), public, &next()?).map_err(theirs)?;
        let products = match plan.squares() {
            true => {
                let key = RelinearizationKey::new(plan.params(), products, &next()?);
                Some(key.map_err(theirs)?)
            }
            false => None,
        };
        let (steps, swap) = plan.rotations();
        let rotations = RotationKeys::incoming(plan.params(), &steps, swap, rotations);
        let mut rotations = rotations.map_err(theirs)?;
        for bodies in messages {
            rotations.add(&bodies?).map_err(theirs)?;
        }
        Ok(Self { public, products, rotations: rotations.whole().map_err(theirs)? })
    }
}
