//! What the door and all sessions of a server share, and what becomes of a client that arrives.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use mio::Waker;
use runtime::Visitor;
use wire::{Admission, Error, Incoming, Result};

use crate::door::Arrived;
use crate::event::{End, Event};
use crate::gate::{Full, Gate, Place};
use crate::options::{Access, Options};
use crate::policy::{Known, Policy};
use crate::visit::{self, Facts, Model};

/// Events of clients that came to nothing: so many at once, and so many a second.
const BURST: f64 = 64.0;
const PER_SECOND: f64 = 16.0;
/// How long clients of a server that stops should stay away.
const RESTART: Duration = Duration::from_secs(10);

/// What the door and all sessions share.
pub(crate) struct Shared {
    pub(crate) models: RwLock<Arc<Vec<Model>>>,
    pub(crate) access: RwLock<Access>,
    pub(crate) policy: RwLock<Policy>,
    pub(crate) options: Options,
    pub(crate) gate: Arc<Gate>,
    pub(crate) waker: Arc<Waker>,
    /// Sessions on threads, those that wait included, and their connections.
    pub(crate) sessions: Mutex<HashMap<u64, TcpStream>>,
    pub(crate) next: AtomicU64,
    /// No new sessions; until when those that run may go on.
    pub(crate) drain: Mutex<Option<Instant>>,
    pub(crate) stopped: AtomicBool,
    pub(crate) aborted: AtomicBool,
    pub(crate) panics: AtomicUsize,
    pub(crate) reports: Mutex<Sender<Event>>,
    pub(crate) telling: Mutex<Telling>,
}

/// How many clients that came to nothing are still told of.
pub(crate) struct Telling {
    left: f64,
    since: Instant,
    untold: u64,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn wake(&self) {
        // When that fails the door looks up by itself in a moment.
        let _ = self.waker.wake();
    }

    pub(crate) fn count_panic(&self) -> usize {
        self.panics.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// What is asked of clients now.
    pub(crate) fn policy(&self) -> Policy {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn open(&self, stream: TcpStream) -> Result<Incoming> {
        match &*self.access.read().unwrap_or_else(PoisonError::into_inner) {
            Access::Tls(tls) => Incoming::new(stream, Some(tls)),
            Access::Plaintext => Incoming::new(stream, None),
        }
    }

    /// The refusal of a server that takes no new sessions.
    pub(crate) fn closing(&self) -> Option<Admission> {
        let drains = locked(&self.drain).is_some();
        drains.then(|| Admission::busy(RESTART, "the server is stopping"))
    }

    /// An error of a session, or why it was broken off.
    pub(crate) fn explained(&self, error: Error) -> Error {
        match error {
            Error::Transport(e)
                if self.aborted.load(Ordering::SeqCst) && !visit::is_own(e.kind) =>
            {
                Error::connection(e.kind, "the server stopped while this session ran")
            }
            other => other,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        if self.stopped.load(Ordering::SeqCst) {
            return true;
        }
        let Some(deadline) = *locked(&self.drain) else { return false };
        if locked(&self.sessions).is_empty() {
            return true;
        }
        if Instant::now() >= deadline {
            self.abort();
        }
        false
    }

    pub(crate) fn abort(&self) {
        self.aborted.store(true, Ordering::SeqCst);
        for stream in locked(&self.sessions).values() {
            // One that has ended by itself needs no end.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Decides about a client that has arrived.
    pub(crate) fn take(self: &Arc<Self>, arrived: Arrived) {
        let session = self.next.fetch_add(1, Ordering::SeqCst) + 1;
        let mut facts = Facts::new(session, arrived.address.to_string());
        let (incoming, visitor) = match arrived.outcome {
            Ok(come) => come,
            Err(error) => return self.tell(facts.event(Err(error), End::Failed, Duration::ZERO)),
        };
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (address, subject) = (arrived.address.ip(), incoming.subject());
        // Strangers are not told which models there are.
        let admitted = self.policy().identify(address, subject, &visitor).and_then(|known| {
            facts.identity = Some(known.client.key());
            let model = wanted(&models, &visitor)?;
            facts.model = models.get(model).map(|model| model.name.clone());
            let memory = models.get(model).map_or(0, |model| model.session_memory);
            Ok((model, known, self.enter(memory)?))
        });
        match admitted {
            Ok((model, known, place)) => {
                self.start((models, model), known, incoming, place, facts);
            }
            Err(refusal) => {
                let why = refusal.outcome().err();
                incoming.answer(&visitor.answer(&refusal).unwrap_or_default());
                let error = why.unwrap_or_else(|| Error::internal("a refusal that admits"));
                self.tell(facts.event(Err(error), End::Refused, Duration::ZERO));
            }
        }
    }

    fn enter(&self, memory: u64) -> Result<Place, Admission> {
        if let Some(refusal) = self.closing() {
            return Err(refusal);
        }
        self.gate.enter(memory).map_err(|Full { waiting, again }| {
            let sessions = if waiting == 1 { "1 session waits" } else { "sessions wait" };
            let many = if waiting == 1 { String::new() } else { format!("{waiting} ") };
            Admission::busy(again, format!("the server is full, {many}{sessions}"))
        })
    }

    /// Begins a session on a thread of its own.
    fn start(
        self: &Arc<Self>,
        (models, model): (Arc<Vec<Model>>, usize),
        known: Known,
        incoming: Incoming,
        place: Place,
        facts: Facts,
    ) {
        let (session, client) = (facts.session, facts.client.clone());
        let listed = incoming.stream().try_clone().map(|stream| {
            locked(&self.sessions).insert(session, stream);
        });
        let shared = self.clone();
        let run = move || {
            if let Some(model) = models.get(model) {
                let event = visit::run(&shared, model, &known, incoming, place, facts);
                locked(&shared.sessions).remove(&session);
                shared.tell(event);
                shared.wake();
            }
        };
        let begin = |()| thread::Builder::new().name("tacit-session".into()).spawn(run);
        if let Err(e) = listed.and_then(begin) {
            locked(&self.sessions).remove(&session);
            let error = Error::transport(format!("cannot begin a session: {e}"));
            let facts = Facts::new(session, client);
            self.tell(facts.event(Err(error), End::Failed, Duration::ZERO));
        }
    }

    /// Reports a client: each that had a session, and as many of the others as an operator can
    /// read.
    fn tell(&self, mut event: Event) {
        {
            let mut telling = locked(&self.telling);
            let now = Instant::now();
            let passed = now.duration_since(telling.since).as_secs_f64();
            telling.left = (telling.left + passed * PER_SECOND).min(BURST);
            telling.since = now;
            if event.reached == visit::AT_THE_DOOR {
                if telling.left < 1.0 {
                    telling.untold += 1;
                    return;
                }
                telling.left -= 1.0;
            }
            event.untold = std::mem::take(&mut telling.untold);
        }
        if self.options.once {
            self.stopped.store(true, Ordering::SeqCst);
            self.wake();
        }
        // The receiver lives as long as the server.
        let _ = locked(&self.reports).send(event);
    }
}

impl Telling {
    pub(crate) fn new() -> Self {
        Self { left: BURST, since: Instant::now(), untold: 0 }
    }
}

/// The place of the model that a client wants: the one that it names, or the only one.
fn wanted(models: &[Model], visitor: &Visitor) -> Result<usize, Admission> {
    let names = || {
        let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
        names.join(", ")
    };
    if visitor.names_no_model() {
        return match models {
            [_] => Ok(0),
            _ => Err(Admission::denied(format!("name a model; this server has {}", names()))),
        };
    }
    models
        .iter()
        .position(|model| model.is_named(visitor))
        .ok_or_else(|| Admission::denied(format!("no such model; this server has {}", names())))
}
