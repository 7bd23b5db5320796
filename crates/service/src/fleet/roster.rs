//! The servers of a fleet as its door knows them, and the choice of one for a session. No network
//! and no file.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::fleet::choice::{Choice, Chosen, Wanted};
use crate::fleet::talk::{Beat, Join, ModelNews, number};
use crate::fleet::ticket::Id;

/// A server that was silent for so long gets no new tickets.
pub(crate) const SILENT: Duration = Duration::from_millis(1500);
/// Sessions are short if they take less than this on average, in seconds: the way from the door is felt then, and waiting for the
/// wrong server is not.
const SHORT: f64 = 1.0;
/// Names of base OTs that are remembered, of all servers.
const MOST_KEPT: usize = 1 << 17;
/// Servers that are gone and still shown.
const MOST_GONE: usize = 64;

/// How a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// It has joined and not yet said that it is ready.
    Starting,
    /// It takes sessions.
    Ready,
    /// It takes those alone whose tickets are out.
    Draining,
    /// Its control connection has ended.
    Gone,
}

/// One server.
pub(crate) struct Entry {
    pub(crate) id: String,
    /// This run of it.
    pub(crate) run: [u8; 16],
    pub(crate) address: String,
    /// Where browsers reach it, if they do.
    pub(crate) websocket: Option<String>,
    pub(crate) models: Vec<ModelNews>,
    limit: usize,
    pub(crate) beat: Beat,
    heard: Instant,
    since: Instant,
    pub(crate) state: State,
    /// To be told to drain, with so many seconds.
    pub(crate) drain: Option<f64>,
    /// Tickets that are out: until when, and whose.
    out: HashMap<Id, Instant>,
    /// The last of its metrics and sessions.
    pub(crate) metrics: String,
    pub(crate) list: serde_json::Value,
}

impl Entry {
    fn is_taking(&self, now: Instant) -> bool {
        self.state == State::Ready && self.drain.is_none() && !self.is_silent(now)
    }

    fn is_silent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.heard) > SILENT
    }

    /// Sessions that it has or is about to have.
    fn load(&self) -> usize {
        self.beat.running + self.beat.waiting + self.out.len()
    }

    /// Sessions that it may have. One that may run more than it is allowed now gets one more, so
    /// that it notices, and one of short sessions gets one that is there when another ends.
    fn room(&self) -> usize {
        let next = usize::from(self.beat.mean.is_some_and(|mean| mean < SHORT));
        (self.beat.allowed + 1).min(self.limit).max(1) + next
    }

    /// The part of its limit that it has or is about to have. Of what it is allowed now the choice
    /// does not depend, or one that was just allowed more would draw all clients at once.
    fn fullness(&self) -> f64 {
        self.load() as f64 / self.limit.max(1) as f64
    }

    /// Where clients reach it, or browsers.
    fn reached(&self, browser: bool) -> Option<&String> {
        if browser { self.websocket.as_ref() } else { Some(&self.address) }
    }

    fn has(&self, wanted: &Wanted) -> Option<&ModelNews> {
        let named = |model: &&ModelNews| {
            wanted.model == [0; 32] || runtime::model_name(&model.name) == wanted.model
        };
        let shows =
            |model: &&ModelNews| wanted.reveal.is_none_or(|reveal| model.reveals.contains(&reveal));
        let mut found = self.models.iter().filter(named).filter(shows);
        let first = found.next()?;
        // Who names no model wants the only one.
        (wanted.model != [0; 32] || self.models.len() == 1).then_some(first)
    }
}

/// What a server is shown as.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Shown {
    id: String,
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    websocket: Option<String>,
    state: State,
    silent: bool,
    models: Vec<String>,
    running: usize,
    waiting: usize,
    allowed: usize,
    limit: usize,
    kept: usize,
    prepared: usize,
    memory_bytes: u64,
    sessions: u64,
    tickets: usize,
    since: f64,
}

/// All servers, by their names.
#[derive(Default)]
pub(crate) struct Roster {
    servers: HashMap<String, Entry>,
    /// Which server keeps base OTs, by short hashes of their names.
    kept: HashMap<String, String>,
}

impl Roster {
    /// Takes a server in; an earlier run of it has ended.
    pub(crate) fn join(&mut self, join: Join, now: Instant) -> Result<[u8; 16], String> {
        let run = number(&join.run).ok_or("the run of a server has 32 hexadecimal digits")?;
        self.forget(&join.server);
        self.keep(&join.server, join.kept);
        let entry = Entry {
            id: join.server.clone(),
            run,
            address: join.address,
            websocket: join.websocket,
            models: join.models,
            limit: join.limit.max(1),
            beat: Beat::default(),
            heard: now,
            since: now,
            state: State::Starting,
            drain: None,
            out: HashMap::new(),
            metrics: String::new(),
            list: serde_json::Value::Null,
        };
        self.servers.insert(join.server, entry);
        self.thin();
        Ok(run)
    }

    /// Shows only the latest of the servers that are gone.
    fn thin(&mut self) {
        let gone = |entry: &&Entry| entry.state == State::Gone;
        while self.servers.values().filter(gone).count() > MOST_GONE {
            let oldest = self.servers.values().filter(gone).min_by_key(|entry| entry.heard);
            let Some(oldest) = oldest.map(|entry| entry.id.clone()) else { return };
            self.servers.remove(&oldest);
        }
    }

    fn keep(&mut self, server: &str, names: Vec<String>) {
        for name in names {
            if self.kept.len() < MOST_KEPT {
                self.kept.insert(name, server.into());
            }
        }
    }

    fn forget(&mut self, server: &str) {
        self.kept.retain(|_, keeper| keeper != server);
    }

    /// Hears what a run of a server does; returns whether it is new that it is ready or drains, what it is to do, and how
    /// many of its tickets are out. `None` for a run that another has replaced.
    pub(crate) fn beat(
        &mut self,
        server: &str,
        run: &[u8; 16],
        mut beat: Beat,
        now: Instant,
    ) -> Option<(Option<State>, Option<f64>, usize)> {
        self.keep(server, std::mem::take(&mut beat.kept));
        let entry = self.servers.get_mut(server).filter(|entry| entry.run == *run)?;
        for id in beat.shown.iter().filter_map(|id| number(id)) {
            entry.out.remove(&id);
        }
        entry.out.retain(|_, until| *until > now);
        if let Some(metrics) = beat.metrics.take() {
            entry.metrics = metrics;
        }
        if let Some(list) = beat.list.take() {
            entry.list = list;
        }
        if let Some(models) = beat.models.take() {
            entry.models = models;
        }
        let state = if beat.draining { State::Draining } else { State::Ready };
        let changed = (entry.state != state).then_some(state);
        (entry.state, entry.heard, entry.beat) = (state, now, beat);
        Some((changed, entry.drain, entry.out.len()))
    }

    /// Notes that a run of a server is gone; whether it was there.
    pub(crate) fn leave(&mut self, server: &str, run: &[u8; 16]) -> bool {
        let Some(entry) = self.servers.get_mut(server).filter(|entry| entry.run == *run) else {
            return false;
        };
        let was = entry.state;
        entry.state = State::Gone;
        (entry.beat.running, entry.beat.waiting) = (0, 0);
        entry.out.clear();
        self.forget(server);
        was != State::Gone
    }

    /// Takes a server out of the choice, to be told so; whether there is one.
    pub(crate) fn drain(&mut self, server: &str, seconds: f64) -> bool {
        let there = self.servers.get_mut(server).filter(|entry| entry.state != State::Gone);
        there.map(|entry| entry.drain = Some(seconds)).is_some()
    }

    /// The server for a client: one that keeps its base OTs, or that with least to do.
    pub(crate) fn choose(&self, wanted: &Wanted, now: Instant) -> Choice {
        let (mut known, mut reached) = (false, false);
        let mut best: Option<(f64, &Entry, &ModelNews)> = None;
        let keeper = wanted.kept.as_ref().and_then(|kept| self.kept.get(kept));
        for entry in self.servers.values() {
            let Some(model) = entry.has(wanted) else { continue };
            known = true;
            if entry.reached(wanted.browser).is_none() {
                continue;
            }
            reached = true;
            let (load, room) = (entry.load(), entry.room());
            if !entry.is_taking(now) || load >= room {
                continue;
            }
            if keeper == Some(&entry.id) {
                best = Some((0.0, entry, model));
                break;
            }
            let load = entry.fullness();
            let better = best.is_none_or(|(least, other, _)| {
                (load, entry.beat.sessions, &entry.id) < (least, other.beat.sessions, &other.id)
            });
            if better {
                best = Some((load, entry, model));
            }
        }
        match best {
            Some((_, entry, model)) => Choice::Server(Chosen {
                server: entry.id.clone(),
                run: entry.run,
                address: entry.reached(wanted.browser).cloned().unwrap_or_default(),
                model: model.clone(),
            }),
            None if known && !reached => Choice::NoWebSocket,
            None if known || self.servers.is_empty() => Choice::Full,
            None => Choice::Unknown(self.models()),
        }
    }

    /// The server for a client that is passed on, of whom nothing is known but whether it is a `browser`: that
    /// with least to do.
    pub(crate) fn choose_any(
        &self,
        browser: bool,
        now: Instant,
    ) -> Option<(String, [u8; 16], String)> {
        let fits = |entry: &&Entry| entry.is_taking(now) && entry.reached(browser).is_some();
        let taking = self.servers.values().filter(fits);
        let best = taking.min_by(|a, b| {
            let key = |entry: &Entry| (entry.fullness(), entry.beat.sessions);
            key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal)
        })?;
        Some((best.id.clone(), best.run, best.reached(browser)?.clone()))
    }

    /// Names of models of servers that are not gone.
    pub(crate) fn models(&self) -> Vec<String> {
        let there = self.servers.values().filter(|entry| entry.state != State::Gone);
        let mut names: Vec<String> =
            there.flat_map(|entry| entry.models.iter().map(|model| model.name.clone())).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Notes that a ticket for a run of a server is out.
    pub(crate) fn give(&mut self, chosen: (&str, &[u8; 16]), id: Id, until: Instant) {
        let entry = self.servers.get_mut(chosen.0).filter(|entry| entry.run == *chosen.1);
        if let Some(entry) = entry {
            entry.out.insert(id, until);
        }
    }

    /// Notes that a ticket is no longer out.
    pub(crate) fn take_back(&mut self, id: &Id) {
        for entry in self.servers.values_mut() {
            entry.out.remove(id);
        }
    }

    /// All servers as others see them, by their names.
    pub(crate) fn shown(&self, now: Instant) -> Vec<Shown> {
        let mut all: Vec<Shown> = self
            .servers
            .values()
            .map(|entry| Shown {
                id: entry.id.clone(),
                address: entry.address.clone(),
                websocket: entry.websocket.clone(),
                state: if entry.state == State::Ready && entry.drain.is_some() {
                    State::Draining
                } else {
                    entry.state
                },
                silent: entry.state != State::Gone && entry.is_silent(now),
                models: entry.models.iter().map(|model| model.name.clone()).collect(),
                running: entry.beat.running,
                waiting: entry.beat.waiting,
                allowed: entry.beat.allowed,
                limit: entry.limit,
                kept: entry.beat.keeps,
                prepared: entry.beat.prepared,
                memory_bytes: entry.beat.memory,
                sessions: entry.beat.sessions,
                tickets: entry.out.len(),
                since: now.saturating_duration_since(entry.since).as_secs_f64(),
            })
            .collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    /// How many servers are in each state.
    pub(crate) fn states(&self, now: Instant) -> Vec<(String, usize)> {
        let mut counts: HashMap<&'static str, usize> = HashMap::new();
        for shown in self.shown(now) {
            let state = match (shown.state, shown.silent) {
                (State::Gone, _) => "gone",
                (_, true) => "silent",
                (State::Starting, _) => "starting",
                (State::Ready, _) => "ready",
                (State::Draining, _) => "draining",
            };
            *counts.entry(state).or_default() += 1;
        }
        counts.into_iter().map(|(state, count)| (state.into(), count)).collect()
    }

    /// The servers that are there, for their metrics.
    pub(crate) fn present(&self) -> impl Iterator<Item = &Entry> {
        self.servers.values().filter(|entry| entry.state != State::Gone)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
