//! The server: a listener, a thread per session, a report for each.

use std::any::Any;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use graph::Model;
use serde::Serialize;
use wire::{Channel, Error, Link, Result, Role, ServerTls, Timeouts};

use crate::plan::{Plan, Settings};
use crate::planner::Planning;
use crate::planner::offers::Offers;
use crate::report::Report;
use crate::session::client::correlation_source;
use crate::session::course::Course;
use crate::session::encoded::EncodedModel;
use crate::session::handshake;
use crate::session::input::random;
use crate::step::context::{Endpoint, Party};
use crate::step::keys::ServerKeys;
use crate::suites;

/// Pause after a connection that could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// Longest wait for the client's goodbye after the last message.
const GOODBYE: Duration = Duration::from_secs(2);

/// The clients that may connect, and the transport that they use.
#[derive(Clone)]
pub enum Access {
    /// TLS 1.3.
    Tls(ServerTls),
    /// No encryption; both ends on loopback.
    Plaintext,
}

/// The options of a server.
#[derive(Clone)]
pub struct Options {
    /// What clients must agree to.
    pub settings: Settings,
    /// How the protocols of single steps are chosen.
    pub planning: Planning,
    /// The sockets and certificates by which clients connect.
    pub access: Access,
    /// The times that a session waits for its client.
    pub timeouts: Timeouts,
    /// A link to imitate; clients must do the same.
    pub link: Option<Link>,
    /// Sessions at the same time; more wait in the listener's queue.
    pub sessions: usize,
    /// Most inputs per session (a query budget).
    pub most_inputs: usize,
    /// Threads of each session, at least 1.
    pub threads: usize,
    /// Stop after the first session.
    pub once: bool,
    /// Whether a suite may run that leaks more than the result.
    pub accept_leakage: bool,
    /// Memory for evaluation keys of clients who may come back, in bytes.
    pub key_cache: usize,
}

/// What happened to one client.
#[derive(Debug)]
pub struct Event {
    /// The client's address.
    pub client: String,
    /// What the session cost, or why it failed.
    pub outcome: Result<Report>,
    /// The way in which the session ended.
    pub end: End,
    /// The link to the client, if it was measured.
    pub link: Option<Link>,
}

/// How a session ended, as far as the server can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum End {
    /// The client had its result and closed the connection. Without TLS a client that
    /// dies looks the same.
    #[serde(rename = "finished")]
    Finished,
    /// The server had nothing left to do, but the connection broke off or the client
    /// stayed silent: it may not have read the result.
    #[serde(rename = "client gone")]
    ClientGone,
    /// There is an error.
    #[serde(rename = "failed")]
    Failed,
}

/// A bound server.
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
    events: Mutex<Receiver<Event>>,
}

struct Shared {
    offers: Offers,
    prepared: EncodedModel,
    options: Options,
    stop: AtomicBool,
    running: AtomicUsize,
    panics: AtomicUsize,
    reports: Mutex<Sender<Event>>,
}

impl Server {
    /// Plans `model`, transforms its weights and binds `listen` (HOST:PORT; port 0
    /// takes any free one).
    ///
    /// # Errors
    /// [`Error::Misuse`] for an address that cannot be bound and a suite that leaks unasked,
    /// [`Error::Unsupported`] for a model without a plan.
    pub fn bind(model: Model, listen: &str, options: Options) -> Result<Self> {
        graph::verify_model(&model).map_err(|e| Error::misuse(e.to_string()))?;
        suites::consent(&model.graph.suite, options.accept_leakage)?;
        let (model, offers) = options.planning.offers(model, options.settings)?;
        let (most, batch) = (options.most_inputs, options.settings.batch());
        if most < batch {
            let why = format!("at most {most} inputs in a session, less than a batch of {batch}");
            return Err(Error::misuse(why));
        }
        let prepared =
            EncodedModel::new(offers.on(None)?, model)?.with_key_cache(options.key_cache);
        let listener = TcpListener::bind(listen)
            .map_err(|e| Error::misuse(format!("cannot listen on `{listen}`: {e}")))?;
        let local = listener.local_addr().map_err(|e| Error::transport(e.to_string()))?;
        if matches!(options.access, Access::Plaintext) && !local.ip().is_loopback() {
            return Err(Error::misuse("plaintext is for the loopback interface only; use TLS"));
        }
        let (reports, events) = mpsc::channel();
        let shared = Shared {
            offers,
            prepared,
            options,
            stop: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            panics: AtomicUsize::new(0),
            reports: Mutex::new(reports),
        };
        Ok(Self { listener, shared: Arc::new(shared), events: Mutex::new(events) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// [`Error::Transport`] when the socket is gone.
    pub fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr().map_err(|e| Error::transport(e.to_string()))
    }

    /// Serves until [`Server::stop`], or one session with `once`. A client that
    /// fails costs nobody else anything.
    ///
    /// # Errors
    /// None in this version.
    pub fn run(&self) -> Result<()> {
        loop {
            let accepted = self.listener.accept();
            if self.shared.stop.load(Ordering::SeqCst) {
                return Ok(());
            }
            let Ok((stream, peer)) = accepted else {
                // Out of descriptors, or the client is gone already: both pass.
                thread::sleep(ACCEPT_AGAIN);
                continue;
            };
            if self.shared.options.once {
                serve(&self.shared, stream, peer);
                return Ok(());
            }
            while self.shared.running.load(Ordering::SeqCst) >= self.shared.options.sessions {
                thread::sleep(Duration::from_millis(5));
            }
            self.shared.running.fetch_add(1, Ordering::SeqCst);
            let shared = self.shared.clone();
            let spawned = thread::Builder::new().name("tacit-session".into()).spawn(move || {
                let _running = Running(&shared.running);
                serve(&shared, stream, peer);
            });
            if spawned.is_err() {
                self.shared.running.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// Makes [`Server::run`] return; sessions under way go on to their end.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        if let Ok(address) = self.address() {
            // Wakes the listener; when that fails it has ended already.
            let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
        }
    }

    /// Sessions that ended in a defect of this program.
    pub fn panics(&self) -> usize {
        self.shared.panics.load(Ordering::SeqCst)
    }

    /// Returns the next client's outcome, waiting up to `patience`.
    pub fn next_event(&self, patience: Duration) -> Option<Event> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.recv_timeout(patience).ok()
    }
}

/// Counts a session down however it ends.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn serve(shared: &Shared, stream: TcpStream, peer: SocketAddr) {
    let mut link = None;
    let (outcome, end) = match guarded(&shared.panics, || attend(shared, stream, &mut link)) {
        Ok((report, end)) => (Ok(report), end),
        Err(error) => (Err(error), End::Failed),
    };
    let reports = shared.reports.lock().unwrap_or_else(PoisonError::into_inner);
    // The receiver lives as long as the server.
    let _ = reports.send(Event { client: peer.to_string(), outcome, end, link });
}

/// Turns a panic into an error and counts it: it costs this session and no other.
fn guarded<T>(panics: &AtomicUsize, run: impl FnOnce() -> Result<T>) -> Result<T> {
    // What the closure leaves behind is shared read-only or dropped with it.
    let caught = catch_unwind(AssertUnwindSafe(run));
    caught.unwrap_or_else(|cause: Box<dyn Any + Send>| {
        // The cause may quote values, so it goes to nobody but the panic hook.
        drop(cause);
        let count = panics.fetch_add(1, Ordering::SeqCst) + 1;
        Err(Error::Internal(format!("the session panicked ({count} so far); please report it")))
    })
}

fn attend(shared: &Shared, stream: TcpStream, link: &mut Option<Link>) -> Result<(Report, End)> {
    let mut channel = open(shared, stream)?;
    let limits = Limits { inputs: shared.options.most_inputs, threads: shared.options.threads };
    let (offers, prepared) = (&shared.offers, &shared.prepared);
    let choose = |measured| {
        *link = measured;
        offers.on(measured)
    };
    let report = offered(offers.is_measured(), choose, prepared, limits, &mut channel)?;
    let patience = GOODBYE.min(shared.options.timeouts.idle);
    // Reading first: what is written to a client that is gone already can cost its goodbye.
    let ended = channel.closed(patience);
    let _ = channel.close();
    Ok((report, if ended.is_ok() { End::Finished } else { End::ClientGone }))
}

fn open(shared: &Shared, stream: TcpStream) -> Result<Channel> {
    let timeouts = shared.options.timeouts;
    let mut channel = match &shared.options.access {
        Access::Tls(tls) => tls.channel(stream, timeouts),
        Access::Plaintext => wire::plaintext(Role::Server, stream, timeouts),
    }?;
    if let Some(link) = shared.options.link {
        channel.shape(link)?;
    }
    Ok(channel)
}

/// What a session may use.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Most inputs of the client.
    pub(crate) inputs: usize,
    /// Threads.
    pub(crate) threads: usize,
}

/// One session over `channel`, of a single plan.
#[cfg(test)]
pub(crate) fn session(
    plan: &Plan,
    prepared: &EncodedModel,
    limits: Limits,
    channel: &mut Channel,
) -> Result<Report> {
    offered(plan.settings().measured, |_| Ok(plan), prepared, limits, channel)
}

/// One session over `channel` of the plan that is chosen for its link.
fn offered<'a>(
    measures: bool,
    choose: impl FnOnce(Option<Link>) -> Result<&'a Plan>,
    prepared: &EncodedModel,
    limits: Limits,
    channel: &mut Channel,
) -> Result<Report> {
    let mut rng = random()?;
    let (plan, agreed) = handshake::server(channel, &mut rng, measures, choose)?;
    let (Limits { inputs: most, threads }, batch) = (limits, plan.settings().batch());
    // What a client leaves out of its last batch counts, since nobody sees it.
    let most = most / batch * batch;
    if agreed.inputs > most {
        let got = format!("{}", agreed.inputs);
        return Err(Error::peer(format!("at most {most} inputs in a session"), got));
    }
    let keys = ServerKeys::setup(channel, plan, &agreed, prepared.key_cache())?;
    let source = &mut correlation_source(channel, &mut rng, &agreed, plan)?;
    let party = Party::Server { keys: &keys, weights: prepared.weights(), threads };
    let mut course = Course::new(plan, agreed.inputs);
    let end = &mut Endpoint { channel, party, source, rng: &mut rng };
    while !course.is_over() {
        let run = course.run(end, plan);
        let done = course.done() * batch;
        run.map_err(|error| after(done, agreed.inputs, error))?;
    }
    channel.flush()?;
    Ok(Report::metered(plan, agreed.inputs, channel.meter()))
}

/// Says how far a session had come whose connection ended.
fn after(done: usize, inputs: usize, error: Error) -> Error {
    match error {
        Error::Transport(why) if inputs > 1 => {
            Error::connection(why.kind, format!("after {done} of {inputs} inputs: {why}"))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::panic)]
    fn a_panic_is_an_error_of_its_session_and_counted() {
        let panics = AtomicUsize::new(0);
        for count in 1..=2 {
            let error = guarded::<()>(&panics, || panic!("on purpose, with the secret 42"));
            let Err(Error::Internal(why)) = error else { panic!("{error:?}") };
            assert!(why.contains(&format!("{count} so far")) && !why.contains("42"), "{why}");
        }
        assert_eq!(guarded(&panics, || Ok(5)), Ok(5));
        assert_eq!(panics.load(Ordering::SeqCst), 2);
    }
}
