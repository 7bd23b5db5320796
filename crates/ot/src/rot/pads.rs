//! Pads of one job at either party.

use std::fmt;

use ring::Bits;
use ring::wipe::wipe_all;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::job::Job;

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
