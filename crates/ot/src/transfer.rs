//! Private table transfer: additive or xor shares of `T[v]`, the table known to
//! one party and the position to the other.
//!
//! | | |
//! |---|---|
//! | In | sender: tables `T_i` of 2^m values of l bits; receiver: `v_i` of m bits; m correlations per element |
//! | Out | shares of `T_i[v_i]`, added mod 2^l or xored |
//! | Reveals | `d_i = v_i xor c_i`, uniform because the choice bits `c_i` are |
//! | Security | semi-honest; hash as in `hash.rs` |
//! | Cost | 2 rounds; m bits up, (2^m - 1)*l bits down per element ([`choices_cost`], [`masked_cost`]) |
//! | Paper | 1-of-2^m from m correlations with one pad each: Kolesnikov, Kumaresan, "Improved OT extension for transferring short secrets", CRYPTO 2013 (its code replaced by powers of X) |
//!
//! Pad `j` of an element is `H(sum_k X^k*(q_k + j_k*Delta))`. The sender's share is
//! `r = T[d] - pad_0`, so that the message of `j = 0` is zero and never sent;
//! message `j` is `T[j xor d] - r - pad_j`. The receiver adds pad `c` to message
//! `c`: `T[v] - r`.

use std::fmt;

use ring::word::{mask, select};
use wire::{Cost, Error, Packed, Result, Role, Segment};
use zeroize::Zeroizing;

use crate::batch::{ReceiverBatch, SenderBatch};

/// How the two shares are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Sum mod 2^l.
    Add,
    /// Exclusive or.
    Xor,
}

/// `count` transfers of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Number of elements.
    pub count: usize,
    /// Width m of a choice, 1 to 8: tables have 2^m entries.
    pub choice_bits: u32,
    /// Width l of a value, 1 to 64.
    pub value_bits: u32,
    /// How the shares are put together.
    pub group: Group,
}

/// Receiver to sender: `d_i` of m bits, a segment per job.
pub type Choices = Packed<0x31>;
/// Sender to receiver: the masked values of `j = 1 .. 2^m - 1` of each element, a
/// segment per job.
pub type Masked = Packed<0x32>;

impl Job {
    /// Correlations consumed.
    pub const fn cots(&self) -> usize {
        self.count.saturating_mul(self.choice_bits as usize)
    }

    /// What the receiver sends.
    pub const fn choice_segment(&self) -> Segment {
        Segment { count: self.count, bits: self.choice_bits }
    }

    /// What the sender sends.
    pub const fn value_segment(&self) -> Segment {
        Segment { count: self.count.saturating_mul(self.entries() - 1), bits: self.value_bits }
    }

    /// Entries of a table.
    const fn entries(&self) -> usize {
        1 << self.choice_bits
    }

    fn check(&self) -> Result<()> {
        let widths = (1..=8).contains(&self.choice_bits) && (1..=64).contains(&self.value_bits);
        if widths { Ok(()) } else { Err(Error::misuse("a transfer of 1-8 bits to 1-64 bits")) }
    }
}

impl Group {
    #[inline]
    const fn add(self, a: u64, b: u64) -> u64 {
        match self {
            Self::Add => a.wrapping_add(b),
            Self::Xor => a ^ b,
        }
    }

    #[inline]
    const fn sub(self, a: u64, b: u64) -> u64 {
        match self {
            Self::Add => a.wrapping_sub(b),
            Self::Xor => a ^ b,
        }
    }
}

/// The receiver, waiting for [`Masked`].
pub struct Chooser {
    jobs: Vec<Job>,
    opened: Vec<Opened>,
}

/// Random choices `c_i` and the pads they open, of one job.
struct Opened {
    choices: Zeroizing<Vec<u64>>,
    pads: Zeroizing<Vec<u64>>,
}

/// Masks the positions `choices[job][i]`, each below 2^m.
///
/// # Errors
/// [`Error::Misuse`] when a list, a width or the number of correlations differs
/// from the jobs'.
pub fn choose(
    jobs: &[Job],
    mut batch: ReceiverBatch,
    choices: &[Vec<u64>],
) -> Result<(Chooser, Choices)> {
    let given = choices.iter().map(Vec::len);
    check_call(jobs, batch.len(), given, |job| Some(job.count))?;
    let mut opened = Vec::with_capacity(jobs.len());
    let mut message = Vec::with_capacity(jobs.len());
    for (job, choices) in jobs.iter().zip(choices) {
        let beyond = choices.iter().fold(0, |any, v| any | (v & !mask(job.choice_bits)));
        if beyond != 0 {
            return Err(Error::misuse("a choice beyond its table"));
        }
        let job_opened = open(job, &mut batch);
        let masked = job_opened.choices.iter().zip(choices).map(|(c, v)| c ^ v).collect();
        message.push((job.choice_segment(), masked));
        opened.push(job_opened);
    }
    Ok((Chooser { jobs: jobs.to_vec(), opened }, Packed(message)))
}

fn open(job: &Job, batch: &mut ReceiverBatch) -> Opened {
    let mut choices = Zeroizing::new(Vec::with_capacity(job.count));
    let mut pads = Zeroizing::new(Vec::with_capacity(job.count));
    batch.pads(job.choice_bits, job.count, |choice, opened| {
        choices.extend(choice.iter().map(|choice| u64::from(*choice)));
        pads.extend(opened.iter().map(|pad| *pad as u64));
    });
    Opened { choices, pads }
}

impl Chooser {
    /// The receiver's shares, a list per job.
    ///
    /// # Errors
    /// [`Error::Peer`] when the message has another layout than the jobs'.
    pub fn finish(self, masked: &Masked) -> Result<Vec<Vec<u64>>> {
        check_message(&masked_layout(&self.jobs), masked)?;
        let lists = self.jobs.iter().zip(&self.opened).zip(&masked.0);
        Ok(lists.map(|((job, opened), (_, values))| unmask(job, opened, values)).collect())
    }
}

fn unmask(job: &Job, opened: &Opened, values: &[u64]) -> Vec<u64> {
    let low = mask(job.value_bits);
    let rows = values.chunks_exact(job.entries() - 1);
    let elements = opened.choices.iter().zip(&*opened.pads).zip(rows);
    let share = |((choice, pad), row): ((&u64, &u64), &[u64])| {
        job.group.add(*pad, pick(row, *choice)) & low
    };
    elements.map(share).collect()
}

/// `row[choice - 1]`, or 0 for choice 0; reads the whole row. `choice < 2^8`.
#[inline]
fn pick(row: &[u64], choice: u64) -> u64 {
    let mut picked = 0;
    for (j, value) in (1u64..).zip(row) {
        let equal = ((j ^ choice).wrapping_sub(1)) >> 63;
        picked = select(equal, *value, picked);
    }
    picked
}

/// Answers masked positions: `tables[job]` holds 2^m values for each element, row
/// by row, of which the low l bits count. Returns the sender's shares, a list per
/// job.
///
/// # Errors
/// [`Error::Misuse`] when a list, a width or the number of correlations differs
/// from the jobs'; [`Error::Peer`] when the message does.
pub fn respond(
    jobs: &[Job],
    mut batch: SenderBatch,
    tables: &[Vec<u64>],
    choices: &Choices,
) -> Result<(Vec<Vec<u64>>, Masked)> {
    let given = tables.iter().map(Vec::len);
    check_call(jobs, batch.len(), given, |job| job.count.checked_mul(job.entries()))?;
    check_message(&choices_layout(jobs), choices)?;
    let mut shares = Vec::with_capacity(jobs.len());
    let mut message = Vec::with_capacity(jobs.len());
    for ((job, table), (_, asked)) in jobs.iter().zip(tables).zip(&choices.0) {
        let (share, masked) = answer(job, &mut batch, table, asked);
        shares.push(share);
        message.push((job.value_segment(), masked));
    }
    Ok((shares, Packed(message)))
}

fn answer(
    job: &Job,
    batch: &mut SenderBatch,
    table: &[u64],
    asked: &[u64],
) -> (Vec<u64>, Vec<u64>) {
    let (low, group) = (mask(job.value_bits), job.group);
    let mut shares = Vec::with_capacity(job.count);
    let mut masked = Vec::with_capacity(job.value_segment().count);
    let mut elements = table.chunks_exact(job.entries()).zip(asked);
    batch.pads(job.choice_bits, job.count, |pads| {
        for (pads, (row, &d)) in pads.chunks_exact(job.entries()).zip(&mut elements) {
            let d = d as usize & (row.len() - 1);
            let share = group.sub(row[d], pads[0] as u64);
            let messages = (1..row.len()).zip(&pads[1..]);
            masked.extend(
                messages.map(|(j, pad)| group.sub(group.sub(row[j ^ d], share), *pad as u64) & low),
            );
            shares.push(share & low);
        }
    });
    (shares, masked)
}

/// Layout of [`Choices`].
pub fn choices_layout(jobs: &[Job]) -> Vec<Segment> {
    jobs.iter().map(Job::choice_segment).collect()
}

/// Layout of [`Masked`].
pub fn masked_layout(jobs: &[Job]) -> Vec<Segment> {
    jobs.iter().map(Job::value_segment).collect()
}

/// What [`Choices`] costs when `receiver` sends it.
pub fn choices_cost(receiver: Role, jobs: &[Job]) -> Cost {
    Cost::message(receiver, Choices::body_len(&choices_layout(jobs)))
}

/// What [`Masked`] costs when `sender` sends it.
pub fn masked_cost(sender: Role, jobs: &[Job]) -> Cost {
    Cost::message(sender, Masked::body_len(&masked_layout(jobs)))
}

/// `given` list lengths and `cots` correlations are what `jobs` ask for.
fn check_call(
    jobs: &[Job],
    cots: usize,
    given: impl ExactSizeIterator<Item = usize>,
    wanted: impl Fn(&Job) -> Option<usize>,
) -> Result<()> {
    jobs.iter().try_for_each(Job::check)?;
    let needed = jobs.iter().fold(0, |sum: usize, job| sum.saturating_add(job.cots()));
    if cots != needed {
        return Err(Error::misuse(format!("{cots} correlations for {needed}")));
    }
    if given.len() != jobs.len() || !jobs.iter().map(wanted).eq(given.map(Some)) {
        return Err(Error::misuse("lists that differ from the jobs"));
    }
    Ok(())
}

fn check_message<const TAG: u8>(layout: &[Segment], message: &Packed<TAG>) -> Result<()> {
    let fits = |(segment, values): &(Segment, Vec<u64>)| values.len() == segment.count;
    let same = layout.iter().eq(message.0.iter().map(|(segment, _)| segment));
    if same && message.0.iter().all(fits) {
        return Ok(());
    }
    Err(Error::peer(format!("{layout:?}"), format!("{message:?}")))
}

impl fmt::Debug for Chooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chooser(<{} jobs>)", self.jobs.len())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ideal::deal;
    use ring::Random;

    fn job(count: usize, choice_bits: u32, value_bits: u32, group: Group) -> Job {
        Job { count, choice_bits, value_bits, group }
    }

    /// Runs core against core; returns the sums of the shares.
    fn run(rng: &mut Random, jobs: &[Job], v: &[Vec<u64>], tables: &[Vec<u64>]) -> Vec<Vec<u64>> {
        let (sender, receiver) = deal(rng, jobs.iter().map(Job::cots).sum());
        let (chooser, choices) = choose(jobs, receiver, v).unwrap();
        let (ours, masked) = respond(jobs, sender, tables, &choices).unwrap();
        let theirs = chooser.finish(&masked).unwrap();
        let lists = jobs.iter().zip(ours.iter().zip(&theirs));
        let sum = |(job, (a, b)): (&Job, (&Vec<u64>, &Vec<u64>))| {
            let low = mask(job.value_bits);
            assert!(a.iter().chain(b).all(|x| *x <= low));
            a.iter().zip(b).map(|(a, b)| job.group.add(*a, *b) & low).collect()
        };
        lists.map(sum).collect()
    }

    fn wanted(jobs: &[Job], v: &[Vec<u64>], tables: &[Vec<u64>]) -> Vec<Vec<u64>> {
        let rows = |(job, (v, table)): (&Job, (&Vec<u64>, &Vec<u64>))| {
            let rows = table.chunks(job.entries()).zip(v);
            rows.map(|(row, v)| row[*v as usize] & mask(job.value_bits)).collect()
        };
        jobs.iter().zip(v.iter().zip(tables)).map(rows).collect()
    }

    #[test]
    fn every_position_of_every_small_table() {
        let mut rng = Random::seeded(1);
        for choice_bits in 1..=8 {
            for (value_bits, group) in [(1, Group::Xor), (13, Group::Add), (64, Group::Add)] {
                // Each position 5 times, so that its random choice bits vary.
                let jobs = [job(5 << choice_bits, choice_bits, value_bits, group)];
                let v = vec![(0..5 << choice_bits).map(|i| i & mask(choice_bits)).collect()];
                let tables = vec![rng.uniform((5 << choice_bits) << choice_bits, value_bits)];
                assert_eq!(run(&mut rng, &jobs, &v, &tables), wanted(&jobs, &v, &tables));
            }
        }
    }

    #[test]
    fn jobs_of_different_kinds_share_a_message() {
        let mut rng = Random::seeded(2);
        let jobs = [
            job(7, 3, 20, Group::Add),
            job(0, 1, 1, Group::Xor),
            job(33, 1, 5, Group::Xor),
            job(1, 8, 64, Group::Add),
        ];
        let v: Vec<_> = jobs.iter().map(|j| rng.uniform(j.count, j.choice_bits)).collect();
        let tables: Vec<_> =
            jobs.iter().map(|j| rng.uniform(j.count << j.choice_bits, 64)).collect();
        assert_eq!(run(&mut rng, &jobs, &v, &tables), wanted(&jobs, &v, &tables));
    }

    #[test]
    fn wrong_calls_are_misuse_and_wrong_messages_the_peers_fault() {
        let mut rng = Random::seeded(3);
        let jobs = [job(4, 2, 8, Group::Add)];
        let v = vec![vec![0, 1, 2, 3]];
        let misuse = |jobs: &[Job], count, v: &[Vec<u64>]| {
            let (_, receiver) = deal(&mut Random::seeded(4), count);
            matches!(choose(jobs, receiver, v), Err(Error::Misuse(_)))
        };
        assert!(misuse(&jobs, 7, &v));
        assert!(misuse(&jobs, 9, &v));
        assert!(misuse(&jobs, 8, &[]));
        assert!(misuse(&jobs, 8, &[vec![0, 1, 2, 4]]));
        assert!(misuse(&[job(4, 9, 8, Group::Add)], 36, &v));
        assert!(misuse(&[job(4, 2, 0, Group::Add)], 8, &v));
        let (sender, receiver) = deal(&mut rng, 8);
        let (chooser, _) = choose(&jobs, receiver, &v).unwrap();
        let short = Packed::one(vec![0; 11], 8);
        assert!(matches!(chooser.finish(&short), Err(Error::Peer { .. })));
        let table = vec![rng.uniform(16, 8)];
        let wide = Packed::one(vec![0; 4], 3);
        assert!(matches!(respond(&jobs, sender, &table, &wide), Err(Error::Peer { .. })));
    }

    #[test]
    fn pick_reads_the_right_entry() {
        let row: Vec<u64> = (1..256).map(|i| i * 0x0101_0101).collect();
        assert_eq!(pick(&row, 0), 0);
        assert!((1..256).all(|j| pick(&row, j) == row[j as usize - 1]));
    }
}
