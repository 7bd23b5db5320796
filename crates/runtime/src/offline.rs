//! The offline phase: correlations, hashed into the pads that steps consume.
//!
//! Pads are made for a stretch of steps at a time, so that the memory they take
//! stays bounded however large the network is.

use std::ops::Range;

use mpc::{Effort, Need, Pads, garbled};
use ot::pads::{fill_cost, fill_receiver, fill_sender};
use ot::{CotReceiver, CotSender, Job, Made, SessionId, Sourcing, Supply};
use ring::Random;
use wire::{Channel, Cost, Error, Phase, Result, Role};

use crate::hello::Agreed;
use crate::nonlinear::{MOST_BYTES, pad_bytes};
use crate::plan::{Plan, Spent};
use crate::steps::Step;

/// Both directions' correlations of one session.
pub(crate) struct Offline {
    /// None where nothing is transferred.
    ends: Option<(CotSender, CotReceiver)>,
    /// For garbled circuits.
    rng: Random,
}

/// What [`Offline`] has in stock, for predictions.
#[derive(Clone, Debug)]
pub(crate) struct Stock {
    client_sends: Supply,
    server_sends: Supply,
}

impl Offline {
    /// Base transfers.
    pub(crate) fn setup(
        channel: &mut Channel,
        rng: &mut Random,
        agreed: &Agreed,
        sourcing: Sourcing,
    ) -> Result<Self> {
        let session = SessionId(agreed.session);
        let (sender, receiver) = ot::setup_both(channel, rng, &session, sourcing)?;
        Ok(Self { ends: Some((sender, receiver)), rng: rng.child() })
    }

    /// [`Offline::setup`] where the plan transfers anything.
    pub(crate) fn for_plan(
        channel: &mut Channel,
        rng: &mut Random,
        agreed: &Agreed,
        plan: &Plan,
    ) -> Result<Self> {
        match plan.evaluated() {
            Some(_) => Ok(Self::none(rng)),
            None => Self::setup(channel, rng, agreed, plan.settings().sourcing()),
        }
    }

    /// For plans that transfer nothing.
    pub(crate) fn none(rng: &mut Random) -> Self {
        Self { ends: None, rng: rng.child() }
    }

    /// Lets this party use so many threads; the other notices nothing.
    pub(crate) fn set_threads(&mut self, threads: usize) {
        if let Some((sender, receiver)) = &mut self.ends {
            sender.set_threads(threads);
            receiver.set_threads(threads);
        }
    }

    /// Makes the pads and garbled circuits that `need` says.
    pub(crate) fn prepare(&mut self, channel: &mut Channel, need: &Need) -> Result<Pads> {
        let Self { ends: Some((from, to)), rng } = self else { return Ok(Pads::default()) };
        channel.enter(Phase::Offline, None);
        let role = channel.role();
        let (mut sending, mut receiving) = (Vec::new(), Vec::new());
        for sender in [Role::Client, Role::Server] {
            let jobs = jobs(need, sender);
            if sender == role {
                sending = fill_sender(channel, from, &jobs)?;
            } else {
                receiving = fill_receiver(channel, to, &jobs)?;
            }
        }
        let transfers = match role {
            Role::Client => Pads::new(sending.split_off(need.client_sends.len()), Vec::new()),
            Role::Server => Pads::new(Vec::new(), receiving.split_off(need.client_sends.len())),
        };
        let circuits = garbled::prepare(channel, &need.circuits, transfers, rng)?;
        Ok(Pads::new(sending, receiving).with_circuits(circuits))
    }

    /// The ends that this party holds.
    pub(crate) fn sources(&mut self) -> Result<(&mut CotSender, &mut CotReceiver)> {
        let ends = self.ends.as_mut().map(|(sender, receiver)| (sender, receiver));
        ends.ok_or_else(|| Error::misuse("a plan that transfers nothing"))
    }
}

impl Stock {
    /// After [`Offline::setup`].
    pub(crate) fn new(sourcing: Sourcing) -> Self {
        let supply = |sender| Supply::new(sourcing, sender);
        Self { client_sends: supply(Role::Client), server_sends: supply(Role::Server) }
    }

    /// What [`Offline::setup`] costs.
    pub(crate) fn setup_cost() -> Cost {
        ot::setup_both_cost()
    }

    /// What [`Offline::prepare`] takes next.
    pub(crate) fn prepare(&mut self, need: &Need) -> Spent {
        let before = self.made();
        let [client, server] = [Role::Client, Role::Server].map(|sender| jobs(need, sender));
        let transfers = fill_cost(&mut self.client_sends, &client);
        let transfers = transfers.then(fill_cost(&mut self.server_sends, &server));
        let cost = transfers.then(garbled::prepare_cost(&need.circuits));
        let made = self.made().into_iter().zip(before).map(|(now, before)| now.since(before));
        // What one party makes before the other has anything to do is beside nothing.
        let made = made.map(|made| made.and(made.first()));
        let effort = made.map(Effort::correlations).sum::<Effort>() + Effort::pads(need);
        Spent { cost, effort }
    }

    /// Correlations made so far, those that the client sends first.
    fn made(&self) -> [Made; 2] {
        [self.client_sends.made(), self.server_sends.made()]
    }
}

/// All transfers that `sender` sends; those behind garbled circuits come last.
fn jobs(need: &Need, sender: Role) -> Vec<Job> {
    let mut jobs = need.sent_by(sender).to_vec();
    if sender == Role::Client {
        jobs.extend(need.circuit_jobs());
    }
    jobs
}

/// Cuts steps into stretches whose pads fit into memory together. Beside those of a step
/// that makes its own no others are held.
pub(crate) fn stretches(steps: &[Step]) -> Vec<Range<usize>> {
    let mut stretches = Vec::new();
    let (mut start, mut held) = (0, 0usize);
    for (index, step) in steps.iter().enumerate() {
        let bytes = if step.feeds_itself() { MOST_BYTES } else { pad_bytes(&step.need()) };
        let bytes = bytes.saturating_add(pad_bytes(&step.mask_need()));
        if held.saturating_add(bytes) > MOST_BYTES && index > start && held > 0 {
            stretches.push(start..index);
            (start, held) = (index, 0);
        }
        held = held.saturating_add(bytes);
    }
    stretches.push(start..steps.len());
    stretches
}
