//! Pads that are made when they are needed, or before, where a party has to wait for the other.
//!
//! Of Ferret's correlations the messages are a hundred times smaller than what follows from them. A party exchanges
//! them at once and makes the correlations and their pads job by job: while it waits for the other party
//! ([`Channel::meanwhile`]), and at the latest when a job is taken. What is sent is the same.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use wire::{Channel, Error, Meanwhile, Result};

use crate::cot::ferret::Corrections;
use crate::cot::{CotReceiver, CotSender, End, Line, ReceiverSide, SenderSide, Side, Taken, When};
use crate::job::Job;
use crate::rot::{Making, ReceiverPads, Receiving, SenderPads, Sending, ask, pieces};

/// Pads made at a time, at most, so that a party that waits soon sees what arrives.
const PADS: usize = 1 << 15;
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
type Pads<S> = <<S as Fills>::Making as Making<<S as Side>::Batch>>::Pads;

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
        self.state().jobs.len()
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
        self.state().jobs.len()
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

/// Some elements of a job, and their correlations.
type Piece<S> = (usize, Taken<S>);

struct State<S: Fills> {
    threads: usize,
    /// Jobs that are not begun.
    waiting: VecDeque<(Job, VecDeque<Piece<S>>)>,
    /// The job that is begun.
    making: Option<(S::Making, VecDeque<Piece<S>>)>,
    made: VecDeque<Pads<S>>,
    /// Why no more can be made.
    failed: Option<Error>,
    /// Jobs that are not taken.
    jobs: VecDeque<Job>,
}

#[allow(private_bounds, reason = "there are two sides, and both are in this crate")]
impl<S: Fills> Filling<S> {
    /// Exchanges all messages for `jobs`; the peer does the same, or [fills](crate::rot::fill_sender) at once.
    fn exchange(line: &mut Line<'_>, source: &mut End<S>, jobs: &[Job]) -> Result<Arc<Self>> {
        jobs.iter().try_for_each(Job::check)?;
        let mut left: usize = jobs.iter().map(Job::cots).sum();
        source.reserve(left);
        let mut waiting = VecDeque::with_capacity(jobs.len());
        for job in jobs {
            let mut some = VecDeque::new();
            for piece in pieces(job) {
                let count = piece * job.choice_bits as usize;
                if source.available() < count {
                    source.exchange(line, ask(left), When::Later)?;
                }
                left -= count;
                let mut taken = source.split_later(count)?;
                let most = (PADS >> job.choice_bits).max(1);
                for done in (0..piece).step_by(most) {
                    let now = most.min(piece - done);
                    some.push_back((now, taken.split_off(now * job.choice_bits as usize)));
                }
            }
            waiting.push_back((*job, some));
        }
        let (threads, jobs) = (source.threads(), jobs.iter().copied().collect());
        let (making, made, failed) = (None, VecDeque::new(), None);
        let state = State { threads, waiting, making, made, failed, jobs };
        Ok(Arc::new(Self(Mutex::new(state))))
    }

    fn take(&self, jobs: &[Job]) -> Result<Vec<Pads<S>>> {
        let mut state = self.state();
        if !state.jobs.iter().take(jobs.len()).eq(jobs) {
            return Err(Error::misuse("a step needs other OTs than were prepared"));
        }
        while state.made.len() < jobs.len() {
            if !state.step()? {
                return Err(Error::internal("fewer pads than jobs"));
            }
        }
        state.jobs.drain(..jobs.len());
        Ok(state.made.drain(..jobs.len()).collect())
    }

    fn take_last(&self, count: usize) -> Result<Vec<Pads<S>>> {
        let mut state = self.state();
        let kept = state.jobs.len().checked_sub(count);
        let kept = kept.ok_or_else(|| Error::internal("fewer jobs than are taken"))?;
        state.jobs.truncate(kept);
        let Some(first) = state.waiting.len().checked_sub(count) else {
            while state.step()? {}
            return Ok(state.made.split_off(kept).into());
        };
        let (threads, waiting) = (state.threads, state.waiting.split_off(first));
        let make = |(job, pieces): (Job, VecDeque<Piece<S>>)| {
            let mut making = S::Making::begin(job);
            for (count, taken) in pieces {
                making.add(taken.make(threads)?, count);
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
        let (mut making, mut pieces) = match self.making.take() {
            Some(making) => making,
            None => match self.waiting.pop_front() {
                Some((job, pieces)) => (S::Making::begin(job), pieces),
                None => return Ok(false),
            },
        };
        if let Some((count, taken)) = pieces.pop_front() {
            making.add(taken.make(self.threads)?, count);
        }
        if pieces.is_empty() {
            self.made.push_back(making.finish());
        } else {
            self.making = Some((making, pieces));
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
/// [`Error::Internal`] unless the sender says all of them ([`End::is_one_way`]).
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
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use ring::{Bits, Random};
    use wire::testing::{Outcome, Tamper, run_pair, run_tampered};
    use wire::{Packed, Role, Segment, tags};

    use super::*;
    use crate::job::Entry;
    use crate::rot::{Column, fill_receiver, fill_sender};
    use crate::{SessionId, Source};

    const SESSION: SessionId = SessionId([0x3c; 32]);
    const PING: Segment = Segment { count: 1 << 16, bits: 1 };

    type Ping = Packed<{ tags::FERRET_CORRECTIONS }>;

    fn jobs() -> [Job; 4] {
        [
            Job { count: 30_001, choice_bits: 4, entry: Entry::Bits(9) },
            Job { count: 9_000, choice_bits: 1, entry: Entry::Pair(7, 40) },
            Job { count: 0, choice_bits: 1, entry: Entry::Word(7) },
            Job { count: 70, choice_bits: 8, entry: Entry::Bits(1) },
        ]
    }

    /// Whether the client and the server have done what there was to do.
    type Done = [Arc<AtomicBool>; 2];

    /// When the pads are made, and where the client's messages wait.
    #[derive(Clone, Copy, PartialEq)]
    enum How {
        Now,
        Later,
        Unsent,
    }

    /// Work that says when it is done.
    struct Watched<S: Fills>(Arc<Filling<S>>, Arc<AtomicBool>);

    impl<S: Fills> Meanwhile for Watched<S> {
        fn work(&self) -> bool {
            let more = self.0.work();
            self.1.fetch_or(!more, Ordering::SeqCst);
            more
        }
    }

    /// Lets each party wait for the other until its own work is done.
    fn wait(ch: &mut Channel, [ours, theirs]: [&AtomicBool; 2]) {
        let first = ch.role() == Role::Client;
        for turn in [first, !first] {
            if turn {
                while !theirs.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                ch.send(&Ping::one(vec![1; PING.count], 1)).unwrap();
            } else {
                let _: Ping = ch.receive(&vec![PING]).unwrap();
                assert!(ours.load(Ordering::SeqCst));
            }
        }
    }

    /// Takes a job, waits, and takes the last job before those between.
    fn taken<S: Fills>(
        ch: &mut Channel,
        filling: &Arc<Filling<S>>,
        [ours, theirs]: &Done,
    ) -> Vec<Pads<S>> {
        let jobs = jobs();
        let mut all = filling.take(&jobs[..1]).unwrap();
        assert!(filling.take(&jobs[..1]).is_err(), "another job comes next");
        let work: Arc<dyn Meanwhile> = Arc::new(Watched(Arc::clone(filling), Arc::clone(ours)));
        let last = filling.take_last(1).unwrap();
        ch.meanwhile([Arc::downgrade(&work)].into());
        wait(ch, [ours, theirs]);
        assert_eq!(filling.state().waiting.len(), 0, "all was made while the party waited");
        all.extend(filling.take(&jobs[1..3]).unwrap());
        all.extend(last);
        assert!(filling.take(&jobs[..1]).is_err(), "none is left");
        all
    }

    fn sender(ch: &mut Channel, how: How, [theirs, ours]: &Done) -> Vec<Vec<Column>> {
        let mut cots =
            CotSender::setup(ch, &mut Random::seeded(10), &SESSION, Source::Ferret).unwrap();
        let pads = match how {
            How::Now => {
                let pads = fill_sender(ch, &mut cots, &jobs()).unwrap();
                ours.store(true, Ordering::SeqCst);
                wait(ch, [ours, theirs]);
                pads
            }
            How::Later => {
                let filling = fill_sender_later(ch, &mut cots, &jobs()).unwrap();
                taken(ch, &filling, &[Arc::clone(ours), Arc::clone(theirs)])
            }
            How::Unsent => {
                // The base takes messages of both parties.
                let all = jobs().iter().map(Job::cots).sum();
                assert!(!cots.is_one_way(all));
                assert!(fill_sender_unsent(&mut cots, &jobs()).is_err());
                Vec::new()
            }
        };
        pads.into_iter().map(SenderPads::into_columns).collect()
    }

    fn receiver(ch: &mut Channel, how: How, [ours, theirs]: &Done) -> Vec<(Vec<Bits>, Column)> {
        let mut cots =
            CotReceiver::setup(ch, &mut Random::seeded(20), &SESSION, Source::Ferret).unwrap();
        let pads = match how {
            How::Now => {
                let pads = fill_receiver(ch, &mut cots, &jobs()).unwrap();
                ours.store(true, Ordering::SeqCst);
                wait(ch, [ours, theirs]);
                pads
            }
            How::Later => {
                let filling = fill_receiver_later(ch, &mut cots, &jobs()).unwrap();
                taken(ch, &filling, &[Arc::clone(ours), Arc::clone(theirs)])
            }
            How::Unsent => Vec::new(),
        };
        pads.into_iter().map(ReceiverPads::into_parts).collect()
    }

    type Run = (Outcome<Vec<(Vec<Bits>, Column)>>, Outcome<Vec<Vec<Column>>>);

    fn run(client: How, server: How) -> Run {
        let done = Done::default();
        run_pair(|ch| receiver(ch, client, &done), |ch| sender(ch, server, &done))
    }

    #[test]
    fn pads_made_later_are_those_made_at_once() {
        let (client, server) = run(How::Now, How::Now);
        for (ours, theirs) in
            [(How::Later, How::Now), (How::Now, How::Later), (How::Later, How::Later)]
        {
            let (a, b) = run(ours, theirs);
            assert!(a.value == client.value && b.value == server.value);
            assert_eq!(
                (a.transcript, b.transcript),
                (client.transcript.clone(), server.transcript.clone())
            );
            assert_eq!((a.cost, b.cost), (client.cost, server.cost));
        }
    }

    #[test]
    fn a_party_that_has_to_hear_something_first_cannot_hold_its_messages() {
        run(How::Unsent, How::Unsent);
    }

    #[test]
    fn the_last_jobs_can_be_taken_when_all_are_made() {
        let client = |ch: &mut Channel| {
            let mut cots =
                CotReceiver::setup(ch, &mut Random::seeded(20), &SESSION, Source::Ferret).unwrap();
            let filling = fill_receiver_later(ch, &mut cots, &jobs()).unwrap();
            while filling.work() {}
            let mut last = filling.take_last(2).unwrap();
            assert_eq!(filling.take_last(3).err().map(|_| ()), Some(()));
            let mut all = filling.take(&jobs()[..2]).unwrap();
            all.append(&mut last);
            all.into_iter().map(ReceiverPads::into_parts).collect::<Vec<_>>()
        };
        let (made, _) = run_pair(client, |ch| {
            let mut cots =
                CotSender::setup(ch, &mut Random::seeded(10), &SESSION, Source::Ferret).unwrap();
            fill_sender(ch, &mut cots, &jobs()).map(drop)
        });
        assert!(made.value == run(How::Now, How::Now).0.value);
    }

    #[test]
    fn a_lie_about_correlations_is_found_when_they_are_made() {
        let client = |ch: &mut Channel| {
            let mut cots =
                CotReceiver::setup(ch, &mut Random::seeded(20), &SESSION, Source::Ferret).unwrap();
            let filling = fill_receiver_later(ch, &mut cots, &jobs()).unwrap();
            filling.work();
            let all = filling.take(&jobs());
            if let Err(error) = &all {
                assert_eq!(filling.take(&jobs()).err().as_ref(), Some(error), "it stays");
            }
            all.map(drop)
        };
        let server = |ch: &mut Channel| {
            let mut cots =
                CotSender::setup(ch, &mut Random::seeded(10), &SESSION, Source::Ferret).unwrap();
            fill_sender(ch, &mut cots, &jobs()).map(drop)
        };
        let honest = run_pair(client, server);
        assert_eq!(honest.0.value, Ok(()));
        // The choices of the base OTs and their proof come first.
        let last = honest.1.frames.len() - 1;
        for frame in [2, last] {
            let (client, _) =
                run_tampered(Some((Role::Server, frame, Tamper::Flip)), client, server);
            assert!(matches!(client.value, Err(Error::Peer { .. })), "{:?}", client.value);
        }
    }

    /// Correlations after a first window follow from what the sender says, whether it holds that or not.
    #[test]
    fn messages_that_are_held_say_the_same() {
        let window = [Job { count: 300_000, choice_bits: 1, entry: Entry::Bits(1) }];
        let sender = |ch: &mut Channel, held: bool| {
            let mut cots =
                CotSender::setup(ch, &mut Random::seeded(10), &SESSION, Source::Ferret).unwrap();
            let mut pads = Vec::new();
            for turn in 0..4 {
                let filling = if held && cots.is_one_way(window[0].count) {
                    let (filling, unsent) = fill_sender_unsent(&mut cots, &window).unwrap();
                    unsent.send(ch).unwrap();
                    filling
                } else {
                    assert!(!held || turn == 0, "only the first window begins with SoftSpoken");
                    fill_sender_later(ch, &mut cots, &window).unwrap()
                };
                pads.extend(filling.take(&window).unwrap());
            }
            pads.into_iter().map(SenderPads::into_columns).collect::<Vec<_>>()
        };
        let receiver = |ch: &mut Channel| {
            let mut cots =
                CotReceiver::setup(ch, &mut Random::seeded(20), &SESSION, Source::Ferret).unwrap();
            let mut fill = || fill_receiver(ch, &mut cots, &window).unwrap().remove(0).into_parts();
            (0..4).map(|_| fill()).collect::<Vec<_>>()
        };
        let open = run_pair(receiver, |ch| sender(ch, false));
        let held = run_pair(receiver, |ch| sender(ch, true));
        assert!(open.0.value == held.0.value && open.1.value == held.1.value);
        assert_eq!(open.1.transcript, held.1.transcript);
        for ((choices, opened), pads) in held.0.value.iter().zip(&held.1.value) {
            for i in (0..window[0].count).step_by(97) {
                let chosen = usize::from(choices[0].get(i) == 1);
                assert_eq!(pads[chosen].planes[0].get(i), opened.planes[0].get(i));
            }
        }
    }
}
