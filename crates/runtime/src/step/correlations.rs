//! Correlations of a session: made in both directions, hashed into what steps consume.
//!
//! Correlations are made for a segment of steps at a time, so that the memory they take
//! stays bounded however large the network is.

use mpc::{Correlations, Demand, garbled};
use ot::rot::{ReceiverPads, SenderPads, fill_cost, fill_receiver, fill_sender};
use ot::{
    Begun, CorrelationCounts, CotReceiver, CotSender, Job, Kept, Schedule, SessionId, Setup,
    Sourcing,
};
use pricing::Work;
use ring::Random;
use wire::{Channel, Cost, Error, Phase, Result, Role};

use super::spent::Spent;

/// Bytes of correlations that a party makes at a time.
pub const MOST_BYTES: usize = 128 << 20;

/// Both directions' correlations of one session.
pub struct CorrelationSource {
    ends: Ends,
    sourcing: Sourcing,
    /// For garbled circuits.
    rng: Random,
}

/// The ends of both directions that a party holds.
enum Ends {
    /// No OT is made.
    None,
    /// The last flight of the setup is still to come.
    Begun(Box<Begun>),
    Ready(Box<(CotSender, CotReceiver)>),
}

/// The OTs that the server sends of the first demand of a session, made before the last flight of
/// the setup.
pub(crate) enum FirstOts {
    Sent(Vec<SenderPads>),
    Received(Vec<ReceiverPads>),
}

/// The schedules of both directions of a [`CorrelationSource`], for predictions.
#[derive(Clone, Debug)]
pub(crate) struct Schedules {
    client_sends: Schedule,
    server_sends: Schedule,
    /// What had been made before [`Schedules::first`], until the rest of its demand is made.
    first: Option<[CorrelationCounts; 2]>,
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
        let mut source = Self::begin(channel, rng, Setup::new(SessionId(session), sourcing))?;
        source.finish(channel)?;
        Ok(source)
    }

    /// Sets both directions up as `setup` says, but for the last flight.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub fn begin(channel: &mut Channel, rng: &mut Random, setup: Setup) -> Result<Self> {
        let sourcing = setup.sourcing;
        let begun = Box::new(setup.begin(channel, rng)?);
        Ok(Self { ends: Ends::Begun(begun), sourcing, rng: rng.child() })
    }

    /// The last flight of the setup; returns the base OTs of a later session, if they are to be
    /// kept.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub fn finish(&mut self, channel: &mut Channel) -> Result<Option<Kept>> {
        channel.enter(Phase::Setup, None);
        match std::mem::replace(&mut self.ends, Ends::None) {
            Ends::Begun(begun) => {
                let (sender, receiver, kept) = begun.finish(channel)?;
                self.ends = Ends::Ready(Box::new((sender, receiver)));
                Ok(kept)
            }
            ends => {
                self.ends = ends;
                Ok(None)
            }
        }
    }

    /// For plans without OTs.
    pub(crate) fn none(rng: &mut Random) -> Self {
        Self { ends: Ends::None, sourcing: Sourcing::default(), rng: rng.child() }
    }

    /// Lets this party use so many threads; the other notices nothing.
    pub fn set_threads(&mut self, threads: usize) {
        match &mut self.ends {
            Ends::None => {}
            Ends::Begun(begun) => begun.set_threads(threads),
            Ends::Ready(ends) => {
                ends.0.set_threads(threads);
                ends.1.set_threads(threads);
            }
        }
    }

    /// Makes the OTs of `demand` that the server sends before the last flight of the setup, where
    /// only the client has to say something for them.
    ///
    /// # Errors
    /// [`Error::Peer`], [`Error::Transport`].
    pub(crate) fn first(
        &mut self,
        channel: &mut Channel,
        demand: &Demand,
    ) -> Result<Option<FirstOts>> {
        let Ends::Begun(begun) = &mut self.ends else { return Ok(None) };
        if Schedules::new(self.sourcing).first(demand).is_none() {
            return Ok(None);
        }
        channel.enter(Phase::Preprocess, None);
        let jobs = jobs(demand, Role::Server);
        match begun.first() {
            (Some(sender), _) => Ok(Some(FirstOts::Sent(fill_sender(channel, sender, &jobs)?))),
            (None, Some(receiver)) => {
                Ok(Some(FirstOts::Received(fill_receiver(channel, receiver, &jobs)?)))
            }
            (None, None) => Ok(None),
        }
    }

    /// Makes the correlations and garbled circuits of `demand`.
    pub(crate) fn prepare(
        &mut self,
        channel: &mut Channel,
        demand: &Demand,
    ) -> Result<Correlations> {
        self.prepare_rest(channel, demand, None)
    }

    /// Makes what is missing of the correlations and garbled circuits of `demand` after `first`.
    pub(crate) fn prepare_rest(
        &mut self,
        channel: &mut Channel,
        demand: &Demand,
        first: Option<FirstOts>,
    ) -> Result<Correlations> {
        if let Ends::None = self.ends {
            return Ok(Correlations::default());
        }
        let ((from, to), rng) = Self::ends(&mut self.ends, &mut self.rng)?;
        channel.enter(Phase::Preprocess, None);
        let role = channel.role();
        let (mut sending, mut receiving) = (Vec::new(), Vec::new());
        let directions = [Role::Client, Role::Server];
        let missing = if first.is_some() { 1 } else { 2 };
        for sender in directions.into_iter().take(missing) {
            let jobs = jobs(demand, sender);
            if sender == role {
                sending = fill_sender(channel, from, &jobs)?;
            } else {
                receiving = fill_receiver(channel, to, &jobs)?;
            }
        }
        match first {
            Some(FirstOts::Sent(made)) => sending = made,
            Some(FirstOts::Received(made)) => receiving = made,
            None => {}
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
        Self::ends(&mut self.ends, &mut self.rng).map(|(ends, _)| ends)
    }

    /// The ends of a source that is set up, and its randomness.
    fn ends<'a>(
        ends: &'a mut Ends,
        rng: &'a mut Random,
    ) -> Result<((&'a mut CotSender, &'a mut CotReceiver), &'a mut Random)> {
        let why = match ends {
            Ends::Ready(ends) => return Ok(((&mut ends.0, &mut ends.1), rng)),
            Ends::None => "a plan without oblivious transfers is asked for some; please report it",
            Ends::Begun(_) => "correlations before the setup is over; please report it",
        };
        Err(Error::internal(why))
    }
}

impl Schedules {
    /// After [`CorrelationSource::setup`].
    pub(crate) fn new(sourcing: Sourcing) -> Self {
        let schedule = |sender| Schedule::new(sourcing, sender);
        let [client_sends, server_sends] = [Role::Client, Role::Server].map(schedule);
        Self { client_sends, server_sends, first: None }
    }

    /// What [`CorrelationSource::first`] sends, where it makes anything; the work is counted with
    /// the rest of the demand.
    pub(crate) fn first(&mut self, demand: &Demand) -> Option<Cost> {
        let mut ahead = self.server_sends.clone();
        let cost = fill_cost(&mut ahead, &jobs(demand, Role::Server));
        if cost.server_to_client > 0 {
            return None;
        }
        self.first = Some(self.made());
        self.server_sends = ahead;
        Some(cost)
    }

    /// What [`CorrelationSource::prepare_rest`] takes next.
    pub(crate) fn prepare(&mut self, demand: &Demand) -> Spent {
        let first = self.first.take();
        let before = first.unwrap_or_else(|| self.made());
        let [client, server] = [Role::Client, Role::Server].map(|sender| jobs(demand, sender));
        let mut ots = fill_cost(&mut self.client_sends, &client);
        if first.is_none() {
            ots = ots.then(fill_cost(&mut self.server_sends, &server));
        }
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
