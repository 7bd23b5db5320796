//! TCP, with or without TLS.
//!
//! A writer thread per connection takes the bytes off the protocol thread, so
//! that two parties who both send something large cannot block each other.

use std::io::{ErrorKind, Read};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use ring::cpu::CpuTime;
use zeroize::Zeroizing;

use crate::channel::{Channel, Transport};
use crate::cost::Role;
use crate::error::{Error, Result, TransportKind};
use crate::transport::link::{Lane, Link};
use crate::transport::tls::Session;
use crate::transport::websocket::Frames;

mod writer;

use self::writer::{Job, write_all};

/// How long a party waits before it gives the peer up. No wait in a session is longer than
/// the shortest of these that is left.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For the connection, and again for the whole TLS handshake.
    pub connect: Duration,
    /// Without a single byte from the peer, or without it taking one.
    pub idle: Duration,
    /// For the whole session after the handshake, however busy the peer is.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connect: seconds(10), idle: seconds(60), total: seconds(3600) }
    }
}

/// Bytes encrypted at a time: full TLS records.
const SEALED: usize = 4 << 14;

/// How long reads may wait: each for the next byte, all of them until the deadline.
#[derive(Clone, Copy)]
pub(crate) struct Patience {
    idle: Duration,
    deadline: Instant,
}

impl Patience {
    /// Reads from `stream`; the deadline holds however the bytes trickle in.
    pub(crate) fn read<T>(
        &self,
        stream: &mut TcpStream,
        mut read: impl FnMut(&mut TcpStream) -> std::io::Result<T>,
    ) -> Result<T> {
        loop {
            let left = remaining(self.deadline).ok_or_else(too_long)?;
            if left < self.idle {
                let set = stream.set_read_timeout(Some(left));
                set.map_err(|e| io_error(&e, self.idle))?;
            }
            match read(stream) {
                Ok(value) => return Ok(value),
                // A signal, such as the one that continues a stopped process: no byte is lost,
                // and the wait for the next one begins anew.
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // A read cut short by the end of the session is the session's fault, not the
                // peer's.
                Err(_) if remaining(self.deadline).is_none() => return Err(too_long()),
                Err(e) => return Err(io_error(&e, self.idle)),
            }
        }
    }
}

/// A connection whose bytes are written by a thread of its own.
pub(crate) struct Tcp {
    reader: TcpStream,
    queue: Sender<Job>,
    session: Option<Session>,
    /// The frames of a WebSocket, which carry the bytes.
    frames: Option<Frames>,
    /// What was received before the connection became a transport, and how much of it was read.
    early: (Zeroizing<Vec<u8>>, usize),
    lane: Option<Lane>,
    patience: Patience,
    /// How long the peer may be silent when nothing else is said.
    usual: Duration,
}

impl Tcp {
    pub(crate) fn new(
        stream: TcpStream,
        session: Option<Session>,
        early: Zeroizing<Vec<u8>>,
        timeouts: Timeouts,
    ) -> Result<Self> {
        let setup = || -> std::io::Result<TcpStream> {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(timeouts.idle))?;
            stream.set_write_timeout(Some(timeouts.idle))?;
            stream.try_clone()
        };
        let writer = setup().map_err(|e| io_error(&e, timeouts.idle))?;
        let (queue, jobs) = mpsc::channel();
        let time = CpuTime::current().unwrap_or_default();
        let spawned = thread::Builder::new().name("tacit-writer".into());
        spawned
            .spawn(move || write_all(writer, &jobs, &time))
            .map_err(|e| Error::transport(format!("cannot start the writer thread: {e}")))?;
        let deadline = Instant::now() + timeouts.total;
        let patience = Patience { idle: timeouts.idle, deadline };
        let (early, usual) = ((early, 0), timeouts.idle);
        let (lane, frames) = (None, None);
        Ok(Self { reader: stream, queue, session, frames, early, lane, patience, usual })
    }

    /// Sends and receives in frames of a WebSocket from now on, if there are any.
    pub(crate) fn framed(self, frames: Option<Frames>) -> Self {
        Self { frames, ..self }
    }

    /// Encrypts bytes, if there is TLS, and queues them.
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let sealed = match &mut self.session {
            Some(session) => session.seal(bytes)?,
            None => bytes.to_vec(),
        };
        self.push(sealed)
    }

    fn push(&mut self, bytes: Vec<u8>) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let lane = self.lane.as_mut();
        let slices = lane.map(|lane| lane.send(Instant::now(), bytes.len())).unwrap_or_default();
        self.queue.send(Job::Bytes(bytes, slices)).map_err(|_| closed())
    }

    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let (early, done) = &mut self.early;
        if *done < early.len() {
            let mut rest = early.get(*done..).unwrap_or_default();
            let read = rest.read(out).map_err(|e| io_error(&e, self.usual))?;
            *done += read;
            if *done == early.len() {
                self.early = (Zeroizing::new(Vec::new()), 0);
            }
            return Ok(read);
        }
        loop {
            if self.frames.as_ref().is_some_and(Frames::is_closed) {
                return Ok(0);
            }
            let read = self.read_inside_tls(out)?;
            let Some(frames) = &mut self.frames else { return Ok(read) };
            if read == 0 {
                return Err(closed());
            }
            let (opened, answer) = frames.exchange(out.get_mut(..read).unwrap_or_default());
            if !answer.is_empty() {
                self.put(&answer)?;
            }
            match opened? {
                0 => {}
                read => return Ok(read),
            }
        }
    }

    fn read_inside_tls(&mut self, out: &mut [u8]) -> Result<usize> {
        let Some(session) = &mut self.session else {
            return self.patience.read(&mut self.reader, |stream| stream.read(out));
        };
        let (read, reply) = session.open(&mut self.reader, out, self.patience)?;
        self.push(reply)?;
        Ok(read)
    }
}

impl Transport for Tcp {
    fn key_exchange(&self) -> Option<&'static str> {
        self.session.as_ref()?.key_exchange()
    }

    fn is_door(&self) -> bool {
        self.session.as_ref().is_some_and(Session::is_door)
    }

    fn binding(&self) -> Option<[u8; 32]> {
        self.session.as_ref()?.binding()
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        remaining(self.patience.deadline).ok_or_else(too_long)?;
        if self.session.is_none() && self.frames.is_none() {
            return self.push(bytes.to_vec());
        }
        // Some is written while the rest is encrypted.
        bytes.chunks(SEALED).try_for_each(|part| match self.frames {
            Some(_) => self.put(&Frames::seal(part)),
            None => self.put(part),
        })
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Result<()> {
        let mut rest = buffer;
        while !rest.is_empty() {
            let read = self.read(rest)?;
            if read == 0 {
                return Err(closed());
            }
            rest = rest.get_mut(read..).unwrap_or_default();
        }
        Ok(())
    }

    fn is_ready(&mut self) -> bool {
        !self.early.0.is_empty()
            || self.session.as_mut().is_some_and(Session::is_ready)
            || has_bytes(&self.reader)
    }

    fn flush(&mut self) -> Result<()> {
        let (done, wait) = mpsc::channel();
        self.queue.send(Job::Flush(done)).map_err(|_| closed())?;
        let backlog = self.lane.map_or(Duration::ZERO, |lane| lane.backlog(Instant::now()));
        let written = awake_for(self.patience.idle + backlog, |step| wait.recv_timeout(step));
        written.map_err(|e| match e {
            RecvTimeoutError::Disconnected => closed(),
            RecvTimeoutError::Timeout => {
                let idle = self.patience.idle.as_secs_f32();
                timed_out(format!("the peer took nothing for {idle} s"))
            }
        })
    }

    fn close(&mut self) -> Result<()> {
        if let Some(frames) = &mut self.frames {
            let goodbye = frames.goodbye();
            self.put(&goodbye)?;
        }
        if let Some(session) = &mut self.session {
            let goodbye = session.goodbye()?;
            self.push(goodbye)?;
        }
        self.flush()?;
        self.reader.shutdown(Shutdown::Write).map_err(|e| io_error(&e, self.patience.idle))
    }

    fn closed(&mut self, patience: Duration) -> Result<()> {
        let deadline = self.patience.deadline.min(Instant::now() + patience);
        self.patience = Patience { idle: patience, deadline };
        match self.read(&mut [0; 4096])? {
            0 => Ok(()),
            _ => Err(Error::peer("the end of the session", "another message")),
        }
    }

    fn expect_silence(&mut self, silent: bool) -> Result<()> {
        let left = remaining(self.patience.deadline).ok_or_else(too_long)?;
        self.patience.idle = if silent { left } else { self.usual };
        let set = self.reader.set_read_timeout(Some(self.patience.idle));
        set.map_err(|e| io_error(&e, self.patience.idle))
    }

    fn shape(&mut self, link: Link) -> Result<()> {
        self.lane = Some(Lane::new(link, Instant::now()));
        Ok(())
    }
}

/// Whether a read would return at once. Where the system cannot be asked, it is taken to.
#[cfg(unix)]
fn has_bytes(stream: &TcpStream) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&now)).map_or(true, |ready| ready > 0)
}

#[cfg(not(unix))]
const fn has_bytes(_: &TcpStream) -> bool {
    true
}

/// Steps in which a wait is counted.
const STEPS: u32 = 32;

/// Waits up to `patience` in steps. A step counts for no longer than it was asked to take, so that
/// the time in which this process itself was stopped is not held against the peer.
fn awake_for<T>(
    patience: Duration,
    mut wait: impl FnMut(Duration) -> std::result::Result<T, RecvTimeoutError>,
) -> std::result::Result<T, RecvTimeoutError> {
    let mut ended = Err(RecvTimeoutError::Timeout);
    for _ in 0..STEPS {
        ended = wait(patience / STEPS);
        if !matches!(ended, Err(RecvTimeoutError::Timeout)) {
            break;
        }
    }
    ended
}

/// Time until `deadline`, if any is left.
pub(crate) fn remaining(deadline: Instant) -> Option<Duration> {
    deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}

fn too_long() -> Error {
    timed_out("the session took longer than its time limit")
}

/// A wait that was longer than its limit.
pub(crate) fn timed_out(what: impl Into<String>) -> Error {
    Error::connection(TransportKind::TimedOut, what)
}

pub(crate) fn closed() -> Error {
    Error::connection(TransportKind::Closed, "the peer closed the connection")
}

pub(crate) fn io_error(error: &std::io::Error, idle: Duration) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            timed_out(format!("the peer sent nothing for {} s", idle.as_secs_f32()))
        }
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => closed(),
        _ => Error::transport(error.to_string()),
    }
}

/// Opens a connection to `server` (HOST:PORT).
///
/// # Errors
/// [`Error::Misuse`] for an address that does not parse or resolve,
/// [`Error::Transport`] when nobody answers there in time.
pub fn connect(server: &str, timeouts: Timeouts) -> Result<TcpStream> {
    let addresses: Vec<SocketAddr> = server
        .to_socket_addrs()
        .map_err(|e| Error::misuse(format!("`{server}` is not a HOST:PORT that resolves: {e}")))?
        .collect();
    let mut last = (TransportKind::Unreachable, "it has no address".to_string());
    for address in addresses {
        match TcpStream::connect_timeout(&address, timeouts.connect) {
            Ok(stream) => return Ok(stream),
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
                last = (TransportKind::Refused, e.to_string());
            }
            Err(e) => last = (TransportKind::Unreachable, e.to_string()),
        }
    }
    let (kind, why) = last;
    Err(Error::connection(kind, format!("no server answers at {server}: {why}")))
}

/// A transport without encryption to a server on this machine.
pub(crate) fn plain(stream: TcpStream, timeouts: Timeouts) -> Result<Tcp> {
    if !stream.peer_addr().is_ok_and(|address| address.ip().is_loopback()) {
        return Err(Error::misuse("plaintext is for the loopback interface only; use TLS"));
    }
    Tcp::new(stream, None, Zeroizing::default(), timeouts)
}

/// Returns a channel without encryption or authentication.
///
/// # Errors
/// [`Error::Misuse`] unless both ends are on the loopback interface.
pub fn plaintext(role: Role, stream: TcpStream, timeouts: Timeouts) -> Result<Channel> {
    let loopback =
        |address: std::io::Result<SocketAddr>| address.is_ok_and(|a| a.ip().is_loopback());
    if !loopback(stream.peer_addr()) || !loopback(stream.local_addr()) {
        return Err(Error::misuse("plaintext is for the loopback interface only; use TLS"));
    }
    Ok(Channel::new(role, Box::new(Tcp::new(stream, None, Zeroizing::default(), timeouts)?)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
