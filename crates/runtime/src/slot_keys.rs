//! The client's keys for layers on packed slots: one secret, one public key and the
//! rotations of all layers of the plan.

use he::bfv::{Params, PublicKey, RotationKeys, SecretKey};
use mpc::linear::slots::ServerKeys;
use ring::{Random, Seed};
use wire::{Channel, Cost, Error, Packed, Result, Role, Segment};

use crate::hello::Agreed;
use crate::keys::misuse;
use crate::plan::Plan;

/// The bodies of one key.
type Bodies = Packed<0x47>;

/// What the layers of a plan need together.
struct Needed {
    params: Params,
    /// Rotations, in ascending order.
    steps: Vec<usize>,
}

impl Needed {
    fn of(plan: &Plan) -> Option<Self> {
        let layers = || plan.steps().iter().filter_map(|step| step.slots());
        let params = layers().next()?.params().clone();
        let mut steps: Vec<usize> = layers().flat_map(|layer| layer.rotations()).collect();
        steps.sort_unstable();
        steps.dedup();
        Some(Self { params, steps })
    }

    /// Layouts of the messages: the public key, then a rotation each.
    fn layouts(&self) -> Result<Vec<Vec<Segment>>> {
        let segments = |layout: Vec<(usize, u32)>| -> Vec<Segment> {
            layout.into_iter().map(|(count, bits)| Segment { count, bits }).collect()
        };
        let public = segments(PublicKey::layout(&self.params));
        let rotations = RotationKeys::layout(&self.params, &self.steps, false).map_err(misuse)?;
        let rotations = segments(rotations);
        let each = (rotations.len() / self.steps.len().max(1)).max(1);
        Ok(std::iter::once(public).chain(rotations.chunks(each).map(<[_]>::to_vec)).collect())
    }
}

/// What the keys cost.
pub(crate) fn cost(plan: &Plan) -> Cost {
    let layouts = Needed::of(plan).and_then(|needed| needed.layouts().ok()).unwrap_or_default();
    layouts.iter().map(|layout| Cost::message(Role::Client, Bodies::body_len(layout))).collect()
}

/// Coefficients of all of them.
pub(crate) fn coefficients(plan: &Plan) -> usize {
    let layouts = Needed::of(plan).and_then(|needed| needed.layouts().ok()).unwrap_or_default();
    layouts.iter().flatten().map(|segment| segment.count).sum()
}

/// For people, if there are any.
pub(crate) fn describe(plan: &Plan) -> Option<String> {
    let Needed { params, steps } = Needed::of(plan)?;
    Some(format!("BFV: {params}, {} rotation keys, ternary secret, sigma 3.2", steps.len()))
}

/// Seeds of the public halves, fixed by both nonces: of the public key, of the rotations.
fn seeds(agreed: &Agreed) -> [Seed; 2] {
    [agreed.seed(b"tacit bfv public key v1", 0), agreed.seed(b"tacit bfv rotation keys v1", 0)]
}

/// The client's side.
pub(crate) fn client(
    channel: &mut Channel,
    plan: &Plan,
    agreed: &Agreed,
    rng: &mut Random,
) -> Result<Option<SecretKey>> {
    let Some(needed) = Needed::of(plan) else { return Ok(None) };
    let key = SecretKey::generate(&needed.params, rng).map_err(misuse)?;
    let [public, rotations] = seeds(agreed);
    let public = key.public_key(&public, rng).map_err(misuse)?;
    let rotations = key.rotation_keys(&needed.steps, false, &rotations, rng).map_err(misuse)?;
    let mut bodies = public.bodies().into_iter().chain(rotations.bodies());
    for layout in needed.layouts()? {
        let parts = layout.iter().copied().zip(bodies.by_ref().take(layout.len()));
        channel.send(&Packed::<0x47>(parts.collect()))?;
    }
    Ok(Some(key))
}

/// The server's side.
pub(crate) fn server(
    channel: &mut Channel,
    plan: &Plan,
    agreed: &Agreed,
) -> Result<Option<ServerKeys>> {
    let Some(needed) = Needed::of(plan) else { return Ok(None) };
    let mut messages = Vec::new();
    for layout in needed.layouts()? {
        let bodies: Bodies = channel.receive(&layout)?;
        messages.push(bodies.into_values().collect::<Vec<_>>());
    }
    let Needed { params, steps } = needed;
    let theirs = |e: he::Error| Error::peer("keys", e.to_string());
    let [public, rotations] = seeds(agreed);
    let first = messages.first().map_or(&[][..], Vec::as_slice);
    let public = PublicKey::new(&params, &public, first).map_err(theirs)?;
    let bodies: Vec<Vec<u64>> = messages.into_iter().skip(1).flatten().collect();
    let rotations = RotationKeys::new(&params, &steps, false, &rotations, &bodies);
    Ok(Some(ServerKeys { public, rotations: rotations.map_err(theirs)? }))
}
