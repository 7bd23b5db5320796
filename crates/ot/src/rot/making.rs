//! Pads out of correlations, piece by piece.

use ring::Bits;
use ring::plane;
use ring::word::mask;
use wire::Result;
use zeroize::Zeroize;

use super::{Column, ReceiverPads, SenderPads, pieces};
use crate::cot::batch::{ReceiverBatch, SenderBatch};
use crate::job::{Entry, Job};

/// Elements gathered before their pads are cut into planes.
const GROUP: usize = 64;
/// Entries of a table from which on pads come for few elements at a time.
const WIDE: usize = 32;

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
                    column.extend(pads, j, job.entries());
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
            opened.extend(pads, 0, 1);
        });
    }

    fn finish(self) -> ReceiverPads {
        let choices = std::mem::take(&mut self.choices.finish().planes);
        ReceiverPads { job: self.job, choices, opened: self.opened.finish() }
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

    /// Takes every `step`-th pad from number `first` on.
    fn extend(&mut self, pads: &[u128], first: usize, step: usize) {
        if self.planes.is_empty() {
            return self.extend_words(pads.iter().skip(first).step_by(step));
        }
        let mut rest = pads.get(first..).unwrap_or_default();
        while !rest.is_empty() {
            let room = (GROUP - self.held).min(rest.len().div_ceil(step));
            let (now, later) = rest.split_at(rest.len().min(room * step));
            for (byte, place) in self.bytes.chunks_exact_mut(GROUP).enumerate() {
                let pads = now.iter().step_by(step);
                for (to, pad) in place[self.held..].iter_mut().zip(pads) {
                    *to = (pad >> (8 * byte)) as u8;
                }
            }
            self.held += room;
            if self.held == GROUP {
                self.cut();
            }
            rest = later;
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
