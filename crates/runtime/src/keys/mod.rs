//! The client's keys: one a session and ring degree, for all moduli of the plan.

pub(crate) mod agreed;
pub(crate) mod files;
pub(crate) mod lola;
pub(crate) mod sealed;
mod slots;

use std::sync::Arc;

use he::rlwe::{self, Params, PublicKey, SecretKey, UnfoldKey, noise};
use pricing::{Unit, Work};
use ring::Random;
use wire::{Channel, Cost, Error, Packed, Result, Role, Segment, tags};

use crate::plan::Plan;
use crate::step::keys::{ClientKeys, KeyDemand, ServerKeys, misuse};
use crate::step::spent::Spent;
pub use agreed::Agreed;
use files::KeyFiles;
use lola::Cache;

/// The public keys' bodies, a segment per degree; then those of keys for unfolding.
type Keys = Packed<{ tags::SESSION_KEYS }>;

/// What the layers of a plan ask for, layer by layer.
pub(super) fn demands(plan: &Plan) -> impl Iterator<Item = KeyDemand> {
    plan.all_steps().filter_map(|step| Some(step.linear()?.keys()))
}

/// Parameters and levels of the keys for unfolding, one a degree, ascending.
fn unfolding(plan: &Plan) -> Vec<(Params, usize)> {
    let mut needed: Vec<(Params, usize)> = Vec::new();
    for (params, levels) in demands(plan).filter_map(|demand| demand.unfold) {
        match needed.iter_mut().find(|(known, _)| known.degree() == params.degree()) {
            Some((_, most)) => *most = levels.max(*most),
            None => needed.push((params, levels)),
        }
    }
    needed.sort_by_key(|(params, _)| params.degree());
    needed
}

/// Segments of one degree's keys for unfolding.
fn unfold_layout(params: Params, levels: usize) -> Result<Vec<Segment>> {
    let segments = UnfoldKey::layout(params, levels).map_err(misuse)?.into_iter();
    Ok(segments.map(|(count, bits)| Segment { count, bits }).collect())
}

/// For each degree of the plan the largest modulus in use, ascending.
fn needed(plan: &Plan) -> Result<Vec<Params>> {
    let mut needed: Vec<Params> = Vec::new();
    for params in demands(plan).filter_map(|demand| demand.coefficient) {
        match needed.iter_mut().find(|known| known.degree() == params.degree()) {
            Some(known) if known.modulus_bits() < params.modulus_bits() => *known = params,
            Some(_) => {}
            None => needed.push(params),
        }
    }
    needed.sort_by_key(Params::degree);
    Ok(needed)
}

fn layout(plan: &Plan, needed: &[Params]) -> Result<Vec<Segment>> {
    let public = needed.iter().map(|p| Segment { count: p.degree(), bits: p.modulus_bits() });
    let mut segments: Vec<Segment> = public.collect();
    for (params, levels) in unfolding(plan) {
        segments.extend(unfold_layout(params, levels)?);
    }
    Ok(segments)
}

/// What the keys of a session of `plan` cost.
pub fn cost(plan: &Plan) -> Cost {
    let segments = needed(plan).and_then(|needed| layout(plan, &needed));
    let keys = match segments.as_deref() {
        Ok([]) | Err(_) => Cost::NONE,
        Ok(segments) => Cost::message(Role::Client, Keys::body_len(segments)),
    };
    keys.then(slots::cost(plan)).then(lola::cost(plan))
}

/// What keys for unfolding of these levels take, in the order of [`rlwe::TABLE`], beside other keys.
pub(crate) fn unfolding_spent(levels: [usize; rlwe::TABLE.len()]) -> Spent {
    let mut spent = Spent::sending(Cost::NONE);
    for ((degree, bits), levels) in rlwe::TABLE.into_iter().zip(levels) {
        let params = Params::new(degree, bits).map_err(misuse);
        let segments = params.and_then(|params| unfold_layout(params, levels)).unwrap_or_default();
        spent.cost.client_to_server += Keys::body_len(&segments);
        spent = spent.and(unfolding_work(degree, segments.len()));
    }
    spent
}

/// What making so many bodies of keys for unfolding takes, and transforming them.
fn unfolding_work(degree: usize, bodies: usize) -> Work {
    let coefficients = (degree * bodies) as f64;
    Work::of(Unit::Encrypted, coefficients).and(Unit::Transformed, 2.0 * coefficients)
}

/// A bound on the probability that the client's keys are such that the bounds on noise do not hold.
pub(crate) fn failure(plan: &Plan) -> f64 {
    let unfolding = unfolding(plan);
    let levels = |params: &Params| {
        let same = unfolding.iter().find(|(known, _)| known.degree() == params.degree());
        same.map_or(0, |(_, levels)| *levels)
    };
    let coefficient = needed(plan).unwrap_or_default();
    let coefficient = coefficient.iter().map(|params| noise::key_failure(levels(params)));
    let packed = slots::degree(plan).map(he::bfv::noise::key_failure);
    coefficient.chain(packed).sum()
}

/// What making and reading the keys takes; of public keys little.
pub(crate) fn work(plan: &Plan) -> Work {
    let coefficients = slots::coefficients(plan) + lola::coefficients(plan);
    let unfolding = unfolding(plan).into_iter().map(|(params, levels)| {
        let bodies = unfold_layout(params, levels).map_or(0, |segments| segments.len());
        unfolding_work(params.degree(), bodies)
    });
    Work::of(Unit::Keyed, coefficients as f64) + unfolding.sum()
}

/// A line per set of parameters, for people.
pub(crate) fn describe(plan: &Plan) -> Vec<String> {
    let keys = needed(plan).unwrap_or_default();
    let keys = keys.iter().map(|p| {
        let (degree, bits) = (p.degree(), p.modulus_bits());
        format!("RLWE: degree {degree}, modulus up to 2^{bits}, ternary secret, sigma 3.2")
    });
    if let Some(lola) = plan.evaluated() {
        return lola.describe();
    }
    let source = plan.settings().ot.describe();
    let transfers = format!("oblivious transfer: {source}, over Ristretto base transfers");
    keys.chain(slots::describe(plan)).chain([transfers]).collect()
}

impl ClientKeys {
    /// Makes the keys that `plan` needs and sends their public halves; keys of a network that is
    /// evaluated under encryption may be the client's `own`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for keys that do not fit the plan, [`Error::Peer`], [`Error::Transport`].
    pub fn setup(
        channel: &mut Channel,
        plan: &Plan,
        agreed: &Agreed,
        own: Option<&KeyFiles>,
        rng: &mut Random,
    ) -> Result<Self> {
        let needed = needed(plan)?;
        let mut keys = Vec::with_capacity(needed.len());
        let mut bodies = Vec::with_capacity(needed.len());
        for params in &needed {
            let key = SecretKey::generate(*params, rng).map_err(misuse)?;
            let public = key.public_key(&agreed.key_seed(params.degree()), rng).map_err(misuse)?;
            bodies.push(public.body().to_vec());
            keys.push(key);
        }
        for (params, levels) in unfolding(plan) {
            let key = keys.iter().find(|key| key.params() == params).ok_or_else(unfit)?;
            let seed = agreed.key_seed(params.degree());
            bodies.extend(key.unfold_bodies(levels, &seed, rng).map_err(misuse)?);
        }
        let bodies: Vec<_> = layout(plan, &needed)?.into_iter().zip(bodies).collect();
        if !bodies.is_empty() {
            channel.send(&Keys::new(bodies))?;
        }
        let slots = slots::client(channel, plan, agreed, rng)?;
        Ok(Self { degrees: keys, slots, evaluation: lola::client(channel, plan, own, rng)? })
    }
}

/// The public key of each degree, and keys for unfolding.
type DegreeKeys = (Vec<Arc<PublicKey>>, Vec<Arc<UnfoldKey>>);

impl ServerKeys {
    /// Receives the keys that `plan` needs; those of clients who come back may be in `cache`.
    ///
    /// # Errors
    /// [`Error::Peer`] for keys that do not fit the plan, [`Error::Transport`].
    pub fn setup(
        channel: &mut Channel,
        plan: &Plan,
        agreed: &Agreed,
        cache: &Cache,
    ) -> Result<Self> {
        let (degrees, unfold) = Self::degrees(channel, plan, &needed(plan)?, agreed)?;
        let slots = slots::server(channel, plan, agreed)?;
        Ok(Self { degrees, unfold, slots, evaluation: lola::server(channel, plan, cache)? })
    }

    fn degrees(
        channel: &mut Channel,
        plan: &Plan,
        needed: &[Params],
        agreed: &Agreed,
    ) -> Result<DegreeKeys> {
        if needed.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let message: Keys = channel.receive(&layout(plan, needed)?)?;
        let mut bodies = message.into_values();
        let refused = |e: he::Error| Error::peer("a public key", e.to_string());
        let mut keys = Vec::with_capacity(needed.len());
        for params in needed {
            let (seed, body) = (agreed.key_seed(params.degree()), bodies.next());
            let key = PublicKey::new(*params, &seed, body.ok_or_else(absent)?);
            keys.push(Arc::new(key.map_err(refused)?));
        }
        let mut unfold = Vec::new();
        for (params, levels) in unfolding(plan) {
            let seed = agreed.key_seed(params.degree());
            let count = unfold_layout(params, levels)?.len();
            let bodies: Vec<Vec<u64>> = bodies.by_ref().take(count).collect();
            let key = UnfoldKey::new(params, levels, &seed, &bodies).map_err(refused)?;
            unfold.push(Arc::new(key));
        }
        Ok((keys, unfold))
    }
}

fn unfit() -> Error {
    Error::misuse("keys that do not fit the plan")
}

fn absent() -> Error {
    Error::internal("a message without one of its keys; please report it")
}
