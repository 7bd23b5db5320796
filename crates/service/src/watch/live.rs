//! The sessions of the moment.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use std::time::Instant;

use serde::Serialize;

use crate::lock::locked;

/// A session that runs or waits, as others see it.
#[derive(Clone, Debug, Serialize)]
pub struct Session {
    /// Number of the connection.
    pub session: u64,
    /// The client's address.
    pub client: String,
    /// Who the client is, as a ledger names it.
    pub identity: Option<String>,
    /// The model's name.
    pub model: Option<String>,
    /// How far it has come.
    pub reached: &'static str,
    /// Inputs that were asked for; 0 before the parties agreed.
    pub inputs: usize,
    /// Inputs whose results the client has.
    pub answered: usize,
    /// Runs that are preprocessed and wait for their inputs.
    pub prepared: usize,
    /// Age in seconds.
    pub seconds: f64,
}

/// All sessions that have a thread.
#[derive(Default)]
pub(crate) struct Live(Mutex<HashMap<u64, Entry>>);

struct Entry {
    session: Session,
    stream: TcpStream,
    since: Instant,
}

impl Live {
    pub(crate) fn insert(&self, session: Session, stream: TcpStream) {
        let entry = Entry { stream, since: Instant::now(), session };
        locked(&self.0).insert(entry.session.session, entry);
    }

    pub(crate) fn remove(&self, session: u64) {
        locked(&self.0).remove(&session);
    }

    /// Removes a session once `tell` has told what became of it. Both are one step for everybody else: whoever finds
    /// no session here finds all reports, and whoever has read the report does not find the session any more.
    pub(crate) fn remove_after(&self, session: u64, tell: impl FnOnce()) {
        let mut all = locked(&self.0);
        tell();
        all.remove(&session);
    }

    pub(crate) fn is_empty(&self) -> bool {
        locked(&self.0).is_empty()
    }

    /// Notes how far a session has come.
    pub(crate) fn update(&self, session: u64, change: impl FnOnce(&mut Session)) {
        if let Some(entry) = locked(&self.0).get_mut(&session) {
            change(&mut entry.session);
        }
    }

    /// Breaks all connections off.
    pub(crate) fn shut(&self) {
        for entry in locked(&self.0).values() {
            // One that has ended by itself needs no end.
            let _ = entry.stream.shutdown(Shutdown::Both);
        }
    }

    /// The sessions by their numbers.
    pub(crate) fn sessions(&self) -> Vec<Session> {
        let aged = |entry: &Entry| Session {
            seconds: entry.since.elapsed().as_secs_f64(),
            ..entry.session.clone()
        };
        let mut all: Vec<Session> = locked(&self.0).values().map(aged).collect();
        all.sort_by_key(|session| session.session);
        all
    }
}
