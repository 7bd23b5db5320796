//! Numbers for Prometheus, in the OpenMetrics text format.

use std::fs;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use wire::{Error, TransportKind};

use crate::door::CROWDED;
use crate::event::{AT_THE_DOOR, End, Event};
use crate::gate::Room;
use crate::limits;
use crate::watch::live::Session;

/// The content type of [`Metrics::render`].
pub(crate) const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Bounds of the histograms: 10 ms to 11 minutes.
const SHORTEST: f64 = 0.01;
const BUCKETS: u16 = 17;
/// Certificates that last longer have no end worth watching, in seconds: 100 years.
const LIFETIME: f64 = 100.0 * 365.25 * 24.0 * 3600.0;

pub(super) type Labels = Vec<(&'static str, String)>;

/// Registers the release that serves.
pub(super) fn release(registry: &mut Registry) {
    let build: Family<Labels, Gauge> = Family::default();
    build.get_or_create(&vec![("version", env!("CARGO_PKG_VERSION").into())]).set(1);
    registry.register("tacit_build_info", "The release that serves", build);
}
type Count = Family<Labels, Counter>;
type Number = Gauge<f64, AtomicU64>;

/// What is counted from the start of a server on.
pub(crate) struct Metrics {
    registry: Registry,
    sessions: Count,
    resumed: Count,
    refusals: Count,
    handshakes: Count,
    inputs: Count,
    bytes: Count,
    rounds: Count,
    cpu: Counter<f64, AtomicU64>,
    panics: Counter,
    lost_doors: Counter,
    times: Family<Labels, Histogram>,
    active: Family<Labels, Gauge>,
    now: Now,
}

/// What is read at the moment of asking.
struct Now {
    ready: Gauge,
    connections: Gauge,
    prepared: Gauge,
    sessions_limit: Gauge,
    allowed: Gauge,
    queue_limit: Gauge,
    memory: Gauge,
    reserved: Gauge,
    budget: Gauge,
    descriptors: Gauge,
    most_descriptors: Gauge,
    certificate: Family<Labels, Number>,
    revocation: Family<Labels, Number>,
}

/// The server at the moment of asking.
pub(crate) struct Moment {
    pub(crate) ready: bool,
    /// Connections whose clients have not yet said what they want.
    pub(crate) connections: usize,
    pub(crate) sessions: Vec<Session>,
    /// What it takes on, and the bytes of it that sessions have taken.
    pub(crate) room: (Room, u64),
    /// Sessions that may run now.
    pub(crate) allowed: usize,
    /// Bytes that the process may hold.
    pub(crate) memory: u64,
    pub(crate) certificate_expiry: Option<SystemTime>,
    pub(crate) revocation_expiry: Option<SystemTime>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let times = || Histogram::new(exponential_buckets(SHORTEST, 2.0, BUCKETS));
        let mut metrics = Self {
            sessions: counts(&mut registry, "sessions", "Sessions that ended, by how"),
            resumed: counts(
                &mut registry,
                "sessions_resumed",
                "Sessions that finished with base OTs of an earlier one",
            ),
            refusals: counts(&mut registry, "refusals", "Clients turned away, by reason"),
            handshakes: counts(
                &mut registry,
                "handshakes_failed",
                "Connections that never became a session, by reason",
            ),
            inputs: counts(&mut registry, "inputs", "Inputs answered"),
            bytes: counts(&mut registry, "bytes", "Bytes of sessions that finished, by direction"),
            rounds: counts(&mut registry, "rounds", "Rounds of sessions that finished"),
            cpu: Counter::default(),
            panics: Counter::default(),
            lost_doors: Counter::default(),
            times: Family::new_with_constructor(times as fn() -> Histogram),
            active: Family::default(),
            now: Now::new(&mut registry),
            registry: Registry::default(),
        };
        let r = &mut registry;
        let phases = "Seconds of sessions in the queue and in each phase";
        r.register("tacit_session_seconds", phases, metrics.times.clone());
        let states = "Sessions of the moment, by state: waiting, running";
        r.register("tacit_active_sessions", states, metrics.active.clone());
        let cpu = "Processor time of sessions in seconds";
        r.register("tacit_session_cpu_seconds", cpu, metrics.cpu.clone());
        let panics = "Sessions that ended in a defect of this program";
        r.register("tacit_panics", panics, metrics.panics.clone());
        let lost = "Control connections with the door of a fleet that failed";
        r.register("tacit_fleet_connections_lost", lost, metrics.lost_doors.clone());
        release(r);
        let start = Number::default();
        start.set(seconds_of(SystemTime::now()));
        r.register("tacit_start_time_seconds", "When the server began, since 1970", start);
        metrics.registry = registry;
        metrics
    }

    /// Counts a client's outcome.
    pub(crate) fn count(&self, event: &Event) {
        let model = || event.model.clone().unwrap_or_default();
        if let Some(reason) = event.refused {
            self.refusals.get_or_create(&vec![("reason", reason.into())]).inc();
        }
        if event.reached == AT_THE_DOOR && event.end != End::Refused {
            let reason = event.outcome.as_ref().err().map_or("other", reason);
            self.handshakes.get_or_create(&vec![("reason", reason.into())]).inc();
            return;
        }
        let end = match event.end {
            End::Finished => "finished",
            End::ClientGone => "client_gone",
            End::Refused => "refused",
            End::Failed => "failed",
        };
        self.sessions.get_or_create(&vec![("model", model()), ("end", end.into())]).inc();
        self.inputs.get_or_create(&vec![("model", model())]).inc_by(event.inputs as u64);
        self.cpu.inc_by(event.cpu_seconds);
        self.observe(&model(), "waiting", (event.waited > 0.0).then_some(event.waited));
        let Ok(report) = &event.outcome else { return };
        let resumed = self.resumed.get_or_create(&vec![("model", model())]);
        resumed.inc_by(report.resumed.into());
        let phases = &report.phases;
        self.observe(&model(), "setup", phases.setup.seconds);
        self.observe(&model(), "offline", phases.offline.seconds);
        self.observe(&model(), "online", phases.online.seconds);
        let bytes = &report.total.bytes;
        for (direction, bytes) in [
            ("client_to_server", bytes.client_to_server),
            ("server_to_client", bytes.server_to_client),
        ] {
            let labels = vec![("model", model()), ("direction", direction.into())];
            self.bytes.get_or_create(&labels).inc_by(bytes);
        }
        self.rounds.get_or_create(&vec![("model", model())]).inc_by(report.total.rounds);
    }

    fn observe(&self, model: &str, phase: &str, seconds: Option<f64>) {
        if let Some(seconds) = seconds {
            let labels = vec![("model", model.into()), ("phase", phase.into())];
            self.times.get_or_create(&labels).observe(seconds);
        }
    }

    /// Counts a session that ended in a defect.
    pub(crate) fn count_panic(&self) {
        self.panics.inc();
    }

    /// Counts a control connection with a fleet's door that ended.
    pub(crate) fn count_lost_door(&self) {
        self.lost_doors.inc();
    }

    /// All numbers, those of the moment included, as text.
    pub(crate) fn render(&self, moment: &Moment) -> String {
        let waiting = moment.sessions.iter().filter(|one| one.reached == "queue").count();
        let running = moment.sessions.len() - waiting;
        for (state, count) in [("waiting", waiting), ("running", running)] {
            self.active.get_or_create(&vec![("state", state.into())]).set(whole(count as u64));
        }
        self.now.set(moment);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

impl Now {
    fn new(registry: &mut Registry) -> Self {
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(format!("tacit_{name}"), help, gauge.clone());
            gauge
        };
        let now = Self {
            ready: gauge("ready", "1 while new sessions are taken"),
            connections: gauge("connections", "Connections whose clients have said nothing yet"),
            prepared: gauge("prepared_runs", "Preprocessed runs that wait for their inputs"),
            sessions_limit: gauge("sessions_limit", "Sessions that may run at the same time"),
            allowed: gauge("sessions_allowed", "Sessions that may run now"),
            queue_limit: gauge("queue_limit", "Sessions that may wait"),
            memory: gauge("memory_bytes", "Resident memory of the process"),
            reserved: gauge("memory_reserved_bytes", "Memory set aside for sessions that run"),
            budget: gauge("memory_budget_bytes", "Memory that the process may hold"),
            descriptors: gauge("open_descriptors", "Open files and sockets"),
            most_descriptors: gauge("descriptors_limit", "Files and sockets that may be open"),
            certificate: Family::default(),
            revocation: Family::default(),
        };
        let left = "Seconds until the certificate expires";
        registry.register("tacit_certificate_expiry_seconds", left, now.certificate.clone());
        let left = "Seconds until a revocation list of clients is over and nobody is admitted";
        registry.register("tacit_revocation_expiry_seconds", left, now.revocation.clone());
        now
    }

    fn set(&self, moment: &Moment) {
        let (room, reserved) = moment.room;
        self.ready.set(moment.ready.into());
        self.connections.set(whole(moment.connections as u64));
        let prepared: usize = moment.sessions.iter().map(|session| session.prepared).sum();
        self.prepared.set(whole(prepared as u64));
        self.sessions_limit.set(whole(room.sessions as u64));
        self.allowed.set(whole(moment.allowed as u64));
        self.queue_limit.set(whole(room.waiting as u64));
        self.memory.set(whole(limits::resident()));
        self.reserved.set(whole(reserved));
        self.budget.set(whole(moment.memory));
        let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        self.descriptors.set(whole(open as u64));
        self.most_descriptors.set(whole(limits::descriptors()));
        self.certificate.clear();
        let left = |end| seconds_of(end) - seconds_of(SystemTime::now());
        // A key that was made at the start has no end that anybody must know of.
        if let Some(left) = moment.certificate_expiry.map(left).filter(|left| *left < LIFETIME) {
            self.certificate.get_or_create(&Labels::new()).set(left);
        }
        self.revocation.clear();
        if let Some(left) = moment.revocation_expiry.map(left) {
            self.revocation.get_or_create(&Labels::new()).set(left);
        }
    }
}

fn counts(registry: &mut Registry, name: &str, help: &str) -> Count {
    let family = Count::default();
    registry.register(format!("tacit_{name}"), help, family.clone());
    family
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn seconds_of(time: SystemTime) -> f64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
}

/// Why a connection never became a session.
fn reason(error: &Error) -> &'static str {
    match error {
        Error::Transport(error) if error.what == CROWDED => "crowded",
        Error::Transport(error) => match error.kind {
            TransportKind::TimedOut => "timeout",
            TransportKind::Closed => "closed",
            TransportKind::NotAuthentic | TransportKind::Refused => "tls",
            _ if error.what.starts_with("TLS: ") => "tls",
            _ => "garbage",
        },
        Error::Peer { .. } => "garbage",
        _ => "other",
    }
}
