//! What a door counts, for Prometheus.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use wire::{Error, TransportKind};

use super::metrics::{Labels, release};

/// Bounds of the histogram: 0.1 ms to 52 s.
const SHORTEST: f64 = 0.0001;
const BUCKETS: u16 = 20;

/// What is counted from the start of a door on.
pub(crate) struct Counters {
    registry: Registry,
    refusals: Family<Labels, Counter>,
    failed: Family<Labels, Counter>,
    control: Family<Labels, Counter>,
    relayed: Counter,
    seconds: Histogram,
    tickets: Family<Labels, Gauge>,
    now: Family<Labels, Gauge>,
    servers: Family<Labels, Gauge>,
}

impl Counters {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let made = Self {
            registry: Registry::default(),
            refusals: Family::default(),
            failed: Family::default(),
            control: Family::default(),
            relayed: Counter::default(),
            seconds: Histogram::new(exponential_buckets(SHORTEST, 2.0, BUCKETS)),
            tickets: Family::default(),
            now: Family::default(),
            servers: Family::default(),
        };
        let r = &mut registry;
        r.register("tacit_door_refusals", "Clients the door turned away", made.refusals.clone());
        let failed = "Connections that never became a request";
        r.register("tacit_door_requests_failed", failed, made.failed.clone());
        let control = "Control connections that failed, by reason";
        r.register("tacit_door_control_failed", control, made.control.clone());
        r.register("tacit_door_relayed", "Clients that were passed on", made.relayed.clone());
        let seconds = "Seconds from a whole request to its ticket, queue included";
        r.register("tacit_door_ticket_seconds", seconds, made.seconds.clone());
        let tickets = "Tickets since the start, by what became of them";
        r.register("tacit_door_tickets", tickets, made.tickets.clone());
        let now = "Clients of the moment: connected, waiting, relayed";
        r.register("tacit_door_clients", now, made.now.clone());
        r.register("tacit_door_servers", "Servers by state", made.servers.clone());
        release(r);
        Self { registry, ..made }
    }

    pub(crate) fn refuse(&self, reason: &str) {
        self.refusals.get_or_create(&vec![("reason", reason.into())]).inc();
    }

    pub(crate) fn fail(&self, error: &Error) {
        self.failed.get_or_create(&vec![("reason", reason(error).into())]).inc();
    }

    pub(crate) fn control(&self, error: &Error) {
        self.control.get_or_create(&vec![("reason", reason(error).into())]).inc();
    }

    pub(crate) fn relay(&self) {
        self.relayed.inc();
    }

    pub(crate) fn ticket(&self, seconds: f64) {
        self.seconds.observe(seconds);
    }

    /// All numbers, those of the moment included, as text.
    pub(crate) fn render(
        &self,
        tickets: &[(&'static str, u64)],
        clients: &[(&'static str, usize)],
        servers: &[(String, usize)],
    ) -> String {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        for (end, count) in tickets {
            self.tickets.get_or_create(&vec![("end", (*end).into())]).set(whole(*count));
        }
        for (state, count) in clients {
            self.now.get_or_create(&vec![("state", (*state).into())]).set(whole(*count as u64));
        }
        self.servers.clear();
        for (state, count) in servers {
            self.servers.get_or_create(&vec![("state", state.clone())]).set(whole(*count as u64));
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Why a connection came to nothing.
fn reason(error: &Error) -> &'static str {
    match error {
        Error::Transport(error) => match error.kind {
            TransportKind::TimedOut => "timeout",
            TransportKind::Closed => "closed",
            TransportKind::NotAuthentic | TransportKind::Refused => "tls",
            _ => "garbage",
        },
        Error::Peer { .. } => "garbage",
        _ => "other",
    }
}
