//! The client's keys: one secret, and what the server evaluates with.

use he::bfv::{PublicKey, RelinearizationKey, RotationKeys, SecretKey};
use ring::{Random, Seed};
use wire::{Error, Packed, Result};

use super::evaluate::ServerKeys;
use super::plan::Plan;
use crate::linear::coefficient::misuse;

/// The bodies of one key.
pub type Bodies = Packed<0x52>;

/// Seeds of the uniform halves: of the public key, of that for products, of the rotations.
/// Fixed by a hash that the client cannot steer.
#[derive(Clone)]
pub struct Seeds(pub [Seed; 3]);

/// Makes the keys that the server gets, as messages in their order.
///
/// # Errors
/// [`Error::Misuse`] for a secret of other parameters.
pub fn evaluation_keys(
    plan: &Plan,
    secret: &SecretKey,
    seeds: &Seeds,
    rng: &mut Random,
) -> Result<Vec<Bodies>> {
    let Seeds([public, products, rotations]) = seeds;
    let mut bodies = secret.public_key(public, rng).map_err(misuse)?.bodies();
    if plan.squares() {
        bodies.extend(secret.relinearization_key(products, rng).map_err(misuse)?.bodies());
    }
    let (steps, swap) = plan.rotations();
    let keys = secret.rotation_keys(&steps, swap, rotations, rng).map_err(misuse)?;
    bodies.extend(keys.bodies());
    let mut bodies = bodies.into_iter();
    let message = |layout: Vec<_>| {
        let values = bodies.by_ref().take(layout.len()).collect::<Vec<_>>();
        Packed::<0x52>(layout.into_iter().zip(values).collect())
    };
    Ok(plan.key_layouts()?.into_iter().map(message).collect())
}

impl ServerKeys {
    /// From the client's messages.
    ///
    /// # Errors
    /// [`Error::Peer`] for what are no keys of the plan.
    pub fn new(plan: &Plan, seeds: &Seeds, messages: Vec<Bodies>) -> Result<Self> {
        let theirs = |e: he::Error| Error::peer("keys", e.to_string());
        let mut messages = messages.into_iter().map(|m| m.into_values().collect::<Vec<_>>());
        let mut next = || messages.next().unwrap_or_default();
        let Seeds([public, products, rotations]) = seeds;
        let public = PublicKey::new(plan.params(), public, &next()).map_err(theirs)?;
        let products = match plan.squares() {
            true => {
                let key = RelinearizationKey::new(plan.params(), products, &next());
                Some(key.map_err(theirs)?)
            }
            false => None,
        };
        let (steps, swap) = plan.rotations();
        let bodies: Vec<Vec<u64>> = messages.flatten().collect();
        let rotations = RotationKeys::new(plan.params(), &steps, swap, rotations, &bodies);
        Ok(Self { public, products, rotations: rotations.map_err(theirs)? })
    }
}
