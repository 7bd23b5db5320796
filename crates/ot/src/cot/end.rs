//! What both ends of a direction do alike: announce a need, extend as the schedule says,
//! and hand correlations out.
#![allow(private_bounds, reason = "there are two sides, and both are in this crate")]

use std::collections::VecDeque;
use std::fmt;

use wire::{Channel, Error, Result, Role};

use super::ferret;
use super::ferret::params::Set;
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
    pool: S::Batch,
}

/// What the sender and the receiver do differently.
pub(crate) trait Side {
    /// The name of the end in debugging output.
    const NAME: &str;
    /// The SoftSpoken trees of the setup.
    type Trees;
    /// A Ferret refill that still has trees to grow.
    type Refill;
    /// Correlations in order.
    type Batch: Pool;

    /// Makes `128 * grains` correlations with SoftSpoken, at the end of `pool`.
    fn soft(
        trees: &mut Self::Trees,
        ch: &mut Channel,
        grains: usize,
        pool: &mut Self::Batch,
    ) -> Result<()>;

    /// Starts refill `number` of the direction from its base correlations.
    fn start(domain: &Domain, number: u64, set: Set, base: &Self::Batch) -> Self::Refill;

    /// Grows the trees of some messages of a refill, given as numbers of trees, at the end
    /// of `pool`.
    fn grow(
        refill: &mut Self::Refill,
        ch: &mut Channel,
        threads: usize,
        set: Set,
        messages: &[usize],
        pool: &mut Self::Batch,
    ) -> Result<()>;

    /// Whether all trees of a refill have been grown.
    fn is_spent(refill: &Self::Refill) -> bool;
}

/// A batch as a queue.
pub(crate) trait Pool {
    /// Number of correlations.
    fn len(&self) -> usize;
    /// Makes room for `count` more.
    fn make_room(&mut self, count: usize);
    /// The position of the first correlation in the session's stream.
    fn first(&self) -> u64;
    /// Takes the first `count` out.
    fn split_off(&mut self, count: usize) -> Self;
}

impl<S: Side> End<S> {
    pub(crate) fn new(
        domain: Domain,
        sourcing: Sourcing,
        cot_sender: Role,
        trees: S::Trees,
        pool: S::Batch,
    ) -> Self {
        let schedule = Schedule::new(sourcing, cot_sender);
        Self { domain, schedule, threads: 1, trees, started: 0, refills: VecDeque::new(), pool }
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
        if u32::try_from(count).is_err() {
            return Err(Error::internal(format!("{count} correlations at once")));
        }
        for step in self.schedule.steps(count) {
            match step {
                Step::Soft(count) => self.soft(ch, count)?,
                Step::Start(set) => self.start(set),
                Step::Grow(set, trees) => self.grow(ch, set, trees)?,
            }
        }
        Ok(())
    }

    /// Returns the correlations made and not taken.
    pub fn available(&self) -> usize {
        self.pool.len()
    }

    /// Takes the next `count` correlations; an error when fewer are available.
    pub(crate) fn split_off(&mut self, count: usize) -> Result<S::Batch> {
        let available = self.available();
        if count > available {
            return Err(Error::internal(format!("{count} correlations, {available} available")));
        }
        self.schedule.take(count);
        if audit::is_on() {
            let places = [self.pool.first(), count as u64].map(u64::to_le_bytes);
            audit::correlations(&self.domain.digest(b"consumed", &[&places[0], &places[1]]));
        }
        Ok(self.pool.split_off(count))
    }

    /// Makes the first 128 correlations and takes them, outside of the schedule.
    pub(super) fn make_grain(&mut self, ch: &mut Channel) -> Result<S::Batch> {
        self.soft(ch, softspoken::GRAIN)?;
        Ok(self.pool.split_off(softspoken::GRAIN))
    }

    fn soft(&mut self, ch: &mut Channel, count: usize) -> Result<()> {
        // A message makes more than it leaves.
        self.pool.make_room(count + softspoken::GRAIN);
        softspoken::messages(count)
            .try_for_each(|grains| S::soft(&mut self.trees, ch, grains, &mut self.pool))
    }

    fn start(&mut self, set: Set) {
        let base = self.pool.split_off(set.base());
        self.refills.push_back(S::start(&self.domain, self.started, set, &base));
        self.started += 1;
    }

    fn grow(&mut self, ch: &mut Channel, set: Set, trees: usize) -> Result<()> {
        let Some(refill) = self.refills.front_mut() else { return Ok(()) };
        self.pool.make_room(trees << set.depth);
        let messages: Vec<usize> = ferret::messages(set, trees).collect();
        for messages in messages.chunks(self.threads) {
            S::grow(refill, ch, self.threads, set, messages, &mut self.pool)?;
        }
        if S::is_spent(refill) {
            self.refills.pop_front();
        }
        Ok(())
    }
}

impl<S: Side> fmt::Debug for End<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(<{} correlations>)", S::NAME, self.available())
    }
}
