//! Threads that help sessions, as many in a process as it has cores.
//!
//! All sessions of a process share the machine: beyond the thread that asks, a session gets the
//! helpers that no other session has at the moment, so that many sessions of many threads do not
//! slow each other down.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::host;

/// Threads that are free to help, beside those that run sessions.
static FREE: LazyLock<AtomicUsize> = LazyLock::new(|| AtomicUsize::new(host::threads()));

/// Helpers that are taken until this is dropped.
#[derive(Debug)]
pub struct Helpers(usize);

impl Helpers {
    /// Takes up to `most` of those that are free.
    pub fn take(most: usize) -> Self {
        let take = |free: usize| Some(free - most.min(free));
        let before = FREE.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
        Self(most.min(before.unwrap_or(0)))
    }

    /// Returns how many were taken.
    pub const fn count(&self) -> usize {
        self.0
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        FREE.fetch_add(self.0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_come_back_and_are_never_more_than_cores() {
        let taken = Helpers::take(usize::MAX);
        assert_eq!((taken.count(), Helpers::take(1).count()), (host::threads(), 0));
        drop(taken);
        for most in [1, usize::MAX] {
            assert_eq!(Helpers::take(most).count(), most.min(host::threads()));
        }
    }
}
