//! Private choice between two values, both parties opening at once.
//!
//! | | |
//! |---|---|
//! | In | sender: `T_i` of 2 entries; receiver: a bit `v_i`; pads of the same jobs |
//! | Out | shares of `T_i[v_i]`, added mod 2^l or xored |
//! | Reveals | `e_i = v_i xor c_i` and `f_i = T_i[1] - T_i[0] - (pad_1 - pad_0)`, both uniform |
//! | Security | semi-honest, given the pads |
//! | Cost | what [`crate::one_of_n`] costs with m = 1; neither message waits for the other |
//! | Paper | Beaver, CRYPTO 1991 (products from random products); the pads are one: `c*(pad_1 - pad_0)`, shared as `pad_c` and `-pad_0` |
//!
//! With `X = T[1] - T[0]` the receiver's bit chooses `T[0] + v*X`, and `v*X` is
//! `e*X + (1 - 2e)*c*X`, `c*X = c*f + pad_c - pad_0`. So the sender's share is
//! `T[0] + e*X - (1 - 2e)*pad_0`, the receiver's `(1 - 2e)*(pad_c + c*f)`.

use std::fmt;

use ring::Bits;
use ring::word::mask;
use wire::{Error, Lane, Lanes, Result, Values};

use crate::job::Job;
use crate::one_of_n::{
    Choices, Chooser, Masked, Table, choices_layout, choose, entries_of, message_of, subtract,
};
use crate::rot::{Column, ReceiverPads, SenderPads};

/// The sender, waiting for [`Choices`].
pub struct Offered {
    jobs: Vec<Job>,
    /// By job the shares for `e = 0` and for `e = 1`.
    shares: Vec<[Column; 2]>,
}

/// The receiver, waiting for [`Masked`].
pub struct Asked {
    chooser: Chooser,
    opened: Vec<Bits>,
}

/// Masks the differences of two-entry tables.
///
/// # Errors
/// [`Error::Internal`] when a table differs from its job or a job has more than two entries.
pub fn offer(pads: Vec<SenderPads>, tables: Vec<Table>) -> Result<(Offered, Masked)> {
    let entries = entries_of(&pads, tables)?;
    if pads.iter().any(|pads| pads.job.choice_bits != 1) {
        return Err(Error::internal("a choice between more than two values, opened at once"));
    }
    let jobs = pads.iter().map(|pads| pads.job).collect();
    let mut message: Vec<(Lane, Values)> = Vec::new();
    let pairs = pads.into_iter().zip(entries);
    let shares = pairs.map(|(pads, entries)| masked(pads, entries, &mut message)).collect();
    Ok((Offered { jobs, shares }, Lanes(message)))
}

/// Shares of one job for either `e`; the masked differences go to `out`.
fn masked(pads: SenderPads, entries: Vec<Column>, out: &mut Vec<(Lane, Values)>) -> [Column; 2] {
    let SenderPads { job, pads } = pads;
    let (mut entries, mut pads) = (entries.into_iter(), pads.into_iter());
    let mut next = || [entries.next(), pads.next()].map(Option::unwrap_or_default);
    let ([mut plain, low], [mut other, high]) = (next(), next());
    let mut difference = other.clone();
    subtract(&job, &mut difference, &plain);
    subtract(&job, &mut difference, &high);
    add(&job, &mut difference, &low);
    message_of(&job, &mut [difference], out);
    subtract(&job, &mut plain, &low);
    add(&job, &mut other, &low);
    [plain, other]
}

fn add(job: &Job, to: &mut Column, what: &Column) {
    for (to, what) in to.planes.iter_mut().zip(&what.planes) {
        to.xor(what);
    }
    for ((to, what), bits) in to.words.iter_mut().zip(&what.words).zip(job.entry.words()) {
        to.iter_mut().zip(what).for_each(|(to, what)| *to = to.wrapping_add(*what) & mask(bits));
    }
}

impl Offered {
    /// Returns the sender's shares, a column per job.
    ///
    /// # Errors
    /// [`Error::Peer`] when the message has another layout than the jobs'.
    pub fn finish(self, choices: &Choices) -> Result<Vec<Column>> {
        choices.check(&choices_layout(&self.jobs))?;
        let mut columns = Vec::with_capacity(self.shares.len());
        for ([mut share, other], (_, opened)) in self.shares.into_iter().zip(&choices.0) {
            let Values::Planes(planes) = opened else { continue };
            for plane in planes {
                take_where(&mut share, &other, plane);
            }
            columns.push(share);
        }
        Ok(columns)
    }
}

/// Replaces the values of the elements whose bit in `at`, which is public, is set.
fn take_where(column: &mut Column, other: &Column, at: &Bits) {
    for (plane, other) in column.planes.iter_mut().zip(&other.planes) {
        let mut change = other.clone();
        change.xor(plane);
        plane.xor_and(&change, at);
    }
    for (words, other) in column.words.iter_mut().zip(&other.words) {
        for ((word, other), mask) in words.iter_mut().zip(other).zip(at.masks()) {
            *word ^= (*word ^ other) & mask;
        }
    }
}

/// Masks the choices.
///
/// # Errors
/// [`Error::Internal`] when a list or a width differs from the jobs'.
pub fn ask(pads: Vec<ReceiverPads>, choices: &[Vec<Bits>]) -> Result<(Asked, Choices)> {
    let (chooser, message) = choose(pads, choices)?;
    let planes = message.0.iter().filter_map(|(_, values)| match values {
        Values::Planes(planes) => planes.first().cloned(),
        Values::Words(_) => None,
    });
    let opened = planes.collect();
    Ok((Asked { chooser, opened }, message))
}

impl Asked {
    /// Returns the receiver's shares, a column per job.
    ///
    /// # Errors
    /// [`Error::Peer`] when the message has another layout than the jobs'.
    pub fn finish(self, masked: Masked) -> Result<Vec<Column>> {
        let widths = self.chooser.jobs().map(|job| job.entry.words()).collect::<Vec<_>>();
        let mut columns = self.chooser.finish(masked)?;
        for ((column, opened), widths) in columns.iter_mut().zip(&self.opened).zip(widths) {
            for (words, bits) in column.words.iter_mut().zip(widths) {
                for (word, negate) in words.iter_mut().zip(opened.masks()) {
                    *word = (*word ^ negate).wrapping_sub(negate) & mask(bits);
                }
            }
        }
        Ok(columns)
    }
}

impl fmt::Debug for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Offered(<{} jobs>)", self.jobs.len())
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Asked(<{} jobs>)", self.opened.len())
    }
}
