//! Base OTs that parties keep for later sessions with each other.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ot::Kept;

use crate::plan::Plan;
use crate::provenance::Provenance;

/// Base OTs that a client holds at a time: those of sessions that ran side by side.
const MOST: usize = 64;

/// The base OTs that a client has left from sessions with one server. Each serves one session; a
/// session that finds none, or a server that has forgotten them, makes new ones. Beside them it
/// remembers the plan of its last session.
#[derive(Default)]
pub struct KeptKeys {
    held: Mutex<VecDeque<Kept>>,
    known: Mutex<Option<Arc<Known>>>,
}

/// What a client remembers of its last session with a server.
pub(crate) struct Known {
    /// The model that it asked for by name, zeros for none.
    pub(super) model: [u8; 32],
    pub(crate) plan: Arc<Plan>,
    pub(crate) provenance: Provenance,
    /// The digest of the offer.
    pub(super) digest: [u8; 32],
}

/// What a session has of an earlier one, and whether it leaves something to a later one.
#[derive(Default)]
pub(crate) struct Keeping {
    /// Base OTs of an earlier session, which the peer has too.
    pub(crate) kept: Option<Kept>,
    /// Whether base OTs for a later session are made.
    pub(crate) keeps: bool,
}

impl KeptKeys {
    fn held(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is remembered of the last session.
    pub(crate) fn known(&self) -> Option<Arc<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers a session.
    pub(crate) fn remember(&self, session: Option<Arc<Known>>) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }

    /// Takes those that were kept last.
    pub(crate) fn take(&self) -> Option<Kept> {
        self.held().pop_back()
    }

    /// Returns the name of those that the next session takes.
    pub(crate) fn next(&self) -> Option<[u8; 32]> {
        self.held().back().map(Kept::name)
    }

    /// Keeps these too; the oldest give way when there are too many.
    pub(crate) fn put(&self, kept: Kept) {
        let mut held = self.held();
        if held.len() >= MOST {
            held.pop_front();
        }
        held.push_back(kept);
    }

    /// Returns how many sessions they are good for.
    pub fn len(&self) -> usize {
        self.held().len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for KeptKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptKeys(<for {} sessions>)", self.len())
    }
}
