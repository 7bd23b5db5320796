//! The client's keys for layers on packed slots: one secret, one public key and the
//! rotations of all layers of the plan.

use he::bfv::{Params, PublicKey, RotationKeys, SecretKey};
use mpc::linear::slots::ServerKeys;
use ring::{Random, Seed};
use wire::{Channel, Cost, Error, Packed, Result, Role, Segment, tags};

use super::agreed::Agreed;
use super::demands;
use crate::plan::Plan;
use crate::step::keys::misuse;

/// The bodies of one key.
type Bodies = Packed<{ tags::SLOT_KEYS }>;

/// What the layers of a plan need together.
struct Needed {
    params: Params,
    /// Rotations, in ascending order.
    steps: Vec<usize>,
}

impl Needed {
    fn of(plan: &Plan) -> Option<Self> {
        let layers: Vec<_> = demands(plan).filter_map(|demand| demand.slots).collect();
        let params = layers.first()?.params.clone();
        let mut steps: Vec<usize> = layers.into_iter().flat_map(|layer| layer.rotations).collect();
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

/// The degree of the ring, if there are any.
pub(crate) fn degree(plan: &Plan) -> Option<usize> {
    Needed::of(plan).map(|needed| needed.params.degree())
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
    let rotations = key.rotation_bodies(&needed.steps, false, &rotations, rng).map_err(misuse)?;
    let bodies = std::iter::once(public.bodies()).chain(rotations);
    for (layout, bodies) in needed.layouts()?.into_iter().zip(bodies) {
        channel.send(&Bodies::new(layout.into_iter().zip(bodies).collect()))?;
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
    let theirs = |e: he::Error| Error::peer("keys", e.to_string());
    let [public, rotations] = seeds(agreed);
    let mut layouts = needed.layouts()?.into_iter();
    let mut receive = |layout: Vec<Segment>| {
        let bodies: Bodies = channel.receive(&layout)?;
        Ok::<_, Error>(bodies.into_values().collect::<Vec<_>>())
    };
    let first = receive(layouts.next().unwrap_or_default())?;
    let public = PublicKey::new(&needed.params, &public, &first).map_err(theirs)?;
    let rotations = RotationKeys::incoming(&needed.params, &needed.steps, false, &rotations);
    let mut rotations = rotations.map_err(theirs)?;
    for layout in layouts {
        rotations.add(&receive(layout)?).map_err(theirs)?;
    }
    Ok(Some(ServerKeys { public, rotations: rotations.whole().map_err(theirs)? }))
}
