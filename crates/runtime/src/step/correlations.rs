//! Correlations of a session: made in both directions, hashed into what steps consume.
//!
//! Correlations are made for a segment of steps at a time, so that the memory they take
//! stays bounded however large the network is.

use std::sync::{Arc, Weak};

use mpc::garbled::{Circuits, Prepared};
use mpc::{Correlations, Demand, Pads, garbled};
use ot::filling::{
    FillingReceiver, FillingSender, fill_both, fill_receiver_later, fill_sender_later,
    fill_sender_unsent,
};
use ot::rot::{ReceiverPads, SenderPads, fill_receiver, fill_sender, is_one_way, is_soft};
use ot::{Begun, CotReceiver, CotSender, Job, Kept, SessionId, Setup, Sourcing};
use ring::Random;
use wire::{Channel, Error, Meanwhile, Phase, Result, Role};

pub(crate) use super::schedules::Schedules;

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

/// When correlations are made that take little to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// At once.
    Now,
    /// While this party waits for the other, or when they are taken, if Ferret makes them: correlations of
    /// SoftSpoken are made with their messages, and all of them would have to be held.
    Later,
}

/// OTs of a demand, those behind garbled circuits with them, which are perhaps still to be made.
#[derive(Default)]
pub(crate) struct Ots {
    sending: Pads<FillingSender>,
    receiving: Pads<FillingReceiver>,
}

impl Ots {
    /// Lets the channel make them while this party waits, of both directions by turns.
    fn register(&self, channel: &mut Channel) {
        let sending: Option<Weak<dyn Meanwhile>> =
            self.sending.later().map(|some| Arc::downgrade(some) as _);
        let receiving: Option<Weak<dyn Meanwhile>> =
            self.receiving.later().map(|some| Arc::downgrade(some) as _);
        channel.meanwhile(sending.into_iter().chain(receiving).collect());
    }
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
            (Some(sender), _) => fill_sender(channel, sender, &jobs).map(FirstOts::Sent).map(Some),
            (None, Some(receiver)) => {
                fill_receiver(channel, receiver, &jobs).map(FirstOts::Received).map(Some)
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
        let ots = self.exchange(channel, demand, None, When::Now)?;
        self.complete(channel, demand, ots)
    }

    /// Exchanges what is missing of the messages for the OTs of `demand` after `first`, and makes the OTs
    /// now, or later where that pays.
    pub(crate) fn exchange(
        &mut self,
        channel: &mut Channel,
        demand: &Demand,
        first: Option<FirstOts>,
        when: When,
    ) -> Result<Ots> {
        if let Ends::None = self.ends {
            return Ok(Ots::default());
        }
        let ((from, to), _) = Self::ends(&mut self.ends, &mut self.rng)?;
        channel.enter(Phase::Preprocess, None);
        let mut ots = Ots::default();
        let [client, server] = [Role::Client, Role::Server].map(|sender| jobs(demand, sender));
        let missing = first.is_none();
        let client_sends = channel.role() == Role::Client;
        let [ours, theirs] = if client_sends { [&client, &server] } else { [&server, &client] };
        if missing && is_soft(from.schedule(), ours) && is_soft(to.schedule(), theirs) {
            // OTs of circuits are taken at once, from the end.
            let later = when == When::Later && demand.circuits.is_empty();
            let (sending, receiving) = fill_both(channel, (from, ours), (to, theirs), later)?;
            (ots.sending, ots.receiving) = (Pads::Later(sending), receiving.into());
        } else if client_sends {
            ots.sending = send(channel, from, ours, when)?;
            if missing {
                ots.receiving = receive(channel, to, theirs, when)?;
            }
        } else if missing && when == When::Later && is_one_way(from.schedule(), &server) {
            // Both parties find what they say at the same time.
            let (sending, unsent) = fill_sender_unsent(from, &server)?;
            ots.receiving = receive(channel, to, &client, when)?;
            unsent.send(channel)?;
            ots.sending = Pads::Later(sending);
        } else {
            ots.receiving = receive(channel, to, &client, when)?;
            if missing {
                ots.sending = send(channel, from, &server, when)?;
            }
        }
        match first {
            Some(FirstOts::Sent(made)) => ots.sending = made.into(),
            Some(FirstOts::Received(made)) => ots.receiving = made.into(),
            None => {}
        }
        ots.register(channel);
        Ok(ots)
    }

    /// Exchanges the messages for the OTs of `demand` before what comes before it is done, if
    /// they are small: they are made meanwhile.
    pub(crate) fn exchange_early(
        &mut self,
        channel: &mut Channel,
        demand: &Demand,
    ) -> Result<Option<Ots>> {
        let Ends::Ready(ends) = &self.ends else { return Ok(None) };
        let counts = [channel.role(), !channel.role()].map(|role| cots(&jobs(demand, role)));
        let [sent, received] = counts;
        if sent + received == 0 || !ends.0.is_silent(sent) || !ends.1.is_silent(received) {
            return Ok(None);
        }
        self.exchange(channel, demand, None, When::Later).map(Some)
    }

    /// Makes the garbled circuits of `demand`, whose OTs are there.
    pub(crate) fn complete(
        &mut self,
        channel: &mut Channel,
        demand: &Demand,
        ots: Ots,
    ) -> Result<Correlations> {
        self.with_circuits(channel, demand, ots, garbled::prepare)
    }

    /// Makes the garbled circuits of `demand`, whose OTs are there, and sends their tables aside.
    pub(crate) fn complete_aside(
        &mut self,
        channel: &mut Channel,
        demand: &Demand,
        ots: Ots,
    ) -> Result<Correlations> {
        self.with_circuits(channel, demand, ots, garbled::prepare_aside)
    }

    fn with_circuits(
        &mut self,
        channel: &mut Channel,
        demand: &Demand,
        ots: Ots,
        prepare: impl Fn(&mut Channel, &[Circuits], Correlations, &mut Random) -> Result<Vec<Prepared>>,
    ) -> Result<Correlations> {
        if let Ends::None = self.ends {
            return Ok(Correlations::default());
        }
        let mut all = Correlations::of(ots.sending, ots.receiving);
        let ots = all.split_last(channel.role(), demand.circuits.len())?;
        channel.enter(Phase::Preprocess, None);
        let circuits = prepare(channel, &demand.circuits, ots, &mut self.rng)?;
        Ok(all.with_circuits(circuits))
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

/// The pads of `jobs` that this party sends.
fn send(
    channel: &mut Channel,
    source: &mut CotSender,
    jobs: &[Job],
    when: When,
) -> Result<Pads<FillingSender>> {
    if when == When::Later && source.is_silent(cots(jobs)) {
        return fill_sender_later(channel, source, jobs).map(Pads::Later);
    }
    fill_sender(channel, source, jobs).map(Pads::from)
}

/// The pads of `jobs` that this party receives.
fn receive(
    channel: &mut Channel,
    source: &mut CotReceiver,
    jobs: &[Job],
    when: When,
) -> Result<Pads<FillingReceiver>> {
    if when == When::Later && source.is_silent(cots(jobs)) {
        return fill_receiver_later(channel, source, jobs).map(Pads::Later);
    }
    fill_receiver(channel, source, jobs).map(Pads::from)
}

/// Correlations behind `jobs`.
pub(super) fn cots(jobs: &[Job]) -> usize {
    jobs.iter().map(Job::cots).sum()
}

/// All OTs that `sender` sends; those behind garbled circuits come last.
pub(super) fn jobs(demand: &Demand, sender: Role) -> Vec<Job> {
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
