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
    /// Room for `count` correlations.
    fn with_room(count: usize) -> Self;

    /// Number of correlations.
    fn len(&self) -> usize;

    /// Moves those at `range` to the end of `into`, and leaves zeros.
    fn move_to(&mut self, range: Range<usize>, into: &mut Self);
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
        // A single part may be a whole chunk, which is moved without a copy. Room made for a copy would stay
        // behind in the chunk, and dropping it would touch and wipe all of it.
        let room = if self.parts.len() == 1 { 0 } else { self.len };
        let mut all = S::Made::with_room(room);
        for Part { chunk, range } in self.parts {
            let mut chunk = chunk.lock().unwrap_or_else(PoisonError::into_inner);
            chunk.made(threads)?.move_to(range, &mut all);
        }
        Ok(all)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use ring::Wiped;

    use super::super::sender::SenderSide;
    use super::*;

    #[test]
    fn whole_chunks_are_not_copied_and_parts_come_once() {
        let chunk = Wiped::new(vec![1, 2, 3]);
        let place = chunk.as_ptr();
        let mut queue = Queue::<SenderSide>::new(0);
        queue.push(Chunk::Made(chunk));
        queue.push(Chunk::Made(Wiped::new(vec![4, 5, 6])));
        let whole = queue.split_off(3).make(1).unwrap();
        assert_eq!((&**whole, whole.as_ptr()), (&[1, 2, 3][..], place));
        let part = queue.split_off(2);
        assert_eq!((part.first(), part.len()), (3, 2));
        assert_eq!(**part.make(1).unwrap(), [4, 5]);
        assert_eq!(**queue.make(1).unwrap(), [6]);
    }
}
