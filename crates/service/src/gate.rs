//! Room for sessions: so many at a time, within so much memory, and a queue for those that come
//! later, first come, first served.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What sessions take when nothing is known yet.
const FIRST_GUESS: Duration = Duration::from_secs(1);
/// Weight of the latest session in the mean of their durations.
const LATEST: f64 = 0.1;

/// How much room there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Sessions at the same time.
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

#[derive(Default)]
struct State {
    running: usize,
    memory: u64,
    queue: VecDeque<Waiting>,
    next: u64,
    mean: Option<f64>,
}

struct Waiting {
    number: u64,
    bytes: u64,
    granted: Sender<Slot>,
}

/// The right to run a session; it ends when this is dropped.
pub(crate) struct Slot {
    gate: Arc<Gate>,
    bytes: u64,
    since: Instant,
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
    granted: Receiver<Slot>,
}

/// A gate without room even for waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    /// Sessions that wait.
    pub(crate) waiting: usize,
    /// When it is worth coming back.
    pub(crate) again: Duration,
}

impl Gate {
    pub(crate) fn new(room: Room) -> Arc<Self> {
        Arc::new(Self { room, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a session of `bytes` of memory, or a place in the queue. A session that needs
    /// more than there is at all runs alone.
    pub(crate) fn enter(self: &Arc<Self>, bytes: u64) -> Result<Place, Full> {
        let bytes = bytes.min(self.room.memory);
        let mut state = self.state();
        if state.queue.is_empty() && self.has_room(&state, bytes) {
            return Ok(Place::Now(self.begin(&mut state, bytes)));
        }
        let waiting = state.queue.len();
        if waiting >= self.room.waiting {
            return Err(Full { waiting, again: self.wait(&state, waiting) });
        }
        let (granted, grant) = mpsc::channel();
        let number = state.next;
        state.next += 1;
        state.queue.push_back(Waiting { number, bytes, granted });
        Ok(Place::Later(Queued { gate: self.clone(), number, granted: grant }))
    }

    fn has_room(&self, state: &State, bytes: u64) -> bool {
        let memory = state.memory.saturating_add(bytes);
        state.running < self.room.sessions && memory <= self.room.memory
    }

    fn begin(self: &Arc<Self>, state: &mut State, bytes: u64) -> Slot {
        state.running += 1;
        state.memory = state.memory.saturating_add(bytes);
        Slot { gate: self.clone(), bytes, since: Instant::now() }
    }

    /// How long `waiting` sessions and those that run take, about.
    fn wait(&self, state: &State, waiting: usize) -> Duration {
        let mean = state.mean.unwrap_or(FIRST_GUESS.as_secs_f64());
        let rounds = (waiting + state.running) as f64 / self.room.sessions.max(1) as f64;
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

    /// Lets those in who have room now.
    fn admit(self: &Arc<Self>) {
        loop {
            let (slot, granted) = {
                let mut state = self.state();
                let fits = |first: &Waiting| self.has_room(&state, first.bytes);
                if !state.queue.front().is_some_and(fits) {
                    return;
                }
                let Some(first) = state.queue.pop_front() else { return };
                (self.begin(&mut state, first.bytes), first.granted)
            };
            // One that has left gives its slot back as it is dropped, which is the next turn's.
            drop(granted.send(slot));
        }
    }
}

impl Queued {
    /// Sessions that begin before this one.
    pub(crate) fn before(&self) -> usize {
        let state = self.gate.state();
        state.queue.iter().take_while(|other| other.number != self.number).count()
    }

    /// Waits up to `patience` for a slot.
    pub(crate) fn wait(&self, patience: Duration) -> Option<Slot> {
        self.granted.recv_timeout(patience).ok()
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
            state.memory = state.memory.saturating_sub(self.bytes);
            let took = self.since.elapsed().as_secs_f64();
            let mean = state.mean.unwrap_or(took);
            state.mean = Some(mean + LATEST * (took - mean));
        }
        self.gate.admit();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(1);

    fn gate(sessions: usize, waiting: usize, memory: u64) -> Arc<Gate> {
        Gate::new(Room { sessions, waiting, memory })
    }

    fn now(place: Result<Place, Full>) -> Slot {
        match place {
            Ok(Place::Now(slot)) => slot,
            _ => panic!("no slot"),
        }
    }

    fn later(place: Result<Place, Full>) -> Queued {
        match place {
            Ok(Place::Later(queued)) => queued,
            _ => panic!("not queued"),
        }
    }

    #[test]
    fn sessions_run_in_the_order_in_which_they_came() {
        let gate = gate(2, 3, 100);
        let (first, second) = (now(gate.enter(1)), now(gate.enter(1)));
        let waiting: Vec<Queued> = (0..3).map(|_| later(gate.enter(1))).collect();
        assert_eq!(waiting.iter().map(Queued::before).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(gate.enter(1).err().map(|full| full.waiting), Some(3));
        assert!(waiting[0].wait(SOON).is_none());
        drop(first);
        let third = waiting[0].wait(SOON).unwrap();
        assert!(waiting[1].wait(SOON).is_none());
        drop((second, third));
        assert!(waiting[1].wait(SOON).is_some() && waiting[2].wait(SOON).is_some());
    }

    #[test]
    fn one_that_leaves_the_queue_holds_nobody_up_and_takes_no_slot_along() {
        let gate = gate(1, 9, 100);
        let first = now(gate.enter(1));
        let (second, third) = (later(gate.enter(1)), later(gate.enter(1)));
        drop(first);
        // The slot is second's by now, who never fetches it.
        drop(second);
        let slot = third.wait(SOON).unwrap();
        assert_eq!(gate.counts(), (1, 0));
        drop((slot, third));
        assert_eq!(gate.counts(), (0, 0));
    }

    #[test]
    fn memory_is_a_limit_of_its_own_and_what_never_fits_runs_alone() {
        let gate = gate(9, 9, 100);
        let (half, rest) = (now(gate.enter(60)), later(gate.enter(60)));
        let small = later(gate.enter(1));
        drop(half);
        let half = rest.wait(SOON).unwrap();
        let one = small.wait(SOON).unwrap();
        let huge = later(gate.enter(1 << 40));
        drop(half);
        assert!(huge.wait(SOON).is_none());
        drop(one);
        assert!(huge.wait(SOON).is_some());
    }

    #[test]
    fn the_time_to_come_back_grows_with_the_queue() {
        let gate = gate(2, 0, 100);
        let slots: Vec<Slot> = (0..2).map(|_| now(gate.enter(1))).collect();
        let full = gate.enter(1).err().unwrap();
        assert_eq!((full.waiting, full.again), (0, FIRST_GUESS));
        drop(slots);
    }
}
