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

use wire::{Channel, Cost, Result};

use crate::cot::batch::{ReceiverBatch, SenderBatch};
use crate::cot::schedule::{CorrelationCounts, Schedule};
use crate::cot::{CotReceiver, CotSender};
use crate::job::Job;

mod filler;
mod making;
mod pads;
mod pieces;

pub(crate) use self::filler::{Filler, Fills, Heard, Pads, Piece, add};
pub(crate) use self::making::{Making, Receiving, Sending};
pub use self::pads::{Column, ReceiverPads, SenderPads};
use self::pieces::{ask, pieces};

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
        for piece in pieces(job.count) {
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
