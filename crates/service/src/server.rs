//! The server: a door, sessions on threads of their own, an event for each client.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use runtime::Visitor;
use wire::{Error, Pages, Result, Timeouts};

use crate::door::{Door, Manners};
use crate::event::Event;
use crate::fleet::member::Member;
use crate::gate::{Gate, Room};
use crate::joined;
use crate::kept::{self, KeptKeys};
use crate::limits::{self, Limits};
use crate::links::Links;
use crate::lock::locked;
use crate::options::{Access, Options};
use crate::policy::Policy;
use crate::shared::Shared;
use crate::telling::Telling;
use crate::visit::Model;
use crate::watch::http::Http;
use crate::watch::live::Live;
use crate::watch::metrics::Metrics;

/// Sessions for each core unless memory or the operator says less: while some wait for their
/// clients, others compute.
const SESSIONS_PER_CORE: usize = 8;
/// A bound server.
pub struct Server {
    address: SocketAddr,
    door: Mutex<Door>,
    shared: Arc<Shared>,
    events: Mutex<Receiver<Event>>,
    watch: Option<Http>,
}

impl Server {
    /// Binds `listen` (HOST:PORT; port 0 takes any free one) for `models`, the first of which is
    /// that of clients who name none if there is no other.
    ///
    /// # Errors
    /// [`Error::Misuse`] for an address that cannot be bound, for plaintext beyond the loopback
    /// interface and for limits that leave no room for a session.
    pub fn bind(models: Vec<Model>, listen: &str, options: Options) -> Result<Self> {
        let largest = checked(&models, &options)?;
        let (listener, address) = bound(listen, &options.access)?;
        let browsers = options.websocket.as_ref();
        let browsers = browsers.map(|there| bound(&there.listen, &options.access)).transpose()?;
        let (browsers, websocket) = browsers.unzip();
        if options.proxied && matches!(options.access, Access::Plaintext) {
            // A balancer on this machine would pass strangers on as if they were here.
            return Err(Error::misuse("clients behind a load balancer need TLS"));
        }
        let listeners = std::iter::once(listener).chain(browsers).collect();
        let (door, waker) = Door::new(listeners)?;
        let (room, memory) = room(options.limits, largest)?;
        let metrics = options.metrics.clone();
        let (reports, events) = mpsc::channel();
        let fleet = options.fleet.clone().map(Member::new).transpose()?;
        let shared = Shared {
            address,
            websocket,
            fleet,
            door_error: Mutex::default(),
            models: RwLock::new(Arc::new(models)),
            access: RwLock::new(options.access.clone()),
            policy: RwLock::new(options.policy.clone()),
            gate: Gate::new(room, cores()),
            memory,
            standing: AtomicUsize::new(0),
            metrics: Metrics::new(),
            pages: RwLock::default(),
            options,
            waker,
            sessions: Live::default(),
            links: Links::default(),
            kept: KeptKeys::default(),
            next: AtomicU64::new(0),
            drain: Mutex::default(),
            stopped: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            panics: AtomicUsize::new(0),
            reports: Mutex::new(reports),
            telling: Mutex::new(Telling::new()),
        };
        let (door, events, shared) = (Mutex::new(door), Mutex::new(events), Arc::new(shared));
        if let Some(nudged) = shared.fleet.as_ref().and_then(|member| locked(&member.nudged).take())
        {
            let weak = Arc::downgrade(&shared);
            let run = move || joined::run(&weak, &nudged);
            let begun = thread::Builder::new().name("tacit-fleet".into()).spawn(run);
            begun
                .map_err(|e| Error::transport(format!("cannot begin to talk to the door: {e}")))?;
        }
        let watched = shared.clone();
        let watch = metrics.map(|listen| Http::start(&listen, move |path| watched.answer(path)));
        Ok(Self { address, door, shared, events, watch: watch.transpose()? })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where browsers connect, if they may.
    pub fn websocket_address(&self) -> Option<SocketAddr> {
        self.shared.websocket
    }

    /// Shows `pages` from now on to browsers that ask for a file where they connect.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a server at which no browsers connect.
    pub fn show(&self, pages: Pages) -> Result<()> {
        if self.websocket_address().is_none() {
            return Err(Error::misuse(
                "a page is shown where browsers connect: add --websocket HOST:PORT",
            ));
        }
        *self.shared.pages.write().unwrap_or_else(PoisonError::into_inner) = Some(pages);
        Ok(())
    }

    /// Where it shows its metrics, if it does.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.watch.as_ref().map(Http::address)
    }

    /// Returns the sessions that run and those that wait.
    pub fn counts(&self) -> (usize, usize) {
        self.shared.gate.counts()
    }

    /// Serves until it is stopped or drained, or one client with `once`. A client that
    /// fails costs nobody else anything.
    ///
    /// # Errors
    /// [`Error::Transport`] when the operating system no longer tells of sockets.
    pub fn run(&self) -> Result<()> {
        let shared = &self.shared;
        let sessions = shared.gate.sessions().saturating_add(shared.options.limits.waiting);
        let manners = Manners {
            open: &|stream, place| shared.open(stream, place > 0),
            wanted: &Visitor::wanted,
            read: &|incoming| Visitor::read(incoming.bytes()),
            take: &|arrived| shared.take(arrived),
            is_over: &|| shared.is_over(),
            patience: opening(&shared.options.timeouts),
            standing: &shared.standing,
            most: limits::connections(limits::raise_descriptors(), sessions),
        };
        locked(&self.door).run(&manners)
    }

    /// Makes [`Server::run`] return; sessions under way go on to their end.
    pub fn stop(&self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.shared.wake();
    }

    /// Takes no new sessions. Those that run, and those for which there is room and which wait for
    /// processors alone, have `patience` to end, and are broken off then; others are turned
    /// away. [`Server::run`] returns after the last.
    pub fn drain(&self, patience: Duration) {
        self.shared.drain(patience);
    }

    /// Breaks all sessions off.
    pub fn abort(&self) {
        self.shared.abort();
    }

    /// Puts other models, another policy, and another identity if there is one, in the place of
    /// those that new sessions get.
    /// Sessions under way keep what they have.
    ///
    /// # Errors
    /// [`Error::Misuse`] for no models, or plaintext in the place of TLS or the reverse.
    pub fn replace(
        &self,
        models: Vec<Model>,
        access: Option<Access>,
        policy: Policy,
    ) -> Result<()> {
        let shared = &self.shared;
        checked(&models, &shared.options)?;
        let encrypts = |access: &Access| matches!(access, Access::Tls(_));
        if access.as_ref().is_some_and(|new| encrypts(new) != encrypts(&shared.options.access)) {
            return Err(Error::misuse("a server does not change between TLS and plaintext"));
        }
        *shared.models.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(models);
        *shared.policy.write().unwrap_or_else(PoisonError::into_inner) = policy;
        if let Some(member) = &shared.fleet {
            member.tell(|news| news.models = true);
        }
        if let Some(access) = access {
            *shared.access.write().unwrap_or_else(PoisonError::into_inner) = access;
        }
        Ok(())
    }

    /// Whether the door of the fleet knows this server now, and why not where that is known; `None` without a
    /// fleet.
    pub fn fleet(&self) -> Option<Result<(), String>> {
        let member = self.shared.fleet.as_ref()?;
        let why = || locked(&self.shared.door_error).clone().unwrap_or_default();
        Some(if member.welcomed.load(Ordering::SeqCst) { Ok(()) } else { Err(why()) })
    }

    /// Sessions that ended in a defect of this program.
    pub fn panics(&self) -> usize {
        self.shared.panics.load(Ordering::SeqCst)
    }

    /// Returns the next client's outcome, waiting up to `patience`.
    pub fn next_event(&self, patience: Duration) -> Option<Event> {
        locked(&self.events).recv_timeout(patience).ok()
    }
}

/// A listener at `listen`, and its address.
fn bound(listen: &str, access: &Access) -> Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(listen)
        .map_err(|e| Error::misuse(format!("cannot listen on `{listen}`: {e}")))?;
    let address = listener.local_addr().map_err(|e| Error::transport(e.to_string()))?;
    if matches!(access, Access::Plaintext) && !address.ip().is_loopback() {
        return Err(Error::misuse("plaintext is for the loopback interface only; use TLS"));
    }
    Ok((listener, address))
}

/// How long a client may take for TLS and its opening.
fn opening(timeouts: &Timeouts) -> Duration {
    timeouts.connect.min(timeouts.idle).min(timeouts.total)
}

/// The bytes of the largest session.
fn checked(models: &[Model], options: &Options) -> Result<u64> {
    for (place, model) in models.iter().enumerate() {
        let batch = model.batch()?;
        let most = options.most_inputs;
        if most < batch {
            let why = format!("at most {most} inputs in a session, less than a batch of {batch}");
            return Err(Error::misuse(why));
        }
        if models.iter().take(place).any(|other| other.name == model.name) {
            return Err(Error::misuse(format!("two models are called `{}`", model.name)));
        }
    }
    let largest = models.iter().map(|model| model.session_memory).max();
    largest.ok_or_else(|| Error::misuse("no model to serve"))
}

/// Cores that this process may use.
fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Room for sessions of up to `largest` bytes, and the bytes that the process may hold.
fn room(limits: Limits, largest: u64) -> Result<(Room, u64)> {
    let held = limits::resident();
    let left = match limits.memory {
        Some(all) => all.checked_sub(held).filter(|left| *left >= largest).ok_or_else(|| {
            let [need, have] = [held.saturating_add(largest), all].map(|bytes| bytes >> 20);
            Error::misuse(format!(
                "the models and one session take about {need} MB, more than {have}; raise --memory"
            ))
        })?,
        None => limits::free_memory().map_or(u64::MAX, |all| all.saturating_sub(held)),
    };
    let memory = left.saturating_sub(kept::BYTES).max(largest);
    let by_memory = usize::try_from(memory / largest.max(1)).unwrap_or(usize::MAX).max(1);
    let by_cores = SESSIONS_PER_CORE.saturating_mul(cores());
    let sessions = limits.sessions.unwrap_or(by_cores.min(by_memory)).max(1);
    let room = Room { sessions, waiting: limits.waiting, memory };
    Ok((room, memory.saturating_add(held)))
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(member) = &self.shared.fleet {
            member.over.store(true, Ordering::SeqCst);
            member.tell(|_| ());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
