//! Both parties of a garbled step, with its preprocessing.

use ot::ideal::deal_pads;
use ring::Random;
use wire::fuzzing::fed;
use wire::{Channel, Error, HEADER_LEN, Result, Role, tags};

use crate::correlations::Correlations;
use crate::garbled::{self, Clip, Function, Garbled, Ring, prepare};
use crate::share::Share;

/// Values of the step.
const COUNT: usize = 9;

fn plan() -> Option<Garbled> {
    let then = Function { drop: 2, floor: false, clip: Some(Clip { low: 0, saturate: 3 }) };
    let prime = Ring::Prime(ring::Modulus::new(1009)?);
    Garbled::map(COUNT, prime, 9, then, Ring::Power(11)).ok()
}

/// Tags and bodies of what a party hears in preprocessing and online.
fn frames(role: Role, plan: &Garbled) -> Vec<(u8, usize)> {
    let batch = plan.demand().circuits.first().map(|circuits| circuits.batch().clone());
    let (bits, tables) =
        batch.map_or((0, 0), |batch| (batch.evaluator_bits(), batch.table_bytes()));
    match role {
        Role::Server => vec![
            (tags::GARBLED_CORRECTIONS, 16 * bits),
            (tags::GARBLED_TABLES, tables),
            (tags::GARBLED_LABELS, 16 * bits),
        ],
        Role::Client => vec![
            (tags::GARBLED_CHOICES, bits.div_ceil(8)),
            (tags::GARBLED_MASKED, bits.div_ceil(8)),
        ],
    }
}

/// A party on messages of any content; bit 1 of the first byte says which. Bit 0 clear:
/// the rest is the peer's stream as it stands. Bit 0 set: the rest is repeated until it
/// fills every message, which gives shares unless something is not canonical.
///
/// # Panics
/// When it does not, or when more is asked for than the step has.
pub fn garbled_step(data: &[u8]) {
    let (Some((kind, rest)), Some(plan)) = (data.split_first(), plan()) else { return };
    let role = if kind & 2 == 0 { Role::Server } else { Role::Client };
    let filled = kind & 1 == 1 && !rest.is_empty();
    let frames = frames(role, &plan);
    let stream = if filled { stream(rest, &frames) } else { rest.to_vec() };
    let header = usize::try_from(HEADER_LEN).unwrap_or(usize::MAX);
    let most = frames.iter().map(|(_, len)| *len).fold(header, usize::max);
    match step(&mut fed(role, &stream, most), &plan) {
        Ok(share) => assert_eq!((share.len(), share.bits()), (COUNT, 11)),
        Err(Error::Peer { .. }) => {}
        Err(error) => assert!(!filled && matches!(error, Error::Transport(_)), "{error}"),
    }
}

fn step(channel: &mut Channel, plan: &Garbled) -> Result<Share> {
    let (demand, rng) = (plan.demand(), &mut Random::seeded(1));
    let (sending, receiving) = deal_pads(rng, &demand.circuit_jobs());
    let ots = match channel.role() {
        Role::Client => Correlations::new(sending, Vec::new()),
        Role::Server => Correlations::new(Vec::new(), receiving),
    };
    let prepared = prepare(channel, &demand.circuits, ots, rng)?;
    let x = Share::new(vec![5; COUNT], 10);
    garbled::run(channel, plan, &x, Correlations::default().with_circuits(prepared))
}

/// The frames, filled with `bytes` over and over.
fn stream(bytes: &[u8], frames: &[(u8, usize)]) -> Vec<u8> {
    let mut bytes = bytes.iter().copied().cycle();
    let mut stream = Vec::new();
    for (number, (tag, len)) in (0u32..).zip(frames) {
        let word = u32::try_from(*len).unwrap_or_default() | number << 28;
        stream.push(*tag);
        stream.extend(word.to_le_bytes());
        stream.extend(bytes.by_ref().take(*len));
    }
    stream
}

#[cfg(test)]
mod tests {
    use ring::mutate::replay;

    use super::*;

    const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

    #[test]
    fn garbled_steps_stand_their_corpus() {
        replay(&format!("{CORPUS}/mpc_garbled"), 20_000, garbled_step);
    }

    /// The target reaches what it is for.
    #[test]
    #[allow(clippy::unwrap_used)]
    fn frames_are_what_the_step_waits_for() {
        let plan = plan().unwrap();
        let cost = garbled::prepare_cost(&plan.demand().circuits).then(plan.cost());
        for (role, wanted) in
            [(Role::Server, cost.client_to_server), (Role::Client, cost.server_to_client)]
        {
            let heard = stream(&[0], &frames(role, &plan));
            assert_eq!(heard.len() as u64, wanted);
            let mut channel = fed(role, &heard, usize::MAX);
            assert_eq!(step(&mut channel, &plan).unwrap().len(), COUNT);
        }
    }
}
