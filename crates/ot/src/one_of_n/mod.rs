//! 1-of-2^m oblivious transfer of tables: additive or xor shares of `T[v]`, the table known to
//! one party and the position to the other.
//!
//! | | |
//! |---|---|
//! | In | sender: tables `T_i` of 2^m entries; receiver: `v_i` of m bits; pads of the same jobs |
//! | Out | shares of `T_i[v_i]`, added mod 2^l or xored |
//! | Reveals | `d_i = v_i xor c_i`, uniform because the random choices `c_i` are |
//! | Security | semi-honest, given the pads |
//! | Cost | 2 rounds; m bits up, (2^m - 1)*l bits down per element ([`choices_cost`], [`masked_cost`]) |
//! | Paper | Beaver, "Precomputing oblivious transfer", CRYPTO 1995 |
//!
//! The sender's share is `r = T[d] - pad_0`, so that the message of `j = 0` is zero
//! and never sent; message `j` is `T[j xor d] - r - pad_j`. The receiver adds pad
//! `c` to message `c`: `T[v] - r`. Tables are permuted and messages picked by
//! conditional swaps of whole columns, one for each bit of the position.

pub mod opened;

use std::fmt;

use ring::Bits;
use ring::word::{mask, select};
use wire::{Cost, Error, Lane, Lanes, Result, Role, Values, tags};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::job::Job;
use crate::rot::{Column, ReceiverPads, SenderPads};

/// Receiver to sender: `d_i`, a plane for each of its m bits, a part per job.
pub type Choices = Lanes<{ tags::TABLE_CHOICES }>;
/// Sender to receiver: the masked values of `j = 1 .. 2^m - 1`, entry by entry, a
/// part per job and integer of its entry.
pub type Masked = Lanes<{ tags::TABLE_ENTRIES }>;

/// The tables of one job: entry j of every element at position j.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Table(pub Vec<Column>);

impl Table {
    /// Makes a table of integers.
    pub fn words(columns: Vec<Vec<u64>>) -> Self {
        let column = |words| Column { planes: Vec::new(), words: vec![words] };
        Self(columns.into_iter().map(column).collect())
    }

    /// Makes a table of bits: for each entry the planes of its bits.
    pub fn bits(columns: Vec<Vec<Bits>>) -> Self {
        let column = |planes| Column { planes, words: Vec::new() };
        Self(columns.into_iter().map(column).collect())
    }
}

/// The receiver, waiting for [`Masked`].
pub struct Chooser {
    pads: Vec<ReceiverPads>,
}

/// Masks the positions: for each job a plane for each of the m bits.
///
/// # Errors
/// [`Error::Internal`] when a list or a width differs from the jobs'.
pub fn choose(pads: Vec<ReceiverPads>, choices: &[Vec<Bits>]) -> Result<(Chooser, Choices)> {
    let fits = |(pads, planes): (&ReceiverPads, &Vec<Bits>)| {
        planes.len() == pads.choices.len() && planes.iter().all(|p| p.len() == pads.job.count)
    };
    if pads.len() != choices.len() || !pads.iter().zip(choices).all(fits) {
        return Err(Error::internal("choices that differ from their OTs"));
    }
    let masked = |(pads, planes): (&ReceiverPads, &Vec<Bits>)| {
        let pairs = pads.choices.iter().zip(planes);
        let planes = pairs.map(|(c, v)| {
            let mut masked = c.clone();
            masked.xor(v);
            masked
        });
        (pads.job.choice_lane(), Values::Planes(planes.collect()))
    };
    let message = Lanes(pads.iter().zip(choices).map(masked).collect());
    Ok((Chooser { pads }, message))
}

impl Chooser {
    pub(crate) fn jobs(&self) -> impl Iterator<Item = Job> + '_ {
        self.pads.iter().map(|pads| pads.job)
    }

    /// Returns the receiver's shares, a column per job.
    ///
    /// # Errors
    /// [`Error::Peer`] when the message has another layout than the jobs'.
    pub fn finish(self, masked: Masked) -> Result<Vec<Column>> {
        let jobs: Vec<Job> = self.jobs().collect();
        masked.check(&masked_layout(&jobs))?;
        let mut parts = masked.0.into_iter().map(|(_, values)| values);
        Ok(self.pads.into_iter().map(|pads| unmask(pads, &mut parts)).collect())
    }
}

fn unmask(pads: ReceiverPads, parts: &mut impl Iterator<Item = Values>) -> Column {
    let ReceiverPads { job, choices, mut opened } = pads;
    let mut entries = received(&job, parts);
    pick(&mut entries, &choices);
    let picked = entries.into_iter().next().unwrap_or_default();
    for (pad, message) in opened.planes.iter_mut().zip(&picked.planes) {
        pad.xor(message);
    }
    opened.planes.truncate(job.entry.planes());
    let widths = job.entry.words();
    for ((pad, message), bits) in opened.words.iter_mut().zip(&picked.words).zip(widths) {
        let sums = pad.iter_mut().zip(message);
        sums.for_each(|(pad, message)| *pad = pad.wrapping_add(*message) & mask(bits));
    }
    opened
}

/// The messages of a job as entries; the first is zero.
fn received(job: &Job, parts: &mut impl Iterator<Item = Values>) -> Vec<Column> {
    let mut entries: Vec<Column> = Vec::with_capacity(job.entries());
    entries.resize_with(job.entries(), Column::default);
    for _ in job.value_lanes() {
        match parts.next() {
            Some(Values::Planes(planes)) => {
                let each = job.entry.planes();
                entries[0].planes = vec![Bits::zeros(job.count); each];
                let mut planes = planes.into_iter();
                let later = entries.iter_mut().skip(1);
                later.for_each(|entry| entry.planes = planes.by_ref().take(each).collect());
            }
            Some(Values::Words(words)) => {
                entries[0].words.push(vec![0; job.count]);
                let columns = words.chunks_exact(job.count.max(1));
                let later = entries.iter_mut().skip(1);
                later.zip(columns).for_each(|(entry, words)| entry.words.push(words.to_vec()));
            }
            None => {}
        }
    }
    entries
}

/// Moves entry `at` to the front, highest bit first, halving the entries that can
/// still be it.
fn pick(entries: &mut [Column], at: &[Bits]) {
    for (bit, plane) in at.iter().enumerate().rev() {
        let (low, high) = entries.split_at_mut(1 << bit);
        low.iter_mut().zip(high).for_each(|(low, high)| swap(low, high, plane));
    }
}

/// Moves entry `j xor d` to position `j`.
fn permute(entries: &mut [Column], d: &[Bits]) {
    for (bit, plane) in d.iter().enumerate() {
        for square in entries.chunks_exact_mut(2 << bit) {
            let (low, high) = square.split_at_mut(1 << bit);
            low.iter_mut().zip(high).for_each(|(low, high)| swap(low, high, plane));
        }
    }
}

/// Swaps the values of the elements whose bit in `at` is set.
fn swap(low: &mut Column, high: &mut Column, at: &Bits) {
    for (low, high) in low.planes.iter_mut().zip(&mut high.planes) {
        low.swap_where(high, at);
    }
    for (low, high) in low.words.iter_mut().zip(&mut high.words) {
        let chunks = low.chunks_mut(64).zip(high.chunks_mut(64)).zip(at.words());
        for ((low, high), bits) in chunks {
            for (i, (low, high)) in low.iter_mut().zip(high).enumerate() {
                let bit = (bits >> i) & 1;
                let kept = select(bit, *high, *low);
                *high ^= *low ^ kept;
                *low = kept;
            }
        }
    }
}

/// Answers masked positions with `tables`, of which the low bits count. Returns the
/// sender's shares, a column per job.
///
/// # Errors
/// [`Error::Internal`] when a table differs from its job; [`Error::Peer`] when the
/// message does.
pub fn respond(
    pads: Vec<SenderPads>,
    tables: Vec<Table>,
    choices: &Choices,
) -> Result<(Vec<Column>, Masked)> {
    let entries = entries_of(&pads, tables)?;
    let jobs: Vec<Job> = pads.iter().map(|pads| pads.job).collect();
    choices.check(&choices_layout(&jobs))?;
    let (mut shares, mut message) = (Vec::with_capacity(pads.len()), Vec::new());
    for ((pads, entries), (_, asked)) in pads.into_iter().zip(entries).zip(&choices.0) {
        let Values::Planes(d) = asked else { continue };
        shares.push(answer(pads, entries, d, &mut message));
    }
    Ok((shares, Lanes(message)))
}

/// The tables' entries, if they fit the jobs.
///
/// # Errors
/// [`Error::Internal`] when a table differs from its job.
pub(crate) fn entries_of(pads: &[SenderPads], tables: Vec<Table>) -> Result<Vec<Vec<Column>>> {
    let fits = |(pads, table): (&SenderPads, &Table)| {
        table.0.len() == pads.job.entries() && table.0.iter().all(|entry| entry.fits(&pads.job))
    };
    if pads.len() != tables.len() || !pads.iter().zip(&tables).all(fits) {
        return Err(Error::internal("tables that differ from their OTs"));
    }
    Ok(tables.into_iter().map(|mut table| std::mem::take(&mut table.0)).collect())
}

fn answer(
    pads: SenderPads,
    mut entries: Vec<Column>,
    d: &[Bits],
    out: &mut Vec<(Lane, Values)>,
) -> Column {
    let SenderPads { job, pads } = pads;
    permute(&mut entries, d);
    let mut entries = Zeroizing::new(entries);
    let (first, later) = entries.split_at_mut(1);
    let mut share = std::mem::take(&mut first[0]);
    subtract(&job, &mut share, &pads[0]);
    for (entry, pad) in later.iter_mut().zip(&pads[1..]) {
        subtract(&job, entry, &share);
        subtract(&job, entry, pad);
    }
    message_of(&job, later, out);
    share
}

/// Appends masked entries, all but the first of a table, as parts of [`Masked`].
pub(crate) fn message_of(job: &Job, entries: &mut [Column], out: &mut Vec<(Lane, Values)>) {
    for (part, lane) in job.value_lanes().into_iter().enumerate() {
        let values = match lane {
            Lane::Planes { .. } => Values::Planes(
                entries.iter_mut().flat_map(|e| std::mem::take(&mut e.planes)).collect(),
            ),
            Lane::Words { count, .. } => {
                let mut words = Vec::with_capacity(count);
                entries.iter().for_each(|e| words.extend_from_slice(&e.words[part]));
                Values::Words(words)
            }
        };
        out.push((lane, values));
    }
}

pub(crate) fn subtract(job: &Job, from: &mut Column, what: &Column) {
    for (from, what) in from.planes.iter_mut().zip(&what.planes) {
        from.xor(what);
    }
    for ((from, what), bits) in from.words.iter_mut().zip(&what.words).zip(job.entry.words()) {
        let pairs = from.iter_mut().zip(what);
        pairs.for_each(|(from, what)| *from = from.wrapping_sub(*what) & mask(bits));
    }
}

/// Returns the layout of [`Choices`].
pub fn choices_layout(jobs: &[Job]) -> Vec<Lane> {
    jobs.iter().map(Job::choice_lane).collect()
}

/// Returns the layout of [`Masked`].
pub fn masked_layout(jobs: &[Job]) -> Vec<Lane> {
    jobs.iter().flat_map(Job::value_lanes).collect()
}

/// Returns what [`Choices`] costs when `receiver` sends it.
pub fn choices_cost(receiver: Role, jobs: &[Job]) -> Cost {
    Cost::message(receiver, Choices::body_len(&choices_layout(jobs)))
}

/// Returns what [`Masked`] costs when `sender` sends it.
pub fn masked_cost(sender: Role, jobs: &[Job]) -> Cost {
    Cost::message(sender, Masked::body_len(&masked_layout(jobs)))
}

impl fmt::Debug for Chooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chooser(<{} jobs>)", self.pads.len())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
