//! Attribution of bytes, rounds and seconds to phases and layers.

use std::time::Duration;

use ring::host::Instant;

use crate::cost::{Cost, Role};

/// When a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Once a session: hello, plan, keys, base OTs.
    Setup,
    /// Correlations, before or without the input.
    Preprocess,
    /// What needs the input.
    Online,
}

impl Phase {
    /// All phases in order.
    pub const ALL: [Self; 3] = [Self::Setup, Self::Preprocess, Self::Online];

    /// Returns the name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Preprocess => "offline",
            Self::Online => "online",
        }
    }
}

/// Traffic and time of one layer in one phase.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The phase.
    pub phase: Phase,
    /// Index of the layer in the plan; `None` for the session itself.
    pub layer: Option<usize>,
    /// What crossed the wire.
    pub cost: Cost,
    /// Wall-clock time spent, waiting included.
    pub time: Duration,
}

/// Counts what passes through a channel, under the current label.
#[derive(Debug)]
pub struct Meter {
    entries: Vec<Entry>,
    current: usize,
    since: Instant,
    paused: bool,
    total: Cost,
    /// The server's messages and the client's, where they cross.
    crossing: Option<[Cost; 2]>,
}

impl Meter {
    pub(crate) fn new() -> Self {
        let start =
            Entry { phase: Phase::Setup, layer: None, cost: Cost::NONE, time: Duration::ZERO };
        let (since, paused) = (Instant::now(), false);
        let (total, crossing) = (Cost::NONE, None);
        Self { entries: vec![start], current: 0, since, paused, total, crossing }
    }

    /// Attributes what follows to `layer` in `phase`.
    pub fn enter(&mut self, phase: Phase, layer: Option<usize>) {
        self.lap();
        self.paused = false;
        let found = self.entries.iter().position(|e| e.phase == phase && e.layer == layer);
        self.current = found.unwrap_or(self.entries.len());
        if found.is_none() {
            self.entries.push(Entry { phase, layer, cost: Cost::NONE, time: Duration::ZERO });
        }
    }

    /// Counts no time until something is entered.
    pub fn pause(&mut self) {
        self.lap();
        self.paused = true;
    }

    /// Returns everything counted so far. The rounds of an entry are the changes of
    /// direction that happened in it, so that entries add up to the total.
    pub fn entries(&mut self) -> &[Entry] {
        self.lap();
        &self.entries
    }

    /// Returns the sum over all entries, or over those of one phase.
    pub fn total(&mut self, phase: Option<Phase>) -> Entry {
        self.lap();
        let mut sum = Entry {
            phase: phase.unwrap_or(Phase::Online),
            layer: None,
            cost: Cost::NONE,
            time: Duration::ZERO,
        };
        for entry in self.entries.iter().filter(|e| phase.is_none_or(|p| p == e.phase)) {
            sum.cost.client_to_server += entry.cost.client_to_server;
            sum.cost.server_to_client += entry.cost.server_to_client;
            sum.cost.rounds += entry.cost.rounds;
            sum.time += entry.time;
        }
        sum
    }

    /// Everything counted so far, as one step.
    pub fn cost(&self) -> Cost {
        self.total
    }

    /// What follows is a run of each party's messages, the server's first, in whatever order they come.
    pub(crate) fn cross(&mut self) {
        self.crossing = Some([Cost::NONE; 2]);
    }

    /// Counts what has crossed.
    pub(crate) fn crossed(&mut self) {
        for run in self.crossing.take().unwrap_or_default() {
            if run.first.is_some() {
                self.count(run);
            }
        }
    }

    pub(crate) fn count(&mut self, message: Cost) {
        if let Some(runs) = &mut self.crossing {
            let [server, client] = runs;
            let run = if message.first == Some(Role::Server) { server } else { client };
            *run = run.then(message);
            return;
        }
        let turned = message.first != self.total.last;
        self.total = self.total.then(message);
        if let Some(entry) = self.entries.get_mut(self.current) {
            entry.cost.client_to_server += message.client_to_server;
            entry.cost.server_to_client += message.server_to_client;
            entry.cost.rounds += u64::from(turned);
            entry.cost.first = entry.cost.first.or(message.first);
            entry.cost.last = message.last;
        }
    }

    /// Counts a message that is sent aside: the bytes of preprocessing, and no round.
    pub(crate) fn count_aside(&mut self, message: Cost) {
        self.total.client_to_server += message.client_to_server;
        self.total.server_to_client += message.server_to_client;
        let found =
            self.entries.iter().position(|e| (e.phase, e.layer) == (Phase::Preprocess, None));
        let at = found.unwrap_or(self.entries.len());
        if found.is_none() {
            let (phase, layer, time) = (Phase::Preprocess, None, Duration::ZERO);
            self.entries.push(Entry { phase, layer, cost: Cost::NONE, time });
        }
        if let Some(entry) = self.entries.get_mut(at) {
            entry.cost.client_to_server += message.client_to_server;
            entry.cost.server_to_client += message.server_to_client;
        }
    }

    /// Whether the last message was one of `role`, and messages do not cross.
    pub(crate) fn ends_with(&self, role: Role) -> bool {
        self.total.last == Some(role) && self.crossing.is_none()
    }

    fn lap(&mut self) {
        let now = Instant::now();
        if let Some(entry) = self.entries.get_mut(self.current).filter(|_| !self.paused) {
            entry.time += now - self.since;
        }
        self.since = now;
    }
}
