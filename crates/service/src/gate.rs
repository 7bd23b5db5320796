//! Room for sessions: so many at a time, within so much memory, and a queue for those that come
//! later.
//!
//! Clients take turns: the next session is of the client of which fewest run, and among those of
//! the one that has waited longest. When the queue is full, a client of which few wait displaces
//! the latest of the client of which most do, so that nobody can fill the queue for others.
//!
//! How many sessions run at a time, up to what the operator allows, follows from how busy the
//! processors are ([`Pace`]).

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wire::Admission;

use crate::pace::{LOOK, Pace};

/// What sessions take when nothing is known yet.
const FIRST_GUESS: Duration = Duration::from_secs(1);
/// Weight of the latest session in the mean of their durations.
const LATEST: f64 = 0.1;

/// How much room there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Sessions at the same time, at most.
    pub(crate) sessions: usize,
    /// Sessions that wait.
    pub(crate) waiting: usize,
    /// Bytes that all sessions may hold together.
    pub(crate) memory: u64,
}

/// Sessions that run and sessions that wait.
pub(crate) struct Gate {
    room: Room,
    state: Mutex<State>,
}

struct State {
    pace: Pace,
    running: usize,
    /// Sessions that run, by client.
    by_client: HashMap<Arc<str>, usize>,
    memory: u64,
    queue: VecDeque<Waiting>,
    next: u64,
    mean: Option<f64>,
}

struct Waiting {
    number: u64,
    client: Arc<str>,
    bytes: u64,
    turn: Sender<Turn>,
}

/// The right to run a session; it ends when this is dropped.
pub(crate) struct Slot {
    gate: Arc<Gate>,
    client: Arc<str>,
    bytes: u64,
    since: Instant,
}

/// How waiting ends.
pub(crate) enum Turn {
    /// The session may begin.
    Come(Slot),
    /// Another client took the place in the queue.
    Displaced(Full),
}

/// A place in the queue, or a slot already.
pub(crate) enum Place {
    /// The session may begin.
    Now(Slot),
    /// It waits.
    Later(Queued),
}

/// A place in the queue.
pub(crate) struct Queued {
    gate: Arc<Gate>,
    number: u64,
    turn: Receiver<Turn>,
}

/// A gate without room even for waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    /// Sessions that wait.
    pub(crate) waiting: usize,
    /// When it is worth coming back.
    pub(crate) again: Duration,
}

impl Full {
    /// What a client is told.
    pub(crate) fn refusal(&self) -> Admission {
        let why = match self.waiting {
            1 => "the server is full, 1 session waits".into(),
            waiting => format!("the server is full, {waiting} sessions wait"),
        };
        Admission::busy(self.again, why)
    }
}

impl Gate {
    /// A gate of a machine with so many cores.
    pub(crate) fn new(room: Room, cores: usize) -> Arc<Self> {
        let state = State {
            pace: Pace::new(cores, room.sessions),
            running: 0,
            by_client: HashMap::new(),
            memory: 0,
            queue: VecDeque::new(),
            next: 0,
            mean: None,
        };
        Arc::new(Self { room, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a session of `client` with `bytes` of memory, or a place in the queue. A session
    /// that needs more than there is at all runs alone.
    pub(crate) fn enter(self: &Arc<Self>, client: &str, bytes: u64) -> Result<Place, Full> {
        let (client, bytes) = (Arc::from(client), bytes.min(self.room.memory));
        let mut state = self.state();
        state.look();
        if state.queue.is_empty() && self.has_room(&state, bytes) {
            return Ok(Place::Now(self.begin(&mut state, client, bytes)));
        }
        if state.queue.len() >= self.room.waiting {
            self.displace(&mut state, &client)?;
        }
        let (sender, turn) = mpsc::channel();
        let number = state.next;
        state.next += 1;
        state.queue.push_back(Waiting { number, client, bytes, turn: sender });
        Ok(Place::Later(Queued { gate: self.clone(), number, turn }))
    }

    /// Makes room in a full queue for a client of which fewer wait than of another.
    fn displace(&self, state: &mut State, client: &Arc<str>) -> Result<(), Full> {
        let waiting = state.queue.len();
        let full = Full { waiting, again: self.wait(state, waiting) };
        let mut counts: HashMap<&Arc<str>, usize> = HashMap::new();
        for one in &state.queue {
            *counts.entry(&one.client).or_default() += 1;
        }
        let own = counts.get(client).copied().unwrap_or(0);
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        let (most, _) = most.filter(|(_, count)| own + 1 < *count).ok_or(full)?;
        let latest = state.queue.iter().rposition(|one| one.client == *most).ok_or(full)?;
        if let Some(gone) = state.queue.remove(latest) {
            // One that has left by itself needs no answer.
            let _ = gone.turn.send(Turn::Displaced(full));
        }
        Ok(())
    }

    fn has_room(&self, state: &State, bytes: u64) -> bool {
        let memory = state.memory.saturating_add(bytes);
        state.running < state.pace.sessions() && memory <= self.room.memory
    }

    fn begin(self: &Arc<Self>, state: &mut State, client: Arc<str>, bytes: u64) -> Slot {
        state.running += 1;
        state.pace.running(state.running);
        *state.by_client.entry(client.clone()).or_default() += 1;
        state.memory = state.memory.saturating_add(bytes);
        Slot { gate: self.clone(), client, bytes, since: Instant::now() }
    }

    /// How long those that run and half of `waiting` sessions take, about: who is told to come back
    /// finds room in the queue then, and work that is left.
    fn wait(&self, state: &State, waiting: usize) -> Duration {
        // Before any has ended, a guess that is too long would leave processors idle.
        let (mean, at_once) = match state.mean {
            Some(mean) => (mean, state.pace.sessions()),
            None => (FIRST_GUESS.as_secs_f64(), self.room.sessions.max(1)),
        };
        let rounds = (waiting.div_ceil(2) + state.running) as f64 / at_once as f64;
        Duration::try_from_secs_f64(mean * rounds).unwrap_or(FIRST_GUESS).max(FIRST_GUESS)
    }

    /// Sessions that may run at the same time.
    pub(crate) const fn sessions(&self) -> usize {
        self.room.sessions
    }

    /// Sessions that run, and sessions that wait.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.state();
        (state.running, state.queue.len())
    }

    /// Mean seconds of a session, once one has ended.
    pub(crate) fn mean(&self) -> Option<f64> {
        self.state().mean
    }

    /// Lets those in who wait for nothing but processors, now and from now on.
    pub(crate) fn let_all_run(self: &Arc<Self>) {
        self.state().pace.let_all_run();
        self.admit();
    }

    /// Returns how many sessions may run now, for what the processors do.
    pub(crate) fn allowed(&self) -> usize {
        self.state().pace.sessions()
    }

    /// Returns how many sessions there may be, and the bytes that they may hold and do.
    pub(crate) fn room(&self) -> (Room, u64) {
        (self.room, self.state().memory)
    }

    /// Lets those in who have room now.
    fn admit(self: &Arc<Self>) {
        loop {
            let (slot, turn) = {
                let mut state = self.state();
                if state.running >= state.pace.sessions() {
                    return;
                }
                let Some(next) = state.next() else { return };
                if !state.queue.get(next).is_some_and(|next| self.has_room(&state, next.bytes)) {
                    return;
                }
                let Some(next) = state.queue.remove(next) else { return };
                (self.begin(&mut state, next.client, next.bytes), next.turn)
            };
            // One that has left gives its slot back as it is dropped, which is the next turn's.
            drop(turn.send(Turn::Come(slot)));
        }
    }
}

impl State {
    /// Looks at the processors, if that is due.
    fn look(&mut self) {
        self.pace.look(self.running, !self.queue.is_empty());
    }

    /// What decides when each of the queue begins: how many of its client come before it or run,
    /// and its number; the least begins first.
    fn order(&self) -> Vec<(usize, u64)> {
        let mut ahead: HashMap<&Arc<str>, usize> = HashMap::new();
        let key = |one: &'_ Waiting, ahead: &usize| {
            (ahead + self.by_client.get(&one.client).unwrap_or(&0), one.number)
        };
        let mut keys = Vec::with_capacity(self.queue.len());
        for one in &self.queue {
            let ahead = ahead.entry(&one.client).or_default();
            keys.push(key(one, ahead));
            *ahead += 1;
        }
        keys
    }

    /// The place in the queue of the session that begins next.
    fn next(&self) -> Option<usize> {
        let keys = self.order();
        (0..keys.len()).min_by_key(|place| keys.get(*place))
    }
}

impl Queued {
    /// Sessions that begin before this one, if no more come.
    pub(crate) fn before(&self) -> usize {
        let keys = self.gate.state().order();
        let own = keys.iter().find(|key| key.1 == self.number);
        own.map_or(0, |own| keys.iter().filter(|key| *key < own).count())
    }

    /// Waits up to `patience` for what becomes of it. Those who wait see to it that processors
    /// without work are noticed.
    pub(crate) fn wait(&self, patience: Duration) -> Option<Turn> {
        let until = Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if let Ok(turn) = self.turn.recv_timeout(left.min(LOOK)) {
                return Some(turn);
            }
            if left.is_zero() {
                return None;
            }
            self.gate.state().look();
            self.gate.admit();
        }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.gate.state().queue.retain(|other| other.number != self.number);
        self.gate.admit();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        {
            let mut state = self.gate.state();
            state.running = state.running.saturating_sub(1);
            state.look();
            state.memory = state.memory.saturating_sub(self.bytes);
            if let Some(running) = state.by_client.get_mut(&self.client) {
                *running = running.saturating_sub(1);
                if *running == 0 {
                    state.by_client.remove(&self.client);
                }
            }
            let took = self.since.elapsed().as_secs_f64();
            let mean = state.mean.unwrap_or(took);
            state.mean = Some(mean + LATEST * (took - mean));
        }
        self.gate.admit();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
