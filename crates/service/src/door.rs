//! The door: accepts connections and reads from each what its client wants, without waiting for
//! any of them.
//!
//! One thread does it all, so that a client costs no thread before it has said something valid. A
//! connection has a deadline for TLS and opening together, however slowly its bytes come. When
//! there are too many, the oldest of the address that holds most of them makes room.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use wire::{Arrival, Error, Incoming, Result, TransportKind};

/// Pause after a connection that could not be accepted.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);
/// Connections accepted before others have their turn.
const ACCEPTS: usize = 64;
/// Longest sleep, in case a wake-up is missed.
const BEAT: Duration = Duration::from_millis(500);
/// How long a browser may take for one file of a page.
const READING: Duration = Duration::from_secs(120);
const WAKER: Token = Token(0);
const FIRST_LISTENER: usize = 1;
/// Listeners of a door, at most.
const LISTENERS: usize = 7;
const FIRST_GUEST: usize = FIRST_LISTENER + LISTENERS;
/// Why the oldest connection had to go.
pub(crate) const CROWDED: &str = "too many connections wait at the door; the oldest was closed";

/// A client that has said what it wants (a `V`), or why it came to nothing.
pub(crate) struct Arrived<V> {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// Its connection and its wish.
    pub(crate) outcome: Result<(Incoming, V)>,
}

/// What a client wants, as far as it has said it; or the bytes to answer with, and why.
pub(crate) type Reading<V> = Result<Option<V>, (Vec<u8>, Error)>;

/// How connections are read.
pub(crate) struct Manners<'a, V> {
    /// Starts to read a connection to the listener of this place.
    pub(crate) open: &'a dyn Fn(TcpStream, usize) -> Result<Incoming>,
    /// Says how many bytes are read at most of a client that began like this.
    pub(crate) wanted: &'a dyn Fn(&[u8]) -> usize,
    /// Reads what a client wants.
    pub(crate) read: &'a dyn Fn(&Incoming) -> Reading<V>,
    /// Takes what arrived.
    pub(crate) take: &'a dyn Fn(Arrived<V>),
    /// Whether the door closes now.
    pub(crate) is_over: &'a dyn Fn() -> bool,
    /// How long a client may take for TLS and its opening.
    pub(crate) patience: Duration,
    /// Where the number of connections that wait at the door is kept for others.
    pub(crate) standing: &'a AtomicUsize,
    /// Connections that wait at the door, at most.
    pub(crate) most: usize,
}

/// Listeners, and those who stand before them.
pub(crate) struct Door {
    poll: Poll,
    listeners: Vec<Listening>,
    guests: HashMap<usize, Guest>,
    /// All of them in the order in which they came; some have gone.
    order: VecDeque<usize>,
    /// The guests who read a file of a page, in the order in which they began.
    readers: VecDeque<usize>,
    by_address: HashMap<IpAddr, VecDeque<usize>>,
    next: usize,
    /// Guests with something to read.
    ready: VecDeque<usize>,
}

/// A listener, and whether somebody may be there to be accepted.
struct Listening {
    listener: TcpListener,
    accepting: bool,
}

struct Guest {
    incoming: Incoming,
    address: SocketAddr,
    deadline: Instant,
    /// Whether it reads a file.
    reads: bool,
}

impl Guest {
    /// The client's address, behind a load balancer as far as that has said it.
    fn source(&self) -> SocketAddr {
        self.incoming.source().unwrap_or(self.address)
    }
}

impl Door {
    /// A door with up to seven listeners.
    pub(crate) fn new(listeners: Vec<TcpListener>) -> Result<(Self, Arc<Waker>)> {
        let failed = |e: std::io::Error| Error::transport(format!("cannot watch sockets: {e}"));
        let poll = Poll::new().map_err(failed)?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(failed)?;
        if listeners.len() > LISTENERS {
            return Err(Error::internal("a door with more listeners than it has places for"));
        }
        for (place, listener) in listeners.iter().enumerate() {
            listener.set_nonblocking(true).map_err(failed)?;
            let (source, token) = (listener.as_raw_fd(), Token(FIRST_LISTENER + place));
            let source = &mut SourceFd(&source);
            poll.registry().register(source, token, Interest::READABLE).map_err(failed)?;
        }
        let listening = |listener| Listening { listener, accepting: true };
        let door = Self {
            poll,
            listeners: listeners.into_iter().map(listening).collect(),
            guests: HashMap::new(),
            order: VecDeque::new(),
            readers: VecDeque::new(),
            by_address: HashMap::new(),
            next: FIRST_GUEST,
            ready: VecDeque::new(),
        };
        Ok((door, Arc::new(waker)))
    }

    /// Attends to clients until it is over.
    ///
    /// # Errors
    /// [`Error::Transport`] when the operating system no longer tells of sockets.
    pub(crate) fn run<V>(&mut self, manners: &Manners<'_, V>) -> Result<()> {
        let mut events = Events::with_capacity(1024);
        while !(manners.is_over)() {
            match self.poll.poll(&mut events, Some(self.sleep())) {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(Error::transport(format!("cannot watch sockets: {e}"))),
            }
            for event in &events {
                match event.token() {
                    WAKER => {}
                    Token(guest @ FIRST_GUEST..) => self.ready.push_back(guest),
                    Token(listener) => {
                        if let Some(there) = self.listeners.get_mut(listener - FIRST_LISTENER) {
                            there.accepting = true;
                        }
                    }
                }
            }
            for place in 0..self.listeners.len() {
                self.accept(place, manners);
            }
            for _ in 0..self.ready.len() {
                if let Some(guest) = self.ready.pop_front() {
                    self.advance(guest, manners);
                }
            }
            self.expire(manners);
            manners.standing.store(self.guests.len(), Ordering::Relaxed);
        }
        Ok(())
    }

    fn sleep(&self) -> Duration {
        let accepting = self.listeners.iter().any(|there| there.accepting);
        if accepting || !self.ready.is_empty() {
            return Duration::ZERO;
        }
        let first = |line: &VecDeque<usize>| line.iter().find_map(|guest| self.guests.get(guest));
        let guests = [&self.order, &self.readers].into_iter().filter_map(first);
        let left = guests.map(|guest| guest.deadline.saturating_duration_since(Instant::now()));
        left.min().unwrap_or(BEAT).min(BEAT)
    }

    fn accept<V>(&mut self, place: usize, manners: &Manners<'_, V>) {
        for _ in 0..ACCEPTS {
            let Some(there) = self.listeners.get_mut(place).filter(|there| there.accepting) else {
                return;
            };
            match there.listener.accept() {
                Ok((stream, address)) => {
                    if self.guests.len() >= manners.most {
                        self.make_room(manners);
                    }
                    match (manners.open)(stream, place) {
                        Ok(incoming) => self.greet(incoming, address, manners),
                        Err(error) => (manners.take)(Arrived { address, outcome: Err(error) }),
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => there.accepting = false,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // Out of descriptors: the oldest guest gives way to the newest.
                    self.make_room(manners);
                    thread::sleep(ACCEPT_AGAIN);
                    return;
                }
            }
        }
    }

    fn greet<V>(&mut self, incoming: Incoming, address: SocketAddr, manners: &Manners<'_, V>) {
        let number = self.next;
        self.next = self.next.wrapping_add(1).max(FIRST_GUEST);
        let source = &mut SourceFd(&incoming.stream().as_raw_fd());
        let both = Interest::READABLE | Interest::WRITABLE;
        if let Err(e) = self.poll.registry().register(source, Token(number), both) {
            let outcome = Err(Error::transport(format!("cannot watch a connection: {e}")));
            (manners.take)(Arrived { address, outcome });
            return;
        }
        let deadline = Instant::now() + manners.patience;
        self.guests.insert(number, Guest { incoming, address, deadline, reads: false });
        self.order.push_back(number);
        self.by_address.entry(address.ip()).or_default().push_back(number);
        self.ready.push_back(number);
    }

    /// Takes a guest off the list.
    fn remove(&mut self, number: usize) -> Option<Guest> {
        let guest = self.guests.remove(&number)?;
        let source = &mut SourceFd(&guest.incoming.stream().as_raw_fd());
        // A socket that is not watched any more is what this is for.
        let _ = self.poll.registry().deregister(source);
        if let Some(others) = self.by_address.get_mut(&guest.address.ip()) {
            // Mostly the first or the last.
            if others.front() == Some(&number) {
                others.pop_front();
            } else {
                others.retain(|other| *other != number);
            }
            if others.is_empty() {
                self.by_address.remove(&guest.address.ip());
            }
        }
        for line in [&mut self.order, &mut self.readers] {
            while line.front().is_some_and(|first| !self.guests.contains_key(first)) {
                line.pop_front();
            }
        }
        if self.order.len() > 2 * self.guests.len() + ACCEPTS {
            self.order.retain(|guest| self.guests.contains_key(guest));
        }
        Some(guest)
    }

    fn advance<V>(&mut self, number: usize, manners: &Manners<'_, V>) {
        let Some(guest) = self.guests.get_mut(&number) else { return };
        let mut wanted = (manners.wanted)(guest.incoming.bytes());
        let mut arrived = guest.incoming.advance(wanted);
        // The first bytes say how many there will be.
        while matches!(arrived, Ok(Arrival::Here))
            && (manners.wanted)(guest.incoming.bytes()) > wanted
        {
            wanted = (manners.wanted)(guest.incoming.bytes());
            arrived = guest.incoming.advance(wanted);
        }
        if guest.incoming.is_reader() {
            return self.send(number, &arrived);
        }
        // What it said before it left tells more than that it left.
        let outcome = match ((manners.read)(&guest.incoming), arrived) {
            (Err(refused), _) => Err(refused),
            (Ok(Some(visitor)), _) => Ok(visitor),
            (Ok(None), Err(error)) => Err((Vec::new(), error)),
            (Ok(None), Ok(Arrival::More)) => return self.ready.push_back(number),
            (Ok(None), Ok(_)) => return,
        };
        let Some(guest) = self.remove(number) else { return };
        if guest.incoming.is_spare() && outcome.is_err() {
            return;
        }
        let (address, incoming) = (guest.source(), guest.incoming);
        let outcome = match outcome {
            Ok(visitor) => Ok((incoming, visitor)),
            Err((answer, error)) => {
                incoming.answer(&answer);
                Err(error)
            }
        };
        (manners.take)(Arrived { address, outcome });
    }

    /// Goes on with a guest who reads a file of a page: it is no client of whom anybody is told.
    fn send(&mut self, number: usize, arrived: &Result<Arrival>) {
        if matches!(arrived, Ok(Arrival::Here) | Err(_)) {
            self.remove(number);
            return;
        }
        if let Some(guest) = self.guests.get_mut(&number)
            && !std::mem::replace(&mut guest.reads, true)
        {
            guest.deadline = Instant::now() + READING;
            self.order.retain(|other| *other != number);
            self.readers.push_back(number);
        }
        if matches!(arrived, Ok(Arrival::More)) {
            self.ready.push_back(number);
        }
    }

    fn expire<V>(&mut self, manners: &Manners<'_, V>) {
        let now = Instant::now();
        let late = |guests: &HashMap<usize, Guest>, number: &usize| {
            guests.get(number).is_none_or(|guest| guest.deadline <= now)
        };
        while let Some(number) = self.readers.pop_front_if(|number| late(&self.guests, number)) {
            self.remove(number);
        }
        while let Some(number) = self.order.front().copied() {
            match self.guests.get(&number) {
                Some(guest) if guest.deadline > now => return,
                Some(guest) => {
                    let limit = manners.patience.as_secs_f32();
                    let what = match guest.incoming.is_connected() {
                        true => "its hello",
                        false => "the TLS handshake",
                    };
                    let error =
                        timed_out(format!("the peer did not finish {what} within {limit} s"));
                    self.turn_away(number, error, manners);
                }
                None => drop(self.order.pop_front()),
            }
        }
    }

    /// Turns the oldest guest away of the address that has most of them.
    fn make_room<V>(&mut self, manners: &Manners<'_, V>) {
        let most = self.by_address.values().max_by_key(|guests| guests.len());
        if let Some(number) = most.and_then(|guests| guests.front().copied()) {
            self.turn_away(number, timed_out(CROWDED), manners);
        }
    }

    fn turn_away<V>(&mut self, number: usize, error: Error, manners: &Manners<'_, V>) {
        if let Some(guest) = self.remove(number) {
            if guest.incoming.is_reader() || guest.incoming.is_spare() {
                return;
            }
            let address = guest.source();
            drop(guest);
            (manners.take)(Arrived { address, outcome: Err(error) });
        }
    }
}

fn timed_out(why: impl Into<String>) -> Error {
    Error::connection(TransportKind::TimedOut, why)
}
