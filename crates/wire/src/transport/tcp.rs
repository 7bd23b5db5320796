//! TCP, with or without TLS.
//!
//! A writer thread per connection takes the bytes off the protocol thread, so
//! that two parties who both send something large cannot block each other.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::channel::{Channel, Transport};
use crate::cost::Role;
use crate::error::{Error, Result};
use crate::transport::link::{Lane, Link, Slice};
use crate::transport::tls::Session;

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

/// Before an arrival the writer sleeps, except for this long: sleeping overshoots.
const AWAKE: Duration = Duration::from_micros(100);

/// Bytes encrypted at a time: full TLS records.
const SEALED: usize = 4 << 14;

enum Job {
    /// With the times at which a shaped link delivers the parts; none: at once.
    Bytes(Vec<u8>, Vec<Slice>),
    Flush(Sender<()>),
}

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
        read: impl FnOnce(&mut TcpStream) -> std::io::Result<T>,
    ) -> Result<T> {
        let left = remaining(self.deadline).ok_or_else(too_long)?;
        if left < self.idle {
            let set = stream.set_read_timeout(Some(left));
            set.map_err(|e| io_error(&e, self.idle))?;
        }
        // A read cut short by the end of the session is the session's fault, not the peer's.
        read(stream).map_err(|e| match remaining(self.deadline) {
            Some(_) => io_error(&e, self.idle),
            None => too_long(),
        })
    }
}

/// A connection whose bytes are written by a thread of its own.
pub(crate) struct Tcp {
    reader: TcpStream,
    queue: Sender<Job>,
    session: Option<Session>,
    lane: Option<Lane>,
    patience: Patience,
    /// How long the peer may be silent when nothing else is said.
    usual: Duration,
}

impl Tcp {
    pub(crate) fn new(
        stream: TcpStream,
        session: Option<Session>,
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
        let spawned = thread::Builder::new().name("tacit-writer".into());
        spawned
            .spawn(move || write_all(writer, &jobs))
            .map_err(|e| Error::transport(format!("cannot start the writer thread: {e}")))?;
        let deadline = Instant::now() + timeouts.total;
        let patience = Patience { idle: timeouts.idle, deadline };
        Ok(Self { reader: stream, queue, session, lane: None, patience, usual: timeouts.idle })
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
        let Some(session) = &mut self.session else {
            return self.patience.read(&mut self.reader, |stream| stream.read(out));
        };
        let (read, reply) = session.open(&mut self.reader, out, self.patience)?;
        self.push(reply)?;
        Ok(read)
    }
}

impl Transport for Tcp {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        remaining(self.patience.deadline).ok_or_else(too_long)?;
        if self.session.is_none() {
            return self.push(bytes.to_vec());
        }
        // Some is written while the rest is encrypted.
        for part in bytes.chunks(SEALED) {
            if let Some(session) = &mut self.session {
                let sealed = session.seal(part)?;
                self.push(sealed)?;
            }
        }
        Ok(())
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

    fn flush(&mut self) -> Result<()> {
        let (done, wait) = mpsc::channel();
        self.queue.send(Job::Flush(done)).map_err(|_| closed())?;
        let backlog = self.lane.map_or(Duration::ZERO, |lane| lane.backlog(Instant::now()));
        wait.recv_timeout(self.patience.idle + backlog).map_err(|e| match e {
            RecvTimeoutError::Disconnected => closed(),
            RecvTimeoutError::Timeout => {
                let idle = self.patience.idle.as_secs_f32();
                Error::transport(format!("the peer took nothing for {idle} s"))
            }
        })
    }

    fn close(&mut self) -> Result<()> {
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
        match self.read(&mut [0])? {
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

/// Runs on the writer thread until the queue closes or the peer is gone.
fn write_all(mut stream: TcpStream, jobs: &Receiver<Job>) {
    for job in jobs {
        match job {
            Job::Bytes(bytes, slices) => {
                if write(&mut stream, &bytes, &slices).is_err() {
                    let _ = stream.shutdown(Shutdown::Both);
                    return;
                }
            }
            Job::Flush(done) => drop(done.send(())),
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
}

fn write(stream: &mut TcpStream, bytes: &[u8], slices: &[Slice]) -> std::io::Result<()> {
    let mut done = 0;
    for slice in slices {
        wait_until(slice.arrival);
        stream.write_all(bytes.get(done..slice.end).unwrap_or_default())?;
        done = slice.end;
    }
    stream.write_all(bytes.get(done..).unwrap_or_default())
}

fn wait_until(moment: Instant) {
    loop {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        match left.checked_sub(AWAKE) {
            Some(asleep) => thread::sleep(asleep),
            None => thread::yield_now(),
        }
    }
}

/// Time until `deadline`, if any is left.
pub(crate) fn remaining(deadline: Instant) -> Option<Duration> {
    deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}

fn too_long() -> Error {
    Error::transport("the session took longer than its time limit")
}

pub(crate) fn closed() -> Error {
    Error::transport("the peer closed the connection")
}

pub(crate) fn io_error(error: &std::io::Error, idle: Duration) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            Error::transport(format!("the peer sent nothing for {} s", idle.as_secs_f32()))
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
    let mut last = "it has no address".to_string();
    for address in addresses {
        match TcpStream::connect_timeout(&address, timeouts.connect) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = e.to_string(),
        }
    }
    Err(Error::transport(format!("no server answers at {server}: {last}")))
}

/// A channel without encryption or authentication.
///
/// # Errors
/// [`Error::Misuse`] unless both ends are on the loopback interface.
pub fn plaintext(role: Role, stream: TcpStream, timeouts: Timeouts) -> Result<Channel> {
    let loopback =
        |address: std::io::Result<SocketAddr>| address.is_ok_and(|a| a.ip().is_loopback());
    if !loopback(stream.peer_addr()) || !loopback(stream.local_addr()) {
        return Err(Error::misuse("plaintext is for the loopback interface only; use TLS"));
    }
    Ok(Channel::new(role, Box::new(Tcp::new(stream, None, timeouts)?)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::message::Packed;
    use crate::tags;
    use std::net::TcpListener;

    type Test = Packed<{ tags::TESTS }>;

    fn pair(idle: Duration) -> (Channel, Channel) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let timeouts = Timeouts { idle, ..Timeouts::default() };
        let address = listener.local_addr().unwrap().to_string();
        let client = connect(&address, timeouts).unwrap();
        let server = listener.accept().unwrap().0;
        (
            plaintext(Role::Client, client, timeouts).unwrap(),
            plaintext(Role::Server, server, timeouts).unwrap(),
        )
    }

    #[test]
    fn two_large_sends_do_not_block_each_other() {
        let (mut client, mut server) = pair(Duration::from_secs(20));
        let big = Test::one(vec![5; 4_000_000], 64);
        let layout = vec![big.0.first().unwrap().0];
        let expected = big.clone();
        let peer = thread::spawn(move || {
            server.send(&big).unwrap();
            server.receive::<Test>(&layout).unwrap()
        });
        client.send(&expected).unwrap();
        let got: Test = client.receive(&vec![expected.0.first().unwrap().0]).unwrap();
        assert!(got == expected && peer.join().unwrap() == expected);
        assert_eq!(client.meter().total(None).cost.rounds, 2);
    }

    #[test]
    fn a_peer_that_computes_may_be_silent_and_one_that_is_done_may_not() {
        let (mut client, mut server) = pair(Duration::from_millis(200));
        let layout = vec![crate::Segment { count: 1, bits: 8 }];
        let asked = layout.clone();
        let peer = thread::spawn(move || {
            let got: Test = server.receive(&asked).unwrap();
            thread::sleep(Duration::from_millis(600));
            server.send(&got).unwrap();
            thread::sleep(Duration::from_millis(600));
        });
        client.send(&Test::one(vec![7], 8)).unwrap();
        client.expect_silence(true).unwrap();
        client.receive::<Test>(&layout).unwrap();
        client.expect_silence(false).unwrap();
        let error = client.receive::<Test>(&layout).unwrap_err();
        assert!(error.to_string().contains("0.2 s"), "{error}");
        peer.join().unwrap();
    }

    #[test]
    fn a_shaped_link_takes_no_less_than_its_closed_form() {
        let (mut client, mut server) = pair(Duration::from_secs(20));
        let link = Link::new(0.02, 80e6).unwrap();
        client.shape(link).unwrap();
        server.shape(link).unwrap();
        let peer = thread::spawn(move || {
            for bytes in [1, 1, 1, 1, 1_000_000] {
                let got: Test =
                    server.receive(&vec![crate::Segment { count: bytes, bits: 8 }]).unwrap();
                server.send(&got).unwrap();
            }
            server.flush().unwrap();
        });
        for (bytes, there_and_back) in [(1, 0.02); 4].into_iter().chain([(1_000_000, 0.22)]) {
            let began = Instant::now();
            client.send(&Test::one(vec![7; bytes], 8)).unwrap();
            let layout = vec![crate::Segment { count: bytes, bits: 8 }];
            let _: Test = client.receive(&layout).unwrap();
            let took = began.elapsed().as_secs_f64();
            // How much more is the machine's affair; the schedule is exact, see `link`.
            assert!(took >= there_and_back, "{bytes}: {took}");
        }
        peer.join().unwrap();
    }

    #[test]
    fn a_silent_or_absent_peer_is_named() {
        let (mut client, server) = pair(Duration::from_millis(200));
        let layout = vec![crate::Segment { count: 1, bits: 8 }];
        let silent = client.receive::<Test>(&layout).unwrap_err();
        assert!(silent.to_string().contains("sent nothing"), "{silent}");
        drop(server);
        let gone = client.receive::<Test>(&layout).unwrap_err();
        assert!(gone.to_string().contains("closed"), "{gone}");
        let nobody = connect("127.0.0.1:1", Timeouts::default()).unwrap_err();
        assert!(nobody.to_string().contains("no server answers"), "{nobody}");
    }
}
