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
use ring::plane;
use ring::word::mask;
use wire::{Channel, Cost, Result};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::cot::batch::{ReceiverBatch, SenderBatch};
use crate::cot::schedule::Schedule;
use crate::cot::{CotReceiver, CotSender, End, Side};
use crate::job::{Entry, Job};

/// Correlations made at a time.
const CHUNK: usize = 1 << 16;
/// Elements gathered before their pads are cut into planes.
const GROUP: usize = 64;
/// Entries of a table from which on pads come for few elements at a time.
const WIDE: usize = 32;

/// One value of every element.
#[derive(Clone, Default, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
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

/// Collects pads, element by element, into a column.
struct Collector {
    entry: Entry,
    count: usize,
    /// The bytes of the elements held that planes are cut from, [`GROUP`] of each place.
    bytes: Vec<u8>,
    held: usize,
    planes: Vec<Vec<u64>>,
    words: Vec<Vec<u64>>,
    masks: [u64; 2],
}

impl Collector {
    fn new(job: &Job) -> Self {
        let room = job.count.div_ceil(64);
        let mut masks = [0; 2];
        masks.iter_mut().zip(job.entry.words()).for_each(|(to, bits)| *to = mask(bits));
        Self {
            entry: job.entry,
            count: job.count,
            bytes: vec![0; job.entry.pad_planes().div_ceil(8) * GROUP],
            held: 0,
            planes: (0..job.entry.pad_planes()).map(|_| Vec::with_capacity(room)).collect(),
            words: job.entry.words().map(|_| Vec::with_capacity(job.count)).collect(),
            masks,
        }
    }

    fn extend<'a>(&mut self, pads: impl Iterator<Item = &'a u128>) {
        if self.planes.is_empty() {
            self.extend_words(pads);
        } else {
            pads.for_each(|pad| self.push(*pad));
        }
    }

    fn extend_words<'a>(&mut self, pads: impl Iterator<Item = &'a u128>) {
        let [low, high] = self.masks;
        match self.words.as_mut_slice() {
            [first] => first.extend(pads.map(|pad| *pad as u64 & low)),
            [first, second] => pads.for_each(|pad| {
                first.push(*pad as u64 & low);
                second.push((pad >> 64) as u64 & high);
            }),
            _ => {}
        }
    }

    #[inline]
    fn extend_one(&mut self, pad: u128) {
        if self.planes.is_empty() {
            self.extend_words(std::iter::once(&pad));
        } else {
            self.push(pad);
        }
    }

    #[inline]
    fn push(&mut self, pad: u128) {
        let places = self.bytes.chunks_exact_mut(GROUP);
        for (place, byte) in places.zip(pad.to_le_bytes()) {
            place[self.held] = byte;
        }
        self.held += 1;
        if self.held == GROUP {
            self.cut();
        }
    }

    /// Appends the bits of the elements held to the planes.
    fn cut(&mut self) {
        for (bit, plane) in (0u32..).zip(&mut self.planes) {
            let bytes = &self.bytes[GROUP * (bit / 8) as usize..][..self.held];
            plane::gather(bytes, bit % 8, plane);
        }
        self.held = 0;
    }

    fn finish(mut self) -> Column {
        if self.held > 0 {
            self.cut();
        }
        debug_assert_eq!(self.planes.len(), self.entry.pad_planes());
        let planes = std::mem::take(&mut self.planes);
        let planes = planes.into_iter().map(|words| Bits::new(words, self.count)).collect();
        Column { planes, words: std::mem::take(&mut self.words) }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.bytes.zeroize();
        self.planes.zeroize();
        self.words.zeroize();
    }
}

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
        for piece in pieces(&job) {
            making.add(next(piece * job.choice_bits as usize)?, piece);
        }
        Ok(making.finish())
    }
}

/// The sender's.
pub(crate) struct Sending {
    job: Job,
    columns: Vec<Collector>,
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
        Self { job, columns: (0..job.entries()).map(|_| Collector::new(&job)).collect() }
    }

    fn add(&mut self, mut batch: SenderBatch, count: usize) {
        let Self { job, columns } = self;
        batch.pads(job.choice_bits, count, |pads| {
            if job.entries() < WIDE {
                for (j, column) in columns.iter_mut().enumerate() {
                    column.extend(pads.iter().skip(j).step_by(job.entries()));
                }
                return;
            }
            for element in pads.chunks_exact(job.entries()) {
                columns.iter_mut().zip(element).for_each(|(column, pad)| column.extend_one(*pad));
            }
        });
    }

    fn finish(self) -> SenderPads {
        let pads = self.columns.into_iter().map(Collector::finish).collect();
        SenderPads { job: self.job, pads }
    }
}

impl Making<ReceiverBatch> for Receiving {
    type Pads = ReceiverPads;

    fn begin(job: Job) -> Self {
        let choices = Job { entry: Entry::Bits(job.choice_bits), ..job };
        Self { job, choices: Collector::new(&choices), opened: Collector::new(&job) }
    }

    fn add(&mut self, mut batch: ReceiverBatch, count: usize) {
        let Self { job, choices, opened } = self;
        batch.pads(job.choice_bits, count, |choice, pads| {
            choice.iter().for_each(|choice| choices.push(u128::from(*choice)));
            opened.extend(pads.iter());
        });
    }

    fn finish(self) -> ReceiverPads {
        let choices = std::mem::take(&mut self.choices.finish().planes);
        ReceiverPads { job: self.job, choices, opened: self.opened.finish() }
    }
}

/// The numbers of elements of a job that are made together.
pub(crate) fn pieces(job: &Job) -> impl Iterator<Item = usize> + use<> {
    let (count, most) = (job.count, CHUNK / 8);
    (0..count).step_by(most).map(move |done| most.min(count - done))
}

/// Correlations to ask for when `left` are still to be taken in this phase.
pub(crate) fn ask(left: usize) -> usize {
    left.min(CHUNK)
}

/// Announces the correlations of `jobs`, and returns what takes the next of them, extending
/// `source` as needed.
fn correlations<S: Side>(
    channel: &mut Channel,
    source: &mut End<S>,
    jobs: &[Job],
) -> Result<impl FnMut(usize) -> Result<S::Batch>> {
    jobs.iter().try_for_each(Job::check)?;
    let mut left: usize = jobs.iter().map(Job::cots).sum();
    source.reserve(left);
    Ok(move |count: usize| {
        if source.available() < count {
            source.extend(channel, ask(left))?;
        }
        left -= count;
        source.split_off(count)
    })
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
    let mut next = correlations(channel, source, jobs)?;
    jobs.iter().map(|job| Sending::all(*job, &mut next)).collect()
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
    let mut next = correlations(channel, source, jobs)?;
    jobs.iter().map(|job| Receiving::all(*job, &mut next)).collect()
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
