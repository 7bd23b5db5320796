//! Pads of several jobs, made with their messages, or made of them later.

use std::collections::VecDeque;

use wire::{Channel, Result};

use super::making::{GROUP, Making, Receiving, Sending};
use super::pieces::{PIECE, ask};
use crate::cot::{End, Line, ReceiverSide, SenderSide, Side, Taken, When};
use crate::job::Job;

/// A side whose correlations become pads.
pub(crate) trait Fills: Side {
    /// Pads of a job on the way.
    type Making: Making<Self::Batch>;
}

impl Fills for SenderSide {
    type Making = Sending;
}

impl Fills for ReceiverSide {
    type Making = Receiving;
}

/// The pads of one job.
pub(crate) type Pads<S> = <<S as Fills>::Making as Making<<S as Side>::Batch>>::Pads;

/// Some elements of a job, and their correlations.
pub(crate) type Piece<S> = (usize, Taken<S>);

/// Pads of jobs whose messages have been exchanged.
pub(crate) struct Heard<S: Fills> {
    /// Threads that make them.
    pub(crate) threads: usize,
    /// Jobs that are not begun.
    pub(crate) waiting: VecDeque<(Job, VecDeque<Piece<S>>)>,
    /// The job that is begun.
    pub(crate) making: Option<(S::Making, VecDeque<Piece<S>>)>,
    /// The pads of the jobs before it.
    pub(crate) made: VecDeque<Pads<S>>,
    /// All jobs.
    pub(crate) jobs: VecDeque<Job>,
}

/// Makes the pads of the next elements of a job, as many at a time as have their correlations together, so that few
/// correlations are copied.
///
/// # Errors
/// [`wire::Error::Peer`] when what the peer said of the correlations is wrong.
pub(crate) fn add<S: Fills>(
    making: &mut S::Making,
    (mut missing, mut taken): Piece<S>,
    threads: usize,
) -> Result<()> {
    while missing > 0 {
        let (now, each) = (taken.together(missing, GROUP), taken.len() / missing);
        making.add(taken.split_off(now * each).make(threads)?, now);
        missing -= now;
    }
    Ok(())
}

/// Makes the pads of jobs in order, some elements at a time.
pub(crate) struct Filler<'a, S: Fills> {
    source: &'a mut End<S>,
    all: VecDeque<Job>,
    /// Jobs that are not done.
    jobs: VecDeque<Job>,
    /// Pads of the first of them, and the elements that are missing.
    making: Option<(S::Making, usize)>,
    made: VecDeque<Pads<S>>,
    /// Correlations still to be taken, and those taken.
    left: usize,
    taken: usize,
}

impl<'a, S: Fills> Filler<'a, S> {
    /// Announces the correlations of `jobs`.
    pub(crate) fn new(source: &'a mut End<S>, jobs: &[Job]) -> Result<Self> {
        jobs.iter().try_for_each(Job::check)?;
        let left = jobs.iter().map(Job::cots).sum();
        source.reserve(left);
        let jobs: VecDeque<Job> = jobs.iter().copied().collect();
        let (all, made) = (jobs.clone(), VecDeque::with_capacity(jobs.len()));
        Ok(Self { source, all, jobs, making: None, made, left, taken: 0 })
    }

    /// The pads of all jobs.
    pub(crate) fn all(mut self, channel: &mut Channel) -> Result<Vec<Pads<S>>> {
        while self.step(channel)? {}
        Ok(self.made.into())
    }

    /// Exchanges all messages that are missing; the pads that are missing are made until they are taken, at most so
    /// many at a time.
    pub(crate) fn later(mut self, line: &mut Line<'_>, pads: usize) -> Result<Heard<S>> {
        let mut making = None;
        if let Some((begun, missing)) = self.making.take()
            && let Some(job) = self.jobs.pop_front()
        {
            making = Some((begun, self.exchange(line, &job, missing, pads)?));
        }
        let mut waiting = VecDeque::with_capacity(self.jobs.len());
        for job in std::mem::take(&mut self.jobs) {
            waiting.push_back((job, self.exchange(line, &job, job.count, pads)?));
        }
        let (threads, jobs, made) = (self.source.threads(), self.all, self.made);
        Ok(Heard { threads, waiting, making, made, jobs })
    }

    /// Exchanges what is missing for the next of `missing` elements of a job, and returns how many they are.
    fn admit(
        &mut self,
        line: &mut Line<'_>,
        job: &Job,
        missing: usize,
        when: When,
    ) -> Result<usize> {
        let (piece, width) = (missing.min(PIECE), job.choice_bits as usize);
        if self.source.available() < piece * width {
            self.source.exchange(line, ask(self.left), when)?;
        }
        self.left -= piece * width;
        self.taken += piece * width;
        Ok(piece)
    }

    /// Exchanges what is missing for the last elements of a job, and takes their correlations without making them.
    fn exchange(
        &mut self,
        line: &mut Line<'_>,
        job: &Job,
        missing: usize,
        pads: usize,
    ) -> Result<VecDeque<Piece<S>>> {
        let (mut some, mut missing) = (VecDeque::new(), missing);
        while missing > 0 {
            let count = self.admit(line, job, missing, When::Later)?;
            let width = job.choice_bits as usize;
            let mut taken = self.source.split_later(count * width)?;
            let most = (pads >> width).max(1);
            for done in (0..count).step_by(most) {
                let now = most.min(count - done);
                some.push_back((now, taken.split_off(now * width)));
            }
            missing -= count;
        }
        Ok(some)
    }

    /// Correlations that have been taken.
    pub(crate) const fn taken(&self) -> usize {
        self.taken
    }

    /// Correlations that are still to be taken.
    pub(crate) const fn left(&self) -> usize {
        self.left
    }

    /// Whether there is more to do.
    pub(crate) fn is_left(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Makes the pads of the next elements, and extends the source as needed; returns whether there were any.
    pub(crate) fn step(&mut self, channel: &mut Channel) -> Result<bool> {
        let Some(job) = self.jobs.front().copied() else { return Ok(false) };
        let begun = self.making.take();
        let (mut making, missing) = begun.unwrap_or_else(|| (S::Making::begin(job), job.count));
        let now = match missing {
            0 => 0,
            _ => self.admit(&mut Line::Open(channel), &job, missing, When::Now)?,
        };
        if now > 0 {
            let taken = self.source.split_later(now * job.choice_bits as usize)?;
            add::<S>(&mut making, (now, taken), self.source.threads())?;
        }
        if now == missing {
            self.made.push_back(making.finish());
            self.jobs.pop_front();
        } else {
            self.making = Some((making, missing - now));
        }
        Ok(true)
    }
}
