//! The online phase: masked shares one way, labels the other.

use gc::evaluate;
use ring::word::mask;
use wire::{Channel, Cost, Error, Result, Role, tags};
use zeroize::Zeroizing;

use super::plan::Garbled;
use crate::bytes::{receive_labels, send_labels};
use crate::correlations::circuits::{End, Evaluator, Masked, planes};
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::protocol::{Protocol, input};
use crate::share::Share;

/// Tag of the labels of the client's bits.
const LABELS: u8 = tags::GARBLED_LABELS;

/// Runs the circuits; shares of the first output of every instance.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Garbled, x: &Share, ots: Correlations) -> Result<Share> {
    run_all(channel, plan, x, ots)?
        .into_iter()
        .next()
        .ok_or_else(|| defect("a garbled circuit has no output"))
}

/// Like [`run`], with the shares of every output, list after list.
///
/// # Errors
/// As [`run`].
pub fn run_all(
    channel: &mut Channel,
    plan: &Garbled,
    x: &Share,
    mut ots: Correlations,
) -> Result<Vec<Share>> {
    x.check(plan.inputs, plan.from.bits(), "garbled circuit")?;
    if !x.words().iter().fold(true, |all, word| all & plan.from.contains(*word)) {
        return Err(Error::misuse("shares beyond their prime"));
    }
    let prepared = ots.circuits(&plan.demand().circuits)?.pop();
    let shares = match (channel.role(), prepared.map(|prepared| prepared.end)) {
        (Role::Client, Some(End::Garbler(garbling, tables))) => {
            let masked: Masked = channel.receive(&plan.layout())?;
            let entered = Zeroizing::new(enter(plan, x, &masked.concat())?);
            let bits = Zeroizing::new(planes(&entered, &plan.circuits));
            let (labels, shares) = garbling.finish(&bits)?;
            channel.send_asides(tables)?;
            send_labels::<LABELS>(channel, &labels)?;
            shares
        }
        (Role::Server, Some(End::Evaluator(mut held))) => {
            channel.send(&masked(plan, x, &held))?;
            let batch = plan.circuits.batch();
            let labels = receive_labels::<LABELS>(channel, batch.garbler_bits())?;
            let tables = std::mem::take(&mut held.tables).tables(channel, &plan.circuits)?;
            evaluate(batch, tables, &labels, &held.labels)?
        }
        _ => return Err(Error::misuse("the other party's end of a garbled circuit")),
    };
    Ok(finish(channel.role(), plan, shares))
}

/// This party's summands in the ring of the circuit, as its instances want them.
fn summands(plan: &Garbled, role: Role, x: &Share) -> Vec<u64> {
    let ring = plan.entrance.ring;
    let moved = match role {
        Role::Client => 0,
        Role::Server => ring.of_signed(plan.entrance.moved),
    };
    let enter = |word: &u64| ring.add(ring.reduce(*word), moved);
    match &plan.positions {
        None => x.words().iter().map(enter).collect(),
        Some(positions) => {
            positions.iter().filter_map(|at| x.words().get(*at)).map(enter).collect()
        }
    }
}

fn masked(plan: &Garbled, x: &Share, held: &Evaluator) -> Masked {
    let ring = plan.entrance.ring;
    let words = Zeroizing::new(summands(plan, Role::Server, x));
    let masked = words.iter().zip(&held.masks).map(|(word, mask)| ring.subtract(*word, *mask));
    Masked::one(masked.collect(), ring.bits())
}

/// The client's inputs.
fn enter(plan: &Garbled, x: &Share, masked: &[u64]) -> Result<Vec<u64>> {
    let ring = plan.entrance.ring;
    if !masked.iter().all(|word| ring.contains(*word)) {
        return Err(Error::peer("masked shares below their prime", "others"));
    }
    let words = Zeroizing::new(summands(plan, Role::Client, x));
    let sums = words.iter().zip(masked).map(|(word, masked)| ring.add(*word, *masked));
    Ok(sums.map(|sum| plan.entrance.entered(sum) & mask(ring.bits())).collect())
}

fn finish(role: Role, plan: &Garbled, shares: Vec<Vec<u64>>) -> Vec<Share> {
    let rings = plan.circuits.batch().rings();
    let outputs = shares.into_iter().zip(rings).zip(&plan.lows);
    let share = |((mut words, ring), low): ((Vec<u64>, &gc::Ring), &i64)| {
        if role == Role::Server {
            let low = ring.of_signed(*low);
            words.iter_mut().for_each(|word| *word = ring.add(*word, low));
        }
        Share::new(words, ring.bits())
    };
    outputs.map(share).collect()
}

impl Protocol for Garbled {
    fn operator(&self) -> &'static str {
        "circuit"
    }

    fn describe(&self) -> String {
        "garbled circuits".into()
    }

    fn demand(&self) -> Demand {
        self.demand()
    }

    fn cost(&self) -> Cost {
        self.cost()
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        run(channel, self, input(inputs, 0)?, ots)
    }
}
