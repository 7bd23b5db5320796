//! Correlations of a session: made in both directions, hashed into what steps consume.
//!
//! Correlations are made for a segment of steps at a time, so that the memory they take
//! stays bounded however large the network is.

use mpc::{Correlations, Demand, garbled};
use ot::rot::{fill_cost, fill_receiver, fill_sender};
use ot::{
    CorrelationCounts, CotReceiver, CotSender, Job, Kept, Schedule, SessionId, Setup, Sourcing,
};
use pricing::Work;
use ring::Random;
use wire::{Channel, Cost, Error, Phase, Result, Role};

use super::spent::Spent;

/// Bytes of correlations that a party makes at a time.
pub const MOST_BYTES: usize = 128 << 20;

/// Both directions' correlations of one session.
pub struct CorrelationSource {
    /// None where no OT is made.
    ends: Option<(CotSender, CotReceiver)>,
    /// For garbled circuits.
    rng: Random,
}

/// The schedules of both directions of a [`CorrelationSource`], for predictions.
#[derive(Clone, Debug)]
pub(crate) struct Schedules {
    client_sends: Schedule,
    server_sends: Schedule,
}

impl CorrelationSource {
    /// Makes the base OTs in both directions of the session that `session` names.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub fn setup(
        channel: &mut Channel,
        rng: &mut Random,
        session: [u8; 32],
        sourcing: Sourcing,
    ) -> Result<Self> {
        Self::resume(channel, rng, Setup::new(SessionId(session), sourcing)).map(|made| made.0)
    }

    /// Sets both directions up as `setup` says; returns the base OTs of a later session too, if
    /// they are to be kept.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub(crate) fn resume(
        channel: &mut Channel,
        rng: &mut Random,
        setup: Setup,
    ) -> Result<(Self, Option<Kept>)> {
        let (sender, receiver, kept) = setup.run(channel, rng)?;
        Ok((Self { ends: Some((sender, receiver)), rng: rng.child() }, kept))
    }

    /// For plans without OTs.
    pub(crate) fn none(rng: &mut Random) -> Self {
        Self { ends: None, rng: rng.child() }
    }

    /// Lets this party use so many threads; the other notices nothing.
    pub fn set_threads(&mut self, threads: usize) {
        if let Some((sender, receiver)) = &mut self.ends {
            sender.set_threads(threads);
            receiver.set_threads(threads);
        }
    }

    /// Makes the correlations and garbled circuits of `demand`.
    pub(crate) fn prepare(
        &mut self,
        channel: &mut Channel,
        demand: &Demand,
    ) -> Result<Correlations> {
        let Self { ends: Some((from, to)), rng } = self else { return Ok(Correlations::default()) };
        channel.enter(Phase::Preprocess, None);
        let role = channel.role();
        let (mut sending, mut receiving) = (Vec::new(), Vec::new());
        for sender in [Role::Client, Role::Server] {
            let jobs = jobs(demand, sender);
            if sender == role {
                sending = fill_sender(channel, from, &jobs)?;
            } else {
                receiving = fill_receiver(channel, to, &jobs)?;
            }
        }
        let ots = match role {
            Role::Client => {
                Correlations::new(sending.split_off(demand.client_sends.len()), Vec::new())
            }
            Role::Server => {
                Correlations::new(Vec::new(), receiving.split_off(demand.client_sends.len()))
            }
        };
        let circuits = garbled::prepare(channel, &demand.circuits, ots, rng)?;
        Ok(Correlations::new(sending, receiving).with_circuits(circuits))
    }

    /// Returns the ends that this party holds: the sender's and the receiver's.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a plan without OTs.
    pub fn sources(&mut self) -> Result<(&mut CotSender, &mut CotReceiver)> {
        let ends = self.ends.as_mut().map(|(sender, receiver)| (sender, receiver));
        ends.ok_or_else(|| {
            Error::internal(
                "a plan without oblivious transfers is asked for some; please report it",
            )
        })
    }
}

impl Schedules {
    /// After [`CorrelationSource::setup`].
    pub(crate) fn new(sourcing: Sourcing) -> Self {
        let schedule = |sender| Schedule::new(sourcing, sender);
        Self { client_sends: schedule(Role::Client), server_sends: schedule(Role::Server) }
    }

    /// What [`CorrelationSource::resume`] costs.
    pub(crate) fn setup_cost(sourcing: Sourcing, kept: bool, keeps: bool) -> Cost {
        ot::kept_setup_cost(sourcing, kept, keeps)
    }

    /// What [`CorrelationSource::prepare`] takes next.
    pub(crate) fn prepare(&mut self, demand: &Demand) -> Spent {
        let before = self.made();
        let [client, server] = [Role::Client, Role::Server].map(|sender| jobs(demand, sender));
        let ots = fill_cost(&mut self.client_sends, &client);
        let ots = ots.then(fill_cost(&mut self.server_sends, &server));
        let cost = ots.then(garbled::prepare_cost(&demand.circuits));
        let made = self.made().into_iter().zip(before).map(|(now, before)| now.since(before));
        // What one party makes before the other has anything to do is beside nothing.
        let made = made.map(|made| made.and(made.first()));
        let work = made.map(mpc::work::correlations).sum::<Work>() + mpc::work::pads(demand);
        Spent { cost, work }
    }

    /// Correlations made so far, those that the client sends first.
    fn made(&self) -> [CorrelationCounts; 2] {
        [self.client_sends.made(), self.server_sends.made()]
    }
}

/// All OTs that `sender` sends; those behind garbled circuits come last.
fn jobs(demand: &Demand, sender: Role) -> Vec<Job> {
    let mut jobs = demand.sent_by(sender).to_vec();
    if sender == Role::Client {
        jobs.extend(demand.circuit_jobs());
    }
    jobs
}

/// Returns the bytes that the party that holds more holds: of OTs the sender, of circuits the
/// evaluator.
pub fn pad_bytes(demand: &Demand) -> usize {
    let entry = |job: &Job| {
        let planes = job.entry.planes().saturating_mul(job.count.div_ceil(8));
        planes.saturating_add(job.entry.words().count().saturating_mul(8 * job.count))
    };
    let jobs = demand.client_sends.iter().chain(&demand.server_sends);
    let circuits = demand.table_bytes();
    jobs.fold(circuits, |sum, job| sum.saturating_add(entry(job).saturating_mul(job.entries())))
}
