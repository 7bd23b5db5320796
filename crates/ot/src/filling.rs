//! Pads that are made when they are needed, or before, where a party has to wait for the other.
//!
//! The messages of Ferret are a hundred times smaller than the correlations that follow from them. A party exchanges
//! the messages at once and makes the correlations and their pads job by job: while it waits for the other party
//! ([`Channel::meanwhile`]), and at the latest when a job is taken. What is sent does not depend on when that is.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use wire::{Channel, Error, Meanwhile, Result};

use crate::cot::ferret::Corrections;
use crate::cot::{CotReceiver, CotSender, End, Line, ReceiverSide, SenderSide};
use crate::job::Job;
use crate::rot::{Filler, Fills, Heard, Making, Pads, Piece, ReceiverPads, SenderPads, add};

pub use self::both::fill_both;

mod both;

/// Pads made at a time, at most, so that a party that waits soon sees what arrives.
const PADS: usize = 1 << 15;

/// Pads of OTs that this party sends, which are made until they are taken.
pub type FillingSender = Filling<SenderSide>;
/// Pads of OTs that this party receives, which are made until they are taken.
pub type FillingReceiver = Filling<ReceiverSide>;

/// Pads of some jobs, in order.
#[allow(private_bounds, reason = "there are two sides, and both are in this crate")]
pub struct Filling<S: Fills>(Mutex<State<S>>);

/// Pads that are made until they are taken.
pub trait Filled {
    /// The pads of one job.
    type Pads;

    /// Returns the number of jobs that are not taken.
    fn left(&self) -> usize;

    /// Takes the pads of the next jobs, and makes those that are not there.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other jobs, [`Error::Peer`] when what the peer said of their correlations is wrong.
    fn next(&self, jobs: &[Job]) -> Result<Vec<Self::Pads>>;

    /// Takes the pads of the last `count` jobs, and makes those that are not there.
    ///
    /// # Errors
    /// [`Error::Internal`] when there are fewer, [`Error::Peer`] when what the peer said of their correlations is
    /// wrong.
    fn last(&self, count: usize) -> Result<Vec<Self::Pads>>;

    /// Returns the job that pads were made for.
    fn job(pads: &Self::Pads) -> Job;
}

impl Filled for FillingSender {
    type Pads = SenderPads;

    fn left(&self) -> usize {
        self.state().heard.jobs.len()
    }

    fn next(&self, jobs: &[Job]) -> Result<Vec<SenderPads>> {
        self.take(jobs)
    }

    fn last(&self, count: usize) -> Result<Vec<SenderPads>> {
        self.take_last(count)
    }

    fn job(pads: &SenderPads) -> Job {
        pads.job()
    }
}

impl Filled for FillingReceiver {
    type Pads = ReceiverPads;

    fn left(&self) -> usize {
        self.state().heard.jobs.len()
    }

    fn next(&self, jobs: &[Job]) -> Result<Vec<ReceiverPads>> {
        self.take(jobs)
    }

    fn last(&self, count: usize) -> Result<Vec<ReceiverPads>> {
        self.take_last(count)
    }

    fn job(pads: &ReceiverPads) -> Job {
        pads.job()
    }
}

struct State<S: Fills> {
    /// The pads that have not been taken, made or not.
    heard: Heard<S>,
    /// Why no more can be made.
    failed: Option<Error>,
}

#[allow(private_bounds, reason = "there are two sides, and both are in this crate")]
impl<S: Fills> Filling<S> {
    /// Exchanges all messages for `jobs`; the peer does the same, or [fills](crate::rot::fill_sender) at once.
    fn exchange(line: &mut Line<'_>, source: &mut End<S>, jobs: &[Job]) -> Result<Arc<Self>> {
        Filler::new(source, jobs)?.later(line, PADS).map(Self::of)
    }

    /// The pads of all jobs of `heard`.
    fn of(heard: Heard<S>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { heard, failed: None })))
    }

    fn take(&self, jobs: &[Job]) -> Result<Vec<Pads<S>>> {
        let mut state = self.state();
        if !state.heard.jobs.iter().take(jobs.len()).eq(jobs) {
            return Err(Error::misuse("a step needs other OTs than were prepared"));
        }
        while state.heard.made.len() < jobs.len() {
            if !state.step()? {
                return Err(Error::internal("fewer pads than jobs"));
            }
        }
        state.heard.jobs.drain(..jobs.len());
        Ok(state.heard.made.drain(..jobs.len()).collect())
    }

    fn take_last(&self, count: usize) -> Result<Vec<Pads<S>>> {
        let mut state = self.state();
        let kept = state.heard.jobs.len().checked_sub(count);
        let kept = kept.ok_or_else(|| Error::internal("fewer jobs than are taken"))?;
        state.heard.jobs.truncate(kept);
        let Some(first) = state.heard.waiting.len().checked_sub(count) else {
            while state.step()? {}
            return Ok(state.heard.made.split_off(kept).into());
        };
        let (threads, waiting) = (state.heard.threads, state.heard.waiting.split_off(first));
        let make = |(job, pieces): (Job, VecDeque<Piece<S>>)| {
            let mut making = S::Making::begin(job);
            for (count, taken) in pieces {
                add::<S>(&mut making, (count, taken), threads)?;
            }
            Ok(making.finish())
        };
        waiting.into_iter().map(make).collect()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Fills> Meanwhile for Filling<S> {
    fn work(&self) -> bool {
        // An error comes again when the pads are taken.
        self.state().step().unwrap_or(false)
    }
}

impl<S: Fills> State<S> {
    /// Makes the pads of the next piece; returns whether there was one.
    fn step(&mut self) -> Result<bool> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let done = self.next();
        self.failed = done.clone().err();
        done
    }

    fn next(&mut self) -> Result<bool> {
        let (mut making, mut pieces) = match self.heard.making.take() {
            Some(making) => making,
            None => match self.heard.waiting.pop_front() {
                Some((job, pieces)) => (S::Making::begin(job), pieces),
                None => return Ok(false),
            },
        };
        if let Some((count, taken)) = pieces.pop_front() {
            add::<S>(&mut making, (count, taken), self.heard.threads)?;
        }
        if pieces.is_empty() {
            self.heard.made.push_back(making.finish());
        } else {
            self.heard.making = Some((making, pieces));
        }
        Ok(true)
    }
}

/// Exchanges the messages of `jobs` that this party sends, to make their pads later. The peer decides for itself
/// when it makes its own.
///
/// # Errors
/// As [`fill_sender`](crate::rot::fill_sender).
pub fn fill_sender_later(
    channel: &mut Channel,
    source: &mut CotSender,
    jobs: &[Job],
) -> Result<Arc<FillingSender>> {
    Filling::exchange(&mut Line::Open(channel), source, jobs)
}

/// What this party says of OTs, all of it ready to be sent.
pub struct Unsent(Vec<Corrections>);

impl Unsent {
    /// Sends it.
    ///
    /// # Errors
    /// [`Error::Transport`] when the peer is gone.
    pub fn send(self, channel: &mut Channel) -> Result<()> {
        self.0.iter().try_for_each(|message| channel.send(message))
    }
}

/// Finds the messages of `jobs` that this party sends without sending them yet, so that both parties can find
/// theirs at the same time. The peer does as for [`fill_sender_later`].
///
/// # Errors
/// [`Error::Internal`] unless the sender says all of them ([`is_one_way`](crate::rot::is_one_way)).
pub fn fill_sender_unsent(
    source: &mut CotSender,
    jobs: &[Job],
) -> Result<(Arc<FillingSender>, Unsent)> {
    let mut messages = Vec::new();
    let filling = Filling::exchange(&mut Line::Held(&mut messages), source, jobs)?;
    Ok((filling, Unsent(messages)))
}

/// Exchanges the messages of `jobs` that this party receives, as [`fill_sender_later`].
///
/// # Errors
/// As [`fill_receiver`](crate::rot::fill_receiver).
pub fn fill_receiver_later(
    channel: &mut Channel,
    source: &mut CotReceiver,
    jobs: &[Job],
) -> Result<Arc<FillingReceiver>> {
    Filling::exchange(&mut Line::Open(channel), source, jobs)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
