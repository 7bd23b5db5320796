//! What both ends of a direction do alike: announce a need, extend as the schedule says,
//! and hand correlations out.
#![allow(private_bounds, reason = "there are two sides, and both are in this crate")]

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use wire::{Channel, Error, Result, Role};

use super::ferret::params::Set;
use super::ferret::{self, Corrections};
use super::queue::{Chunk, Made, Queue};
use super::schedule::{Schedule, Sourcing, Step};
use super::softspoken;
use crate::audit;
use crate::session::Domain;

/// One end of a direction that is set up. The side is that of
/// [`CotSender`](super::CotSender) or of [`CotReceiver`](super::CotReceiver).
pub struct End<S: Side> {
    domain: Domain,
    schedule: Schedule,
    threads: usize,
    trees: S::Trees,
    started: u64,
    refills: VecDeque<S::Refill>,
    /// The keys of all correlations, and none of them.
    keys: Arc<S::Batch>,
    pool: Queue<S>,
}

/// Correlations that were taken and are perhaps still to be made.
pub(crate) struct Taken<S: Side> {
    keys: Arc<S::Batch>,
    queue: Queue<S>,
}

/// When correlations are made that follow from messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// With the message.
    Now,
    /// When they are used, or before where somebody has the time.
    Later,
}

/// Where messages of Ferret go.
pub(crate) enum Line<'a> {
    /// To the peer, or from it.
    Open(&'a mut Channel),
    /// Into a list, to be sent later.
    Held(&'a mut Vec<Corrections>),
}

impl Line<'_> {
    /// The channel.
    ///
    /// # Errors
    /// [`Error::Internal`] where messages are held.
    pub(crate) fn channel(&mut self) -> Result<&mut Channel> {
        match self {
            Self::Open(channel) => Ok(channel),
            Self::Held(_) => {
                Err(Error::internal("correlations that take a message of both parties"))
            }
        }
    }

    /// Sends `message`, or holds it.
    pub(crate) fn send(&mut self, message: Corrections) -> Result<()> {
        match self {
            Self::Open(channel) => channel.send(&message),
            Self::Held(all) => {
                all.push(message);
                Ok(())
            }
        }
    }
}

/// What the sender and the receiver do differently.
pub(crate) trait Side: Sized + 'static {
    /// The name of the end in debugging output.
    const NAME: &str;
    /// The SoftSpoken trees of the setup.
    type Trees;
    /// A Ferret refill that still has trees to grow.
    type Refill;
    /// Secrets of correlations.
    type Made: Made;
    /// Trees of a refill whose messages have been exchanged.
    type Later: Send;
    /// Correlations in order.
    type Batch: Send + Sync;

    /// Exchanges the message for `128 * grains` correlations of SoftSpoken.
    fn soft(
        trees: &mut Self::Trees,
        ch: &mut Channel,
        grains: usize,
        when: When,
    ) -> Result<Chunk<Self>>;

    /// Starts refill `number` of the direction from its base correlations.
    fn start(domain: &Domain, number: u64, set: Set, base: &Self::Batch) -> Self::Refill;

    /// Exchanges some messages of a refill, given as numbers of trees.
    fn grow(
        refill: &mut Self::Refill,
        line: &mut Line<'_>,
        threads: usize,
        messages: &[usize],
        when: When,
    ) -> Result<Chunk<Self>>;

    /// Makes the `count` correlations of some trees.
    fn make(later: &Self::Later, count: usize, threads: usize) -> Result<Self::Made>;

    /// Whether all trees of a refill have been grown.
    fn is_spent(refill: &Self::Refill) -> bool;

    /// Correlations from position `first` on, under the keys of `like`.
    fn batch(like: &Self::Batch, first: u64, made: Self::Made) -> Self::Batch;
}

impl<S: Side> End<S> {
    pub(crate) fn new(
        domain: Domain,
        sourcing: Sourcing,
        cot_sender: Role,
        trees: S::Trees,
        keys: S::Batch,
    ) -> Self {
        let schedule = Schedule::new(sourcing, cot_sender);
        let (refills, keys, pool) = (VecDeque::new(), Arc::new(keys), Queue::new(0));
        Self { domain, schedule, threads: 1, trees, started: 0, refills, keys, pool }
    }

    /// Lets extensions use so many threads; 1 at first.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads.max(1);
    }

    /// Announces that `count` more correlations will be asked for, so that the fitting
    /// sources are used; the peer must announce the same. Nothing is sent.
    pub fn reserve(&mut self, count: usize) {
        self.schedule.reserve(count);
    }

    /// Makes sure that `count` correlations can be taken; the peer's end is extended by the
    /// same `count` at the same time. Does nothing when enough are left.
    ///
    /// # Errors
    /// [`Error::Internal`] from 2^32 on, [`Error::Peer`], [`Error::Transport`].
    pub fn extend(&mut self, ch: &mut Channel, count: usize) -> Result<()> {
        self.exchange(&mut Line::Open(ch), count, When::Now)
    }

    /// Exchanges what [`End::extend`] exchanges.
    pub(crate) fn exchange(&mut self, line: &mut Line<'_>, count: usize, when: When) -> Result<()> {
        if u32::try_from(count).is_err() {
            return Err(Error::internal(format!("{count} correlations at once")));
        }
        for step in self.schedule.steps(count) {
            match step {
                Step::Soft(count) => self.soft(line.channel()?, count, when)?,
                Step::Start(set) => self.start(set)?,
                Step::Grow(set, trees) => self.grow(line, set, trees, when)?,
            }
        }
        Ok(())
    }

    /// Returns the correlations made and not taken.
    pub fn available(&self) -> usize {
        self.pool.len()
    }

    /// Returns whether the next `count` correlations take messages that are a hundred times smaller than
    /// they are ([`Schedule::is_silent`]).
    pub fn is_silent(&self, count: usize) -> bool {
        self.schedule.is_silent(count)
    }

    /// Returns what the next correlations are made by.
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Takes the next `count` correlations; an error when fewer are available.
    pub(crate) fn split_off(&mut self, count: usize) -> Result<S::Batch> {
        self.split_later(count)?.make(self.threads)
    }

    /// Takes the next `count` correlations without making them; an error when fewer are available.
    pub(crate) fn split_later(&mut self, count: usize) -> Result<Taken<S>> {
        let available = self.available();
        if count > available {
            return Err(Error::internal(format!("{count} correlations, {available} available")));
        }
        self.schedule.take(count);
        if audit::is_on() {
            let places = [self.pool.first(), count as u64].map(u64::to_le_bytes);
            audit::correlations(&self.domain.digest(b"consumed", &[&places[0], &places[1]]));
        }
        Ok(self.take_off(count))
    }

    fn take_off(&mut self, count: usize) -> Taken<S> {
        Taken { keys: Arc::clone(&self.keys), queue: self.pool.split_off(count) }
    }

    /// Makes the first 128 correlations and takes them, outside of the schedule.
    pub(super) fn make_grain(&mut self, ch: &mut Channel) -> Result<S::Batch> {
        self.soft(ch, softspoken::GRAIN, When::Now)?;
        self.take_off(softspoken::GRAIN).make(self.threads)
    }

    /// Threads that extensions use.
    pub(crate) const fn threads(&self) -> usize {
        self.threads
    }

    fn soft(&mut self, ch: &mut Channel, count: usize, when: When) -> Result<()> {
        for grains in softspoken::messages(count) {
            self.pool.push(S::soft(&mut self.trees, ch, grains, when)?);
        }
        Ok(())
    }

    fn start(&mut self, set: Set) -> Result<()> {
        let base = self.take_off(set.base()).make(self.threads)?;
        self.refills.push_back(S::start(&self.domain, self.started, set, &base));
        self.started += 1;
        Ok(())
    }

    fn grow(&mut self, line: &mut Line<'_>, set: Set, trees: usize, when: When) -> Result<()> {
        let Some(refill) = self.refills.front_mut() else { return Ok(()) };
        let messages: Vec<usize> = ferret::messages(set, trees).collect();
        for messages in messages.chunks(self.threads) {
            self.pool.push(S::grow(refill, line, self.threads, messages, when)?);
        }
        if S::is_spent(refill) {
            self.refills.pop_front();
        }
        Ok(())
    }
}

impl<S: Side> Taken<S> {
    /// Takes the first `count` out, or all when there are fewer.
    pub(crate) fn split_off(&mut self, count: usize) -> Self {
        Self { keys: Arc::clone(&self.keys), queue: self.queue.split_off(count) }
    }

    /// Number of correlations.
    pub(crate) const fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns how many of `elements`, which take all correlations, come next with their correlations together in
    /// memory: all that are left or a multiple of `unit`, and `unit` where a chunk ends within these.
    pub(crate) fn together(&self, elements: usize, unit: usize) -> usize {
        let width = (self.len() / elements.max(1)).max(1);
        match self.queue.together() / width {
            there if there >= elements => elements,
            there => (there / unit * unit).max(unit).min(elements),
        }
    }

    /// The correlations, of which those that are not there are made now.
    ///
    /// # Errors
    /// [`Error::Peer`] when what the peer said of them is wrong.
    pub(crate) fn make(self, threads: usize) -> Result<S::Batch> {
        let first = self.queue.first();
        Ok(S::batch(&self.keys, first, self.queue.make(threads)?))
    }
}

impl<S: Side> fmt::Debug for End<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(<{} correlations>)", S::NAME, self.available())
    }
}
