//! The door of a fleet: clients ask it for a server, servers tell it what they do.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wire::fleet::DoorRequest;
use wire::{Admission, Error, Incoming, Result, ServerTls, encode_frame};

use crate::door::{Arrived, Door, Manners};
use crate::fleet::guest::{self, Visit};
use crate::fleet::hall::{Asker, Floor, Hall, Refusal};
use crate::fleet::options::{AllocatorOptions, Relay};
use crate::fleet::secret::Secret;
use crate::fleet::watch::watch;
use crate::fleet::{relay, staff};
use crate::limits;
use crate::lock::locked;
use crate::options::Access;
use crate::policy::Policy;
use crate::telling::Telling;
use crate::watch::door::Counters;
use crate::watch::http::Http;

/// Threads that answer requests.
const CLERKS: usize = 4;
/// Requests that wait for such a thread.
const REQUESTS: usize = 1024;
/// Longest time for TLS and a request.
const PATIENCE: Duration = Duration::from_secs(5);
/// A client that waits is told its place so often.
const BEAT: Duration = Duration::from_millis(500);
/// Time between two looks for tickets that are over.
const SWEEP: Duration = Duration::from_millis(200);
/// How long clients of a door that stops, or without a queue, should stay away.
const AGAIN: Duration = Duration::from_secs(1);

/// A bound door.
pub struct Allocator {
    address: SocketAddr,
    websocket: Option<SocketAddr>,
    control: SocketAddr,
    door: Mutex<Door>,
    hall: Arc<Hall>,
    events: Mutex<Receiver<Value>>,
    watch: Option<Http>,
    staff: Mutex<Option<(TcpListener, Option<ServerTls>)>>,
}

type Request = (Incoming, SocketAddr, DoorRequest, Instant);

impl Allocator {
    /// Binds all addresses.
    ///
    /// # Errors
    /// [`Error::Misuse`] for addresses that cannot be bound, for a secret that cannot be used, and for
    /// plaintext beyond the loopback interface.
    pub fn bind(options: AllocatorOptions) -> Result<Self> {
        if !(1..=60).contains(&options.ticket_seconds) {
            return Err(Error::misuse("a ticket is good for 1 to 60 seconds"));
        }
        let secret = Secret::from_file(&options.secret, true)?;
        let (listener, address) = listen(&options.listen)?;
        let browsers = options.websocket.as_ref().map(|there| listen(&there.listen)).transpose()?;
        let (browsers, websocket) = browsers.unzip();
        let (staff, control) = listen(&options.control)?;
        let plain = matches!(options.access, Access::Plaintext);
        let mut all = [address, control].into_iter().chain(websocket);
        if plain && !all.all(|address| address.ip().is_loopback()) {
            return Err(Error::misuse("plaintext is for the loopback interface only; use TLS"));
        }
        let (door, waker) = Door::new(std::iter::once(listener).chain(browsers).collect())?;
        let (sender, events) = mpsc::channel();
        let metrics = options.metrics.clone();
        let control_tls = options.control_tls.clone();
        let hall = Arc::new(Hall {
            secret,
            policy: RwLock::new(options.policy.clone()),
            access: RwLock::new(options.access.clone()),
            floor: Mutex::new(Floor::default()),
            changed: std::sync::Condvar::new(),
            counters: Counters::new(),
            standing: AtomicUsize::new(0),
            relays: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
            events: Mutex::new(sender),
            telling: Mutex::new(Telling::new()),
            waker,
            options,
        });
        let watched = hall.clone();
        let watch = metrics.map(|listen| Http::start(&listen, move |path| watch(&watched, path)));
        Ok(Self {
            address,
            websocket,
            control,
            door: Mutex::new(door),
            hall,
            events: Mutex::new(events),
            watch: watch.transpose()?,
            staff: Mutex::new(Some((staff, control_tls))),
        })
    }

    /// Where clients come.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where browsers come, if they may.
    pub const fn websocket_address(&self) -> Option<SocketAddr> {
        self.websocket
    }

    /// Where servers come.
    pub const fn control(&self) -> SocketAddr {
        self.control
    }

    /// Where metrics are shown, if they are.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.watch.as_ref().map(Http::address)
    }

    /// Attends to clients and servers until it is stopped.
    ///
    /// # Errors
    /// [`Error::Transport`] when the operating system no longer tells of sockets or gives no threads.
    pub fn run(&self) -> Result<()> {
        let hall = &self.hall;
        let failed = |e: std::io::Error| Error::transport(format!("cannot begin a thread: {e}"));
        if let Some((listener, tls)) = locked(&self.staff).take() {
            let staffed = hall.clone();
            let run = move || staff::run(&staffed, &listener, tls.as_ref());
            thread::Builder::new().name("tacit-control".into()).spawn(run).map_err(failed)?;
        }
        let swept = hall.clone();
        let sweep = move || {
            while !swept.is_over() {
                thread::sleep(SWEEP);
                swept.sweep(None);
            }
        };
        thread::Builder::new().name("tacit-sweep".into()).spawn(sweep).map_err(failed)?;
        let (sender, receiver) = mpsc::sync_channel(REQUESTS);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..CLERKS {
            let (hall, receiver) = (hall.clone(), receiver.clone());
            let run = move || {
                loop {
                    let request = locked(&receiver).recv();
                    let Ok(request) = request else { return };
                    attend(&hall, request);
                }
            };
            thread::Builder::new().name("tacit-clerk".into()).spawn(run).map_err(failed)?;
        }
        let manners = Manners {
            open: &|stream, place| guest::open(hall, stream, place > 0),
            wanted: &guest::wanted,
            read: &guest::read,
            take: &|arrived| take(hall, &sender, arrived),
            is_over: &|| hall.is_over(),
            patience: PATIENCE,
            standing: &hall.standing,
            most: limits::connections(limits::raise_descriptors(), relay::MOST),
        };
        locked(&self.door).run(&manners)
    }

    /// Makes [`Allocator::run`] return. Tickets that are out stay good; sessions that are passed on go on.
    pub fn stop(&self) {
        self.hall.stopped.store(true, Ordering::SeqCst);
        self.hall.changed.notify_all();
        let _ = self.hall.waker.wake();
        // The thread that accepts servers looks up.
        drop(TcpStream::connect_timeout(&self.control, AGAIN));
    }

    /// Gives a server no more tickets, and has it end its sessions within `patience`; whether there is such a
    /// server.
    pub fn drain(&self, server: &str, patience: Duration) -> bool {
        self.hall.floor().roster.drain(server, patience.as_secs_f64())
    }

    /// Returns clients that are passed on now.
    pub fn relayed(&self) -> usize {
        self.hall.relays.load(Ordering::SeqCst)
    }

    /// Returns servers, clients that wait, and what became of tickets, as JSON.
    pub fn state(&self) -> Value {
        self.hall.state()
    }

    /// Puts another policy and identity in the place of those that new clients get.
    pub fn replace(&self, access: Access, policy: Policy) {
        *self.hall.access.write().unwrap_or_else(PoisonError::into_inner) = access;
        *self.hall.policy.write().unwrap_or_else(PoisonError::into_inner) = policy;
    }

    /// Returns what happened next, waiting up to `patience`.
    pub fn next_event(&self, patience: Duration) -> Option<Value> {
        locked(&self.events).recv_timeout(patience).ok()
    }
}

impl Drop for Allocator {
    fn drop(&mut self) {
        self.stop();
    }
}

fn listen(at: &str) -> Result<(TcpListener, SocketAddr)> {
    let failed = |e| Error::misuse(format!("cannot listen on `{at}`: {e}"));
    let listener = TcpListener::bind(at).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

fn take(hall: &Arc<Hall>, clerks: &SyncSender<Request>, arrived: Arrived<Visit>) {
    match arrived.outcome {
        Err(error) => {
            hall.counters.fail(&error);
            if let Some(untold) = locked(&hall.telling).tells(true) {
                let (client, why) = (arrived.address.to_string(), error.to_string());
                hall.event(json!({
                    "event": "failed", "client": client, "error": why, "untold": untold,
                }));
            }
        }
        Ok((_, Visit::Relayed)) if hall.options.relay == Relay::Never => {
            hall.counters.refuse("old");
        }
        Ok((incoming, Visit::Relayed)) => {
            relay::begin(hall, incoming, arrived.address);
        }
        Ok((incoming, Visit::Begins)) => {
            let why = "this is the door of a fleet, which names a server to each client: take a client of this \
                       release, or have the door pass all clients on (--relay always)";
            refuse(hall, incoming, (Admission::denied(why), "old"), 0, (arrived.address, None));
        }
        Ok((incoming, Visit::Asks(request))) => {
            let request = (incoming, arrived.address, request, Instant::now());
            if let Err(
                TrySendError::Full((incoming, ..)) | TrySendError::Disconnected((incoming, ..)),
            ) = clerks.try_send(request)
            {
                hall.counters.refuse("busy");
                let busy = Admission::busy(AGAIN, "too many clients come to the door at once");
                incoming.answer(&encode_frame(&busy, 0).unwrap_or_default());
            }
        }
    }
}

/// Answers a request, or finds it a place in the queue.
fn attend(hall: &Arc<Hall>, (incoming, address, request, since): Request) {
    let asked = hall.asker(address, (incoming.subject(), incoming.is_websocket()), &request);
    drop(request);
    let asker = match asked {
        Ok(asker) => asker,
        Err(refusal) => return refuse(hall, incoming, refusal, 0, (address, None)),
    };
    match hall.serve(&asker, None) {
        Ok(Some(ticket)) => {
            incoming.answer(&encode_frame(&ticket, 0).unwrap_or_default());
            hall.counters.ticket(since.elapsed().as_secs_f64());
        }
        Ok(None) => {
            let most = hall.options.queue;
            let wanted = asker.wanted.clone();
            let place = hall.floor().queue.enter(&asker.key, wanted, most);
            let Some(place) = place else {
                let busy = full(hall.floor().queue.len());
                return refuse(hall, incoming, (busy, "busy"), 0, (address, Some(&asker)));
            };
            let queued = Queued { hall: hall.clone(), place };
            let run = move || wait(&queued, incoming, address, &asker, since);
            // Without a thread the client's connection ends, and its place with it.
            let _ = thread::Builder::new().name("tacit-queue".into()).spawn(run);
        }
        Err(refusal) => refuse(hall, incoming, refusal, 0, (address, Some(&asker))),
    }
}

fn full(waiting: usize) -> Admission {
    Admission::busy(AGAIN, format!("all servers of the fleet are full, {waiting} sessions wait"))
}

/// A place in the queue, until it is left.
struct Queued {
    hall: Arc<Hall>,
    place: u64,
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.hall.floor().queue.leave(self.place);
        self.hall.changed.notify_all();
    }
}

/// Waits for a server, telling the client its place.
fn wait(
    queued: &Queued,
    mut incoming: Incoming,
    address: SocketAddr,
    asker: &Asker,
    since: Instant,
) {
    let hall = &queued.hall;
    let (mut position, mut told) = (0, None::<Instant>);
    loop {
        match hall.serve(asker, Some(queued.place)) {
            Ok(Some(ticket)) => {
                incoming.answer(&encode_frame(&ticket, position).unwrap_or_default());
                hall.counters.ticket(since.elapsed().as_secs_f64());
                return;
            }
            Ok(None) => {}
            Err(refusal) => {
                return refuse(hall, incoming, refusal, position, (address, Some(asker)));
            }
        }
        if hall.is_over() {
            let stops = Admission::busy(AGAIN, "the door is stopping");
            return refuse(hall, incoming, (stops, "stopping"), position, (address, Some(asker)));
        }
        let floor = hall.floor();
        let Some(before) = floor.before(queued.place) else {
            let busy = full(floor.queue.len());
            drop(floor);
            return refuse(hall, incoming, (busy, "busy"), position, (address, Some(asker)));
        };
        if told.is_none_or(|told| told.elapsed() >= BEAT) {
            drop(floor);
            let waiting = Admission::Waiting { before };
            let frame = encode_frame(&waiting, position).unwrap_or_default();
            if incoming.is_gone() || incoming.tell(&frame).is_err() {
                return;
            }
            (position, told) = (position + 1, Some(Instant::now()));
            continue;
        }
        // Whether it was woken or the time was up, it looks again.
        drop(hall.changed.wait_timeout(floor, BEAT / 4));
    }
}

fn refuse(
    hall: &Hall,
    incoming: Incoming,
    (refusal, reason): Refusal,
    position: u64,
    (address, asker): (SocketAddr, Option<&Asker>),
) {
    incoming.answer(&encode_frame(&refusal, position).unwrap_or_default());
    hall.counters.refuse(reason);
    let why = refusal.outcome().err().map(|error| error.to_string());
    hall.event(json!({
        "event": "refused", "client": address.to_string(),
        "identity": asker.map(|asker| asker.key.clone()), "refused": reason, "error": why,
    }));
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
mod tests;
