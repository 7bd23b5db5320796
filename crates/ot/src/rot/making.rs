//! Pads out of correlations, piece by piece.

use std::mem::take;

use ring::word::mask;
use ring::{Bits, Wiped, plane};
use wire::Result;

use super::pads::{Column, ReceiverPads, SenderPads};
use super::pieces::pieces;
use crate::cot::batch::{ReceiverBatch, SenderBatch};
use crate::job::{Entry, Job};

/// Elements gathered before their pads are cut into planes. Elements that share a key of the hash are in one group.
pub(super) const GROUP: usize = 64;

/// The pads of a job on the way.
pub(crate) trait Making<B>: Sized + Send {
    /// The pads that are made.
    type Pads: Send;

    /// None of the pads of `job`.
    fn begin(job: Job) -> Self;

    /// Hashes the pads of the next `count` elements out of a batch of just so many.
    fn add(&mut self, batch: B, count: usize);

    /// The pads of all elements.
    fn finish(self) -> Self::Pads;

    /// Hashes the correlations of all elements, taken by `next` in pieces.
    fn all(job: Job, mut next: impl FnMut(usize) -> Result<B>) -> Result<Self::Pads> {
        let mut making = Self::begin(job);
        for piece in pieces(job.count) {
            making.add(next(piece * job.choice_bits as usize)?, piece);
        }
        Ok(making.finish())
    }
}

/// The sender's.
pub(crate) struct Sending {
    job: Job,
    entries: Collector,
}

/// The receiver's.
pub(crate) struct Receiving {
    job: Job,
    choices: Collector,
    opened: Collector,
}

impl Making<SenderBatch> for Sending {
    type Pads = SenderPads;

    fn begin(job: Job) -> Self {
        Self { job, entries: Collector::new(&job, job.entries()) }
    }

    fn add(&mut self, mut batch: SenderBatch, count: usize) {
        batch.pads(self.job.choice_bits, count, |pads| self.entries.extend(pads));
    }

    fn finish(self) -> SenderPads {
        SenderPads { job: self.job, pads: self.entries.finish() }
    }
}

impl Making<ReceiverBatch> for Receiving {
    type Pads = ReceiverPads;

    fn begin(job: Job) -> Self {
        let choices = Job { entry: Entry::Bits(job.choice_bits), ..job };
        Self { job, choices: Collector::new(&choices, 1), opened: Collector::new(&job, 1) }
    }

    fn add(&mut self, mut batch: ReceiverBatch, count: usize) {
        let Self { job, choices, opened } = self;
        batch.pads(job.choice_bits, count, |choice, pads| {
            choices.extend_bytes(choice);
            opened.extend(pads);
        });
    }

    fn finish(self) -> ReceiverPads {
        let choices = self.choices.finish().pop();
        let choices = choices.map(|mut column| std::mem::take(&mut column.planes));
        let opened = self.opened.finish().pop();
        ReceiverPads {
            job: self.job,
            choices: choices.unwrap_or_default(),
            opened: opened.unwrap_or_default(),
        }
    }
}

/// One byte of a pad of each of [`GROUP`] elements.
type Group = [u8; GROUP];

/// Collects the pads of one element after the other into a column for each entry.
struct Collector {
    entry: Entry,
    count: usize,
    entries: usize,
    /// The bytes that planes are cut from, [`GROUP`] for each entry: a group of each entry for the first byte of its
    /// pads, then one of each for the second byte, and so on.
    bytes: Wiped<u8>,
    held: usize,
    /// Elements that are in the columns.
    done: usize,
    /// The planes of the first entry, then those of the second, and so on.
    planes: Vec<Wiped<u64>>,
    /// The integers of the first entry, then those of the second, and so on.
    words: Vec<Wiped<u64>>,
    /// A word of a plane of each entry.
    cut: Wiped<u64>,
    masks: [u64; 2],
}

impl Collector {
    fn new(job: &Job, entries: usize) -> Self {
        let zeros = |len: usize, lists: usize| {
            (0..entries * lists).map(|_| Wiped::new(vec![0; len])).collect()
        };
        let mut masks = [0; 2];
        masks.iter_mut().zip(job.entry.words()).for_each(|(to, bits)| *to = mask(bits));
        let places = job.entry.pad_planes().div_ceil(8);
        Self {
            entry: job.entry,
            count: job.count,
            entries,
            bytes: Wiped::new(vec![0; GROUP * places * entries]),
            held: 0,
            done: 0,
            planes: zeros(job.count.div_ceil(GROUP), job.entry.pad_planes()),
            words: zeros(job.count, job.entry.words().count()),
            cut: Wiped::new(Vec::with_capacity(entries)),
            masks,
        }
    }

    /// Takes all pads of the next elements.
    fn extend(&mut self, pads: &[u128]) {
        if self.planes.is_empty() {
            return self.extend_words(pads);
        }
        let mut rest = pads;
        while !rest.is_empty() {
            let room = (GROUP - self.held) * self.entries;
            let (now, later) = rest.split_at(room.min(rest.len()));
            let (groups, _) = self.bytes.as_chunks_mut();
            for (byte, groups) in groups.chunks_exact_mut(self.entries).enumerate() {
                place(now, byte, groups, self.held);
            }
            self.hold(now.len() / self.entries);
            rest = later;
        }
    }

    /// Takes the next elements, which have one entry of a byte.
    fn extend_bytes(&mut self, elements: &[u8]) {
        let mut rest = elements;
        while !rest.is_empty() {
            let (now, later) = rest.split_at((GROUP - self.held).min(rest.len()));
            self.bytes[self.held..][..now.len()].copy_from_slice(now);
            self.hold(now.len());
            rest = later;
        }
    }

    fn extend_words(&mut self, pads: &[u128]) {
        let ([low, high], start) = (self.masks, self.done);
        let lists = self.words.len() / self.entries;
        for (j, words) in self.words.chunks_exact_mut(lists.max(1)).enumerate() {
            let pads = pads.chunks_exact(self.entries).filter_map(|element| element.get(j));
            match words {
                [first] => {
                    first[start..].iter_mut().zip(pads).for_each(|(to, x)| *to = *x as u64 & low);
                }
                [first, second] => {
                    let to = first[start..].iter_mut().zip(&mut second[start..]);
                    to.zip(pads).for_each(|((first, second), x)| {
                        *first = *x as u64 & low;
                        *second = (x >> 64) as u64 & high;
                    });
                }
                _ => {}
            }
        }
        self.done += pads.len() / self.entries;
    }

    /// Holds `more` elements, whose bytes are there.
    fn hold(&mut self, more: usize) {
        self.held += more;
        if self.held == GROUP {
            self.cut();
        }
    }

    /// Moves the bits of the elements held to the planes.
    fn cut(&mut self) {
        let (at, planes) = (self.done / GROUP, self.entry.pad_planes());
        for bit in 0..planes {
            let groups = &self.bytes[bit / 8 * self.entries * GROUP..][..self.entries * GROUP];
            self.cut.clear();
            plane::gather(groups, bit as u32 % 8, &mut self.cut);
            let to = self.planes.iter_mut().skip(bit).step_by(planes);
            to.zip(&*self.cut).for_each(|(plane, word)| plane[at] = *word);
        }
        self.done += self.held;
        self.held = 0;
    }

    /// A column for each entry.
    fn finish(mut self) -> Vec<Column> {
        if self.held > 0 {
            self.cut();
        }
        let (planes, words) = (self.entry.pad_planes(), self.entry.words().count());
        let (count, mut all, mut lists) =
            (self.count, self.planes.into_iter(), self.words.into_iter());
        let plane = |mut words: Wiped<u64>| Bits::new(take(&mut *words), count);
        let column = |_| Column {
            planes: all.by_ref().take(planes).map(plane).collect(),
            words: lists.by_ref().take(words).map(|mut list| take(&mut *list)).collect(),
        };
        (0..self.entries).map(column).collect()
    }
}

/// Writes byte `byte` of pads to `groups`, one for each entry, from place `held` on. The pads of an element follow
/// those of the element before.
fn place(pads: &[u128], byte: usize, groups: &mut [Group], held: usize) {
    // A shift of 128 bits by a variable takes ten instructions.
    let shift = 8 * (byte % 8);
    match byte {
        0 => place_each(pads, |pad| pad as u8, groups, held),
        1..8 => place_each(pads, |pad| (pad as u64 >> shift) as u8, groups, held),
        _ => place_each(pads, |pad| ((pad >> 64) as u64 >> shift) as u8, groups, held),
    }
}

#[inline(always)]
fn place_each(pads: &[u128], byte: impl Fn(u128) -> u8, groups: &mut [Group], held: usize) {
    if let [group] = groups {
        return group[held..].iter_mut().zip(pads).for_each(|(to, pad)| *to = byte(*pad));
    }
    for (at, element) in (held..).zip(pads.chunks_exact(groups.len())) {
        let at = at % GROUP;
        groups.iter_mut().zip(element).for_each(|(group, pad)| group[at] = byte(*pad));
    }
}
