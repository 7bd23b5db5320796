//! What the door and all sessions of a server share, and what becomes of a client that arrives.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use mio::Waker;
use runtime::Visitor;
use wire::{Admission, Error, Incoming, Pages, Result};

use crate::door::Arrived;
use crate::event::{AT_THE_DOOR, End, Event};
use crate::fleet::member::{Member, Pass};
use crate::fleet::talk::ModelNews;
use crate::gate::{Gate, Place};
use crate::kept::KeptKeys;
use crate::links::Links;
use crate::lock::locked;
use crate::options::{Access, Options};
use crate::policy::{Known, Policy};
use crate::telling::Telling;
use crate::visit::{self, Facts, Model};
use crate::watch::http::Answer;
use crate::watch::live::Live;
use crate::watch::metrics::{self, Metrics, Moment};

/// How long clients of a server that stops should stay away.
const RESTART: Duration = Duration::from_secs(10);

/// What the door and all sessions share.
pub(crate) struct Shared {
    /// Where the server listens.
    pub(crate) address: SocketAddr,
    /// Where browsers connect, if they may.
    pub(crate) websocket: Option<SocketAddr>,
    pub(crate) fleet: Option<Arc<Member>>,
    /// Why the door of the fleet was lost the last time.
    pub(crate) door_error: Mutex<Option<String>>,
    pub(crate) models: RwLock<Arc<Vec<Model>>>,
    pub(crate) access: RwLock<Access>,
    pub(crate) policy: RwLock<Policy>,
    pub(crate) options: Options,
    /// The files of the page, if the server shows one.
    pub(crate) pages: RwLock<Option<Pages>>,
    /// Bytes that the process may hold.
    pub(crate) memory: u64,
    pub(crate) gate: Arc<Gate>,
    pub(crate) waker: Arc<Waker>,
    /// Sessions on threads, those that wait included.
    pub(crate) sessions: Live,
    pub(crate) links: Links,
    pub(crate) kept: KeptKeys,
    /// Connections at the door.
    pub(crate) standing: AtomicUsize,
    pub(crate) metrics: Metrics,
    pub(crate) next: AtomicU64,
    /// No new sessions; until when those that run may go on.
    pub(crate) drain: Mutex<Option<Instant>>,
    pub(crate) stopped: AtomicBool,
    pub(crate) aborted: AtomicBool,
    pub(crate) panics: AtomicUsize,
    pub(crate) reports: Mutex<Sender<Event>>,
    pub(crate) telling: Mutex<Telling>,
}

impl Shared {
    pub(crate) fn wake(&self) {
        // When that fails the door looks up by itself in a moment.
        let _ = self.waker.wake();
    }

    pub(crate) fn count_panic(&self) -> usize {
        self.metrics.count_panic();
        self.panics.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// What is asked of clients now.
    pub(crate) fn policy(&self) -> Policy {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the files of the page as they are now, if the server shows one.
    fn pages(&self) -> Option<Pages> {
        self.pages.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts to read a connection, by WebSocket if it is one of a browser's.
    pub(crate) fn open(&self, stream: TcpStream, browser: bool) -> Result<Incoming> {
        let incoming = match &*self.access.read().unwrap_or_else(PoisonError::into_inner) {
            Access::Tls(tls) => Incoming::new(stream, Some(tls)),
            Access::Plaintext => Incoming::new(stream, None),
        }?;
        let incoming = match self.options.websocket.as_ref().filter(|_| browser) {
            Some(options) => incoming.websocket(&options.origins).showing(self.pages()),
            None => incoming,
        };
        Ok(match (self.options.proxied, &self.fleet) {
            (true, _) => incoming.proxied(),
            (false, Some(_)) => incoming.maybe_proxied(),
            (false, None) => incoming,
        })
    }

    /// Takes no new sessions from now on, and gives those that run `patience` to end.
    pub(crate) fn drain(&self, patience: Duration) {
        self.gate.let_all_run();
        locked(&self.drain).get_or_insert(Instant::now() + patience);
        if let Some(member) = &self.fleet {
            member.tell(|_| ());
        }
        self.wake();
    }

    /// Whether no new sessions are taken.
    pub(crate) fn is_draining(&self) -> bool {
        locked(&self.drain).is_some()
    }

    /// Whether tickets of the door may be out.
    fn is_promised(&self) -> bool {
        self.fleet.as_ref().is_some_and(|member| !member.released.load(Ordering::SeqCst))
    }

    /// The refusal of a server that takes no new sessions, but those that a door has `promised`: also where the door has
    /// heard meanwhile that no more tickets are out, since it counts one that was shown as none.
    pub(crate) fn closing(&self, promised: bool) -> Option<Admission> {
        let closes = self.is_draining() && !promised;
        let wait = if self.fleet.is_some() { Duration::from_secs(1) } else { RESTART };
        closes.then(|| Admission::busy(wait, "the server is stopping"))
    }

    /// What the door of the fleet is told of the models.
    pub(crate) fn model_news(&self) -> Vec<ModelNews> {
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner).clone();
        models.iter().filter_map(|model| model.news().ok()).collect()
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
        let late = Instant::now() >= deadline;
        if self.sessions.is_empty() && (late || !self.is_promised()) {
            return true;
        }
        if late {
            self.abort();
        }
        false
    }

    pub(crate) fn abort(&self) {
        self.aborted.store(true, Ordering::SeqCst);
        self.sessions.shut();
    }

    /// Decides about a client that has arrived.
    pub(crate) fn take(self: &Arc<Self>, arrived: Arrived<Visitor>) {
        let session = self.next.fetch_add(1, Ordering::SeqCst) + 1;
        let mut facts = Facts::new(session, arrived.address);
        let (mut incoming, visitor) = match arrived.outcome {
            Ok(come) => come,
            Err(error) => return self.tell(facts.event(Err(error), End::Failed, Duration::ZERO)),
        };
        let models = self.models.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (address, subject) = (arrived.address.ip(), incoming.subject());
        // Strangers are not told which models there are.
        let because = |reason| move |refusal| (refusal, reason);
        incoming.skip(visitor.before());
        let known = self.known(&incoming, address, subject, &visitor);
        let admitted = known.and_then(|(known, pass, promised)| {
            let client = known.client.key();
            facts.identity = Some(client.clone());
            let model = wanted(&models, &visitor).map_err(because("model"))?;
            facts.model = models.get(model).map(|model| model.name.clone());
            let memory = models.get(model).map_or(0, |model| model.session_memory);
            Ok((model, (known, pass, promised), self.enter(&client, memory, promised)?))
        });
        match admitted {
            Ok((model, known, place)) => {
                self.start((models, model), known, (incoming, arrived.address), place, facts);
            }
            Err((refusal, reason)) => {
                facts.refused = Some(reason);
                let why = refusal.outcome().err();
                incoming.answer(&visitor.answer(&refusal).unwrap_or_default());
                let error = why.unwrap_or_else(|| Error::internal("a refusal that admits"));
                self.tell(facts.event(Err(error), End::Refused, Duration::ZERO));
            }
        }
    }

    /// Who a client is, the right that its ticket gives, and whether the door has promised it a session.
    fn known(
        &self,
        incoming: &Incoming,
        address: std::net::IpAddr,
        subject: Option<String>,
        visitor: &Visitor,
    ) -> Result<(Known, Option<Pass>, bool), (Admission, &'static str)> {
        let policy = self.policy();
        let token = visitor.token();
        let identified = |subject| {
            let token = token.as_ref().map(|token| token.as_str());
            policy.identify(address, subject, token).map_err(|refusal| (refusal, "token"))
        };
        let Some(member) = &self.fleet else {
            return identified(subject).map(|known| (known, None, false));
        };
        if let Some(ticket) = visitor.ticket() {
            let ledger = policy.ledger.clone();
            let admitted = member.admit(ticket, subject.as_deref(), ledger);
            let (known, claims, pass) = admitted.map_err(|refusal| (refusal, "ticket"))?;
            if !visitor.names_no_model() && !visitor.names(&claims.model) {
                return Err((Admission::denied("the ticket is for another model"), "ticket"));
            }
            return Ok((known, Some(pass), true));
        }
        let vouched =
            incoming.source().is_some_and(|source| member.vouches(incoming.voucher(), source));
        if !vouched {
            let why = "this server is one of a fleet: connect to its door";
            return Err((Admission::denied(why), "ticket"));
        }
        let knows = policy.tokens.is_some() || subject.is_some();
        if member.asks.load(Ordering::SeqCst) && !knows {
            let why = "this server cannot know who you are: use a client that follows doors";
            return Err((Admission::denied(why), "token"));
        }
        identified(subject).map(|known| (known, None, true))
    }

    fn enter(
        &self,
        client: &str,
        memory: u64,
        promised: bool,
    ) -> Result<Place, (Admission, &'static str)> {
        if let Some(refusal) = self.closing(promised) {
            return Err((refusal, "stopping"));
        }
        self.gate.enter(client, memory).map_err(|full| (full.refusal(), "busy"))
    }

    /// Begins a session on a thread of its own.
    fn start(
        self: &Arc<Self>,
        (models, model): (Arc<Vec<Model>>, usize),
        known: (Known, Option<Pass>, bool),
        (incoming, address): (Incoming, SocketAddr),
        place: Place,
        facts: Facts,
    ) {
        let (session, client) = (facts.session, address);
        let listed = incoming.stream().try_clone().map(|stream| {
            self.sessions.insert(facts.seen(), stream);
        });
        let shared = self.clone();
        let run = move || {
            if let Some(model) = models.get(model) {
                let event = visit::run(&shared, model, known, incoming, place, facts);
                shared.sessions.remove_after(session, || shared.tell(event));
                if let Some(member) = &shared.fleet {
                    member.tell(|_| ());
                }
                shared.wake();
            }
        };
        let begin = |()| thread::Builder::new().name("tacit-session".into()).spawn(run);
        if let Err(e) = listed.and_then(begin) {
            self.sessions.remove(session);
            let error = Error::transport(format!("cannot begin a session: {e}"));
            let facts = Facts::new(session, client);
            self.tell(facts.event(Err(error), End::Failed, Duration::ZERO));
        }
    }

    /// Reports a client: each that had a session, and as many of the others as an operator can
    /// read.
    fn tell(&self, mut event: Event) {
        self.metrics.count(&event);
        let Some(untold) = locked(&self.telling).tells(event.reached == AT_THE_DOOR) else {
            return;
        };
        event.untold = untold;
        // The receiver lives as long as the server.
        let _ = locked(&self.reports).send(event);
        // Whoever finds the server over finds the report as well.
        if self.options.once {
            self.stopped.store(true, Ordering::SeqCst);
            self.wake();
        }
    }
}

/// What those see who watch.
impl Shared {
    /// Whether new sessions are taken.
    fn is_ready(&self) -> bool {
        let (_, waiting) = self.gate.counts();
        let (room, _) = self.gate.room();
        let full = waiting > 0 && waiting >= room.waiting;
        !full && !self.is_draining() && !self.stopped.load(Ordering::SeqCst)
    }

    pub(crate) fn answer(&self, path: &str) -> Answer {
        match path {
            "/metrics" => {
                let body = self.metrics.render(&self.moment());
                Answer { status: "200 OK", kind: metrics::KIND, body }
            }
            "/healthz" => Answer::text("200 OK", "ok\n"),
            "/readyz" if self.is_ready() => Answer::text("200 OK", "ready\n"),
            "/readyz" => Answer::text("503 Service Unavailable", "no new sessions now\n"),
            "/sessions" => match serde_json::to_string(&self.sessions.sessions()) {
                Ok(body) => Answer { status: "200 OK", kind: "application/json", body },
                Err(e) => Answer::text("500 Internal Server Error", e.to_string()),
            },
            _ => Answer::text(
                "404 Not Found",
                "there are /metrics, /healthz, /readyz and /sessions\n",
            ),
        }
    }

    fn moment(&self) -> Moment {
        let access = self.access.read().unwrap_or_else(PoisonError::into_inner);
        let (certificate_expiry, revocation_expiry) = match &*access {
            Access::Tls(tls) => (tls.expiry(), tls.revocation_expiry()),
            Access::Plaintext => (None, None),
        };
        Moment {
            ready: self.is_ready(),
            connections: self.standing.load(Ordering::Relaxed),
            sessions: self.sessions.sessions(),
            room: self.gate.room(),
            allowed: self.gate.allowed(),
            memory: self.memory,
            certificate_expiry,
            revocation_expiry,
        }
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
