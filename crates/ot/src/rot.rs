//! Random 1-of-2^m oblivious transfers, made before any input exists.
//!
//! | | |
//! |---|---|
//! | In | correlations, m for each element of a [`Job`] |
//! | Out | sender: 2^m pads for each element; receiver: a random choice and the pad it opens |
//! | Reveals | nothing |
//! | Security | semi-honest; hash as in `hash.rs` |
//! | Cost | that of the correlations ([`fill_cost`]) |
//! | Paper | 1-of-2^m from m correlations: Kolesnikov, Kumaresan, "Improved OT extension for transferring short secrets", CRYPTO 2013 (its code replaced by powers of X) |
//!
//! Correlations take 16 bytes, pads only their own bits, so correlations are
//! hashed as soon as they are made and never stored in bulk. Correlations of bits are
//! kept as planes, pads of integers as columns: the online phase works on whole
//! vectors.

use std::fmt;

use ring::Bits;
use ring::wipe::wipe_all;
use wire::{Channel, Cost, Result};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::cot::batch::{ReceiverBatch, SenderBatch};
use crate::cot::schedule::{CorrelationCounts, Schedule};
use crate::cot::{CotReceiver, CotSender};
use crate::job::Job;

mod filler;
mod making;

use self::filler::Filler;
pub use self::filler::fill_both;
pub(crate) use self::making::{Making, Receiving, Sending};

/// Correlations made at a time.
const CHUNK: usize = 1 << 16;

/// Elements for which correlations are asked at a time.
const PIECE: usize = CHUNK / 8;

/// One value of every element.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Column {
    /// A vector for each bit of the entry.
    pub planes: Vec<Bits>,
    /// A list for each integer of the entry.
    pub words: Vec<Vec<u64>>,
}

/// The sender's pads of one job. The oblivious transfer that they mask consumes them.
pub struct SenderPads {
    pub(crate) job: Job,
    /// Pad j of every element.
    pub(crate) pads: Vec<Column>,
}

/// The receiver's random choices and the pads they open.
pub struct ReceiverPads {
    pub(crate) job: Job,
    pub(crate) choices: Vec<Bits>,
    pub(crate) opened: Column,
}

impl SenderPads {
    /// Returns the job that the pads were made for.
    pub fn job(&self) -> Job {
        self.job
    }

    /// Takes the spare bits off the pads and returns as many random bits of each element, of which
    /// the receiver knows nothing: it has one pad, and these are the exclusive or of two.
    pub fn take_spare(&mut self) -> Vec<Bits> {
        let kept = self.job.entry.planes();
        let mut spare = self.pads.iter_mut().map(|pad| {
            let at = kept.min(pad.planes.len());
            pad.planes.split_off(at)
        });
        let (mut first, second) = (spare.next().unwrap_or_default(), spare.next());
        first.iter_mut().zip(&second.unwrap_or_default()).for_each(|(a, b)| a.xor(b));
        spare.for_each(drop);
        first
    }

    /// Returns the pads themselves, entry by entry.
    pub fn into_columns(self) -> Vec<Column> {
        self.pads
    }
}

impl ReceiverPads {
    /// Returns the job that the pads were made for.
    pub fn job(&self) -> Job {
        self.job
    }

    /// Returns the random choices, a plane for each of their bits, and the pads that they open.
    pub fn into_parts(self) -> (Vec<Bits>, Column) {
        (self.choices, self.opened)
    }
}

impl Zeroize for Column {
    fn zeroize(&mut self) {
        self.planes.clear();
        self.words.iter_mut().for_each(wipe_all);
        self.words.clear();
    }
}

impl Drop for Column {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl ZeroizeOnDrop for Column {}

impl Column {
    /// Returns the list of the first integer of every entry, if entries hold integers.
    pub fn first_word(&self) -> Option<&Vec<u64>> {
        self.words.first()
    }

    /// Whether it holds a value for every element of `job`.
    pub(crate) fn fits(&self, job: &Job) -> bool {
        self.planes.len() == job.entry.planes()
            && self.planes.iter().all(|plane| plane.len() == job.count)
            && self.words.len() == job.entry.words().count()
            && self.words.iter().all(|words| words.len() == job.count)
    }
}

/// The numbers of elements of a job that are made together.
pub(crate) fn pieces(job: &Job) -> impl Iterator<Item = usize> + use<> {
    let count = job.count;
    (0..count).step_by(PIECE).map(move |done| PIECE.min(count - done))
}

/// Correlations to ask for when `left` are still to be taken in this phase.
pub(crate) fn ask(left: usize) -> usize {
    left.min(CHUNK)
}

/// Makes the sender's pads for `jobs`; the peer runs [`fill_receiver`].
///
/// # Errors
/// [`wire::Error::Internal`] for widths out of range, [`wire::Error::Peer`],
/// [`wire::Error::Transport`].
pub fn fill_sender(
    channel: &mut Channel,
    source: &mut CotSender,
    jobs: &[Job],
) -> Result<Vec<SenderPads>> {
    Filler::new(source, jobs)?.all(channel)
}

/// Makes the receiver's pads for `jobs`; the peer runs [`fill_sender`].
///
/// # Errors
/// The errors of [`fill_sender`].
pub fn fill_receiver(
    channel: &mut Channel,
    source: &mut CotReceiver,
    jobs: &[Job],
) -> Result<Vec<ReceiverPads>> {
    Filler::new(source, jobs)?.all(channel)
}

/// Returns what filling `jobs` costs out of `schedule`.
pub fn fill_cost(schedule: &mut Schedule, jobs: &[Job]) -> Cost {
    let mut left: usize = jobs.iter().map(Job::cots).sum();
    schedule.reserve(left);
    let mut cost = Cost::NONE;
    for job in jobs {
        for piece in pieces(job) {
            let count = piece * job.choice_bits as usize;
            if schedule.available() < count {
                cost = cost.then(schedule.extend(ask(left)));
            }
            left -= count;
            schedule.take(count);
        }
    }
    cost
}

/// Returns whether the party that holds Delta says all of the correlations of `jobs`, which are the next
/// ones, and the other nothing.
pub fn is_one_way(schedule: &Schedule, jobs: &[Job]) -> bool {
    made_for(schedule, jobs).soft.iter().all(|made| *made == 0)
}

/// Returns whether the party that holds the choices says all of the correlations of `jobs`, which are the next
/// ones, and the other nothing.
pub fn is_soft(schedule: &Schedule, jobs: &[Job]) -> bool {
    made_for(schedule, jobs).silent.iter().all(|made| *made == 0)
}

/// The correlations that are made for `jobs`.
fn made_for(schedule: &Schedule, jobs: &[Job]) -> CorrelationCounts {
    let mut ahead = schedule.clone();
    fill_cost(&mut ahead, jobs);
    ahead.made().since(schedule.made())
}

/// Returns the pads of dealt or otherwise finished correlations, exactly `job.cots()`.
///
/// # Errors
/// [`wire::Error::Internal`] for any other number.
pub fn sender_pads(job: Job, mut batch: SenderBatch) -> Result<SenderPads> {
    job.check()?;
    enough(&job, batch.len())?;
    Sending::all(job, |count| Ok(batch.split_off(count)))
}

/// Returns the receiver's side of [`sender_pads`].
///
/// # Errors
/// [`wire::Error::Internal`] for any other number.
pub fn receiver_pads(job: Job, mut batch: ReceiverBatch) -> Result<ReceiverPads> {
    job.check()?;
    enough(&job, batch.len())?;
    Receiving::all(job, |count| Ok(batch.split_off(count)))
}

fn enough(job: &Job, cots: usize) -> Result<()> {
    if cots == job.cots() {
        return Ok(());
    }
    Err(wire::Error::internal(format!("{cots} correlations for {}", job.cots())))
}

impl fmt::Debug for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Column(<{} planes, {} lists>)", self.planes.len(), self.words.len())
    }
}

impl fmt::Debug for SenderPads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SenderPads(<{:?}>)", self.job)
    }
}

impl fmt::Debug for ReceiverPads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceiverPads(<{:?}>)", self.job)
    }
}
