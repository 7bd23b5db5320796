//! The client's keys: one a session and ring degree, for all moduli of the plan.

use he::bfv;
use he::rlwe::{Params, PublicKey, SecretKey};
use mpc::linear::slots;
use ring::Random;
use wire::{Channel, Cost, Error, Packed, Result, Role, Segment};

use crate::hello::Agreed;
use crate::plan::Plan;
use crate::slot_keys;

/// The public keys' bodies, a segment per degree.
type Keys = Packed<0x04>;

/// For each degree of the plan the largest modulus in use, ascending.
fn needed(plan: &Plan) -> Result<Vec<Params>> {
    let mut needed: Vec<Params> = Vec::new();
    for params in plan.steps().iter().filter_map(|step| step.params()) {
        match needed.iter_mut().find(|known| known.degree() == params.degree()) {
            Some(known) if known.modulus_bits() < params.modulus_bits() => *known = params,
            Some(_) => {}
            None => needed.push(params),
        }
    }
    needed.sort_by_key(Params::degree);
    Ok(needed)
}

fn layout(needed: &[Params]) -> Vec<Segment> {
    needed.iter().map(|p| Segment { count: p.degree(), bits: p.modulus_bits() }).collect()
}

/// What the keys cost.
pub(crate) fn cost(plan: &Plan) -> Cost {
    let keys = match needed(plan).as_deref() {
        Ok([]) | Err(_) => Cost::NONE,
        Ok(needed) => Cost::message(Role::Client, Keys::body_len(&layout(needed))),
    };
    keys.then(slot_keys::cost(plan))
}

/// A line per set of parameters, for people.
pub(crate) fn describe(plan: &Plan) -> Vec<String> {
    let keys = needed(plan).unwrap_or_default();
    let keys = keys.iter().map(|p| {
        let (degree, bits) = (p.degree(), p.modulus_bits());
        format!("RLWE: degree {degree}, modulus up to 2^{bits}, ternary secret, sigma 3.2")
    });
    let source = plan.settings().ot.describe();
    let transfers = format!("oblivious transfer: {source}, over Ristretto base transfers");
    keys.chain(slot_keys::describe(plan)).chain([transfers]).collect()
}

/// The client's half.
pub(crate) struct ClientKeys {
    degrees: Vec<SecretKey>,
    slots: Option<bfv::SecretKey>,
}

/// The server's half.
pub(crate) struct ServerKeys {
    degrees: Vec<PublicKey>,
    slots: Option<slots::ServerKeys>,
}

impl ClientKeys {
    pub(crate) fn setup(
        channel: &mut Channel,
        plan: &Plan,
        agreed: &Agreed,
        rng: &mut Random,
    ) -> Result<Self> {
        let needed = needed(plan)?;
        let mut keys = Vec::with_capacity(needed.len());
        let mut bodies = Vec::with_capacity(needed.len());
        for (params, segment) in needed.iter().zip(layout(&needed)) {
            let key = SecretKey::generate(*params, rng).map_err(misuse)?;
            let public = key.public_key(&agreed.key_seed(params.degree()), rng).map_err(misuse)?;
            bodies.push((segment, public.body().to_vec()));
            keys.push(key);
        }
        if !bodies.is_empty() {
            channel.send(&Packed::<0x04>(bodies))?;
        }
        Ok(Self { degrees: keys, slots: slot_keys::client(channel, plan, agreed, rng)? })
    }

    /// For layers on packed slots.
    pub(crate) fn for_slots(&self) -> Result<&bfv::SecretKey> {
        self.slots.as_ref().ok_or_else(|| Error::misuse("no key for packed slots"))
    }

    pub(crate) fn for_degree(&self, degree: usize) -> Result<&SecretKey> {
        let key = self.degrees.iter().find(|key| key.params().degree() == degree);
        key.ok_or_else(|| Error::misuse(format!("no key of degree {degree}")))
    }
}

impl ServerKeys {
    pub(crate) fn setup(channel: &mut Channel, plan: &Plan, agreed: &Agreed) -> Result<Self> {
        let degrees = Self::degrees(channel, &needed(plan)?, agreed)?;
        Ok(Self { degrees, slots: slot_keys::server(channel, plan, agreed)? })
    }

    fn degrees(
        channel: &mut Channel,
        needed: &[Params],
        agreed: &Agreed,
    ) -> Result<Vec<PublicKey>> {
        if needed.is_empty() {
            return Ok(Vec::new());
        }
        let bodies: Keys = channel.receive(&layout(needed))?;
        let keys = needed.iter().zip(bodies.into_values()).map(|(params, body)| {
            let seed = agreed.key_seed(params.degree());
            PublicKey::new(*params, &seed, body)
                .map_err(|e| Error::peer("a public key", e.to_string()))
        });
        keys.collect()
    }

    /// For layers on packed slots.
    pub(crate) fn for_slots(&self) -> Result<&slots::ServerKeys> {
        self.slots.as_ref().ok_or_else(|| Error::misuse("no keys for packed slots"))
    }

    pub(crate) fn for_degree(&self, degree: usize) -> Result<&PublicKey> {
        let key = self.degrees.iter().find(|key| key.params().degree() == degree);
        key.ok_or_else(|| Error::misuse(format!("no key of degree {degree}")))
    }
}

pub(crate) fn misuse(error: he::Error) -> Error {
    Error::misuse(error.to_string())
}
