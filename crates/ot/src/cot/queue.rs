//! Correlations in the order of a direction's stream, of which some are still to be made.
//!
//! What a message makes is a *chunk*. Correlations of Ferret follow from a message alone, which is a hundred
//! times smaller than they are, so a chunk may stay a message until somebody needs it: a party makes
//! it while it waits for the other, or when it is used. Whether it is made at once or later changes nothing that is
//! sent.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use wire::{Error, Result};

use super::end::Side;

/// The secrets of correlations that are made.
pub(crate) trait Made: Sized + Send {
    /// Number of correlations.
    fn len(&self) -> usize;

    /// Returns the correlations at `range` without copying them. A queue asks for each once.
    fn part(&self, range: Range<usize>) -> Self;

    /// Copies all `count` correlations of several parts, and drops each part once it is copied.
    ///
    /// # Errors
    /// That of a part which cannot be made.
    fn join(count: usize, parts: impl Iterator<Item = Result<Self>>) -> Result<Self>;
}

/// What one message, or a few, makes.
pub(crate) enum Chunk<S: Side> {
    /// Correlations that are there.
    Made(S::Made),
    /// So many that are not made yet.
    Later(S::Later, usize),
    /// Correlations whose making failed.
    Failed(Error),
}

/// Some of the correlations of a chunk.
struct Part<S: Side> {
    chunk: Arc<Mutex<Chunk<S>>>,
    range: Range<usize>,
}

/// Correlations that have not been taken yet, first made first.
pub(crate) struct Queue<S: Side> {
    parts: VecDeque<Part<S>>,
    len: usize,
    /// The position of the first of them in the session's stream.
    first: u64,
}

impl<S: Side> Chunk<S> {
    fn len(&self) -> usize {
        match self {
            Self::Made(made) => made.len(),
            Self::Later(_, count) => *count,
            Self::Failed(_) => 0,
        }
    }

    /// The correlations, which are made now if they are not there.
    fn made(&mut self, threads: usize) -> Result<&mut S::Made> {
        if let Self::Later(later, count) = self {
            *self = match S::make(later, *count, threads) {
                Ok(made) => Self::Made(made),
                Err(error) => Self::Failed(error),
            };
        }
        match self {
            Self::Made(made) => Ok(made),
            Self::Failed(error) => Err(error.clone()),
            Self::Later(..) => Err(Error::internal("correlations that are never made")),
        }
    }
}

impl<S: Side> Queue<S> {
    /// Nothing, before the correlation of this position.
    pub(crate) const fn new(first: u64) -> Self {
        Self { parts: VecDeque::new(), len: 0, first }
    }

    /// Number of correlations.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns how many of the first correlations are in one chunk.
    pub(crate) fn together(&self) -> usize {
        self.parts.front().map_or(0, |part| part.range.len())
    }

    /// The position of the first correlation in the session's stream.
    pub(crate) const fn first(&self) -> u64 {
        self.first
    }

    /// Appends a chunk.
    pub(crate) fn push(&mut self, chunk: Chunk<S>) {
        let range = 0..chunk.len();
        self.len += range.len();
        self.parts.push_back(Part { chunk: Arc::new(Mutex::new(chunk)), range });
    }

    /// Takes the first `count` out, or all when there are fewer. None of them is made.
    pub(crate) fn split_off(&mut self, count: usize) -> Self {
        let mut taken = Self::new(self.first);
        while taken.len < count
            && let Some(part) = self.parts.front_mut()
        {
            let now = part.range.len().min(count - taken.len);
            let range = part.range.start..part.range.start + now;
            part.range.start = range.end;
            taken.len += now;
            taken.parts.push_back(Part { chunk: Arc::clone(&part.chunk), range });
            if part.range.is_empty() {
                self.parts.pop_front();
            }
        }
        self.len -= taken.len;
        self.first += taken.len as u64;
        taken
    }

    /// The secrets of all, of which those that are not there are made now.
    ///
    /// # Errors
    /// [`Error::Peer`] when what the peer said of them is wrong.
    pub(crate) fn make(self, threads: usize) -> Result<S::Made> {
        let part = |Part { chunk, range }: Part<S>| {
            let mut chunk = chunk.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(chunk.made(threads)?.part(range))
        };
        let (one, mut parts) = (self.parts.len() == 1, self.parts.into_iter().map(part));
        match parts.next() {
            Some(part) if one => part,
            first => S::Made::join(self.len, first.into_iter().chain(parts)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::sender::SenderSide;
    use super::super::store::Store;
    use super::*;

    #[test]
    fn parts_of_a_chunk_are_not_copied_and_come_once() {
        let chunk = Store::from(vec![1, 2, 3]);
        let place = chunk.as_ptr();
        let mut queue = Queue::<SenderSide>::new(0);
        queue.push(Chunk::Made(chunk));
        queue.push(Chunk::Made(vec![4, 5, 6].into()));
        let first = queue.split_off(2).make(1).unwrap();
        assert_eq!((&*first, first.as_ptr()), (&[1, 2][..], place));
        let both = queue.split_off(3);
        assert_eq!((both.first(), both.len()), (2, 3));
        assert_eq!(*both.make(1).unwrap(), [3, 4, 5]);
        assert_eq!(*queue.make(1).unwrap(), [6]);
        assert!(Queue::<SenderSide>::new(0).make(1).unwrap().is_empty());
    }
}
