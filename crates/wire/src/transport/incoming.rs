//! Connections that a server has accepted and whose clients have not yet said what they want.
//!
//! They are read as their bytes arrive and never waited for, so that one thread attends to
//! thousands: a client that says nothing, or a byte now and then, costs a descriptor and some
//! memory until its time is up.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use rustls::{Connection, ServerConnection};
use zeroize::Zeroizing;

use crate::channel::Channel;
use crate::cost::Role;
use crate::error::{Error, Result};
use crate::transport::certificate::subject;
use crate::transport::proxy::Preamble;
use crate::transport::tcp::{Tcp, Timeouts, closed, io_error};
use crate::transport::tls::{ServerTls, Session, refuse};
use crate::transport::websocket::{Pages, WebSocket};

mod first;
mod framed;
mod paged;

use self::first::Undecided;

/// Reads of one connection before others have their turn.
const TURN: usize = 16;
/// Pieces of 4096 bytes that a client who is refused may have sent on: those of 4 MiB, and of a turn.
const UNREAD: usize = 1024 + TURN;

/// What has arrived on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Not yet enough: more may come.
    Waiting,
    /// There may be more at once, after the turns of others.
    More,
    /// As many bytes as were wanted.
    Here,
}

/// A connection that is read without waiting, up to its first bytes inside TLS.
pub struct Incoming {
    stream: TcpStream,
    /// What comes before everything else, until it is whole.
    preamble: Option<Preamble>,
    source: Option<SocketAddr>,
    /// What was added to the header to vouch for it.
    voucher: Vec<u8>,
    /// Whether there may be a header, and its first byte has not come yet.
    maybe: bool,
    /// How the connection goes on when it is known what its client is.
    undecided: Option<Undecided>,
    relayed: bool,
    tls: Option<Box<Connection>>,
    /// Whether the bytes come in frames of a WebSocket.
    websocket: Option<WebSocket>,
    /// What is shown to browsers that ask for a page.
    pages: Option<Pages>,
    /// May hold the client's token.
    early: Zeroizing<Vec<u8>>,
}

impl Incoming {
    /// Begins with an accepted `stream`: TLS 1.3 as `tls` says, or plaintext without it, which is
    /// for the loopback interface only.
    ///
    /// # Errors
    /// [`Error::Misuse`] for plaintext from elsewhere, [`Error::Transport`] for a connection that
    /// is gone.
    pub fn new(stream: TcpStream, tls: Option<&ServerTls>) -> Result<Self> {
        let session = tls.map(|tls| ServerConnection::new(tls.config.clone())).transpose();
        let session = session.map_err(|e| refuse(&e))?.map(|session| Box::new(session.into()));
        Ok(Self { tls: session, ..Self::accepted(stream, tls.is_none())? })
    }

    fn accepted(stream: TcpStream, is_plaintext: bool) -> Result<Self> {
        let lost = |e| io_error(&e, std::time::Duration::ZERO);
        stream.set_nonblocking(true).map_err(lost)?;
        stream.set_nodelay(true).map_err(lost)?;
        if is_plaintext && !stream.peer_addr().map_err(lost)?.ip().is_loopback() {
            return Err(Error::misuse("plaintext is for the loopback interface only; use TLS"));
        }
        Ok(Self {
            stream,
            preamble: None,
            source: None,
            voucher: Vec::new(),
            maybe: false,
            undecided: None,
            relayed: false,
            tls: None,
            websocket: None,
            pages: None,
            early: Zeroizing::new(Vec::new()),
        })
    }

    /// Begins with a `stream` that the door of a fleet has accepted. What the client says first is looked at
    /// and left where it is, so that a client who does not follow doors can be passed on; so are
    /// `all` where that is said.
    ///
    /// # Errors
    /// As [`Incoming::new`].
    pub fn at_door(stream: TcpStream, tls: Option<&ServerTls>, all: bool) -> Result<Self> {
        let undecided = Some(Undecided { tls: tls.map(ServerTls::door), all });
        Ok(Self { undecided, ..Self::accepted(stream, tls.is_none())? })
    }

    /// Whether its client does not follow doors, or none does here: it is to be passed on as it is.
    pub const fn is_relayed(&self) -> bool {
        self.relayed
    }

    /// Returns the socket, of which nothing was read if the client is to be passed on.
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Allows for a PROXY v2 header, of which the caller has to see who [vouches](Incoming::voucher) for it.
    #[must_use]
    pub fn maybe_proxied(self) -> Self {
        Self { maybe: true, ..self }
    }

    /// Returns what came with a PROXY v2 header to vouch for it; empty without.
    pub fn voucher(&self) -> &[u8] {
        &self.voucher
    }

    /// Drops the first `count` of the bytes that have arrived.
    pub fn skip(&mut self, count: usize) {
        let count = count.min(self.early.len());
        self.early.drain(..count);
    }

    /// Expects a PROXY v2 header first, as load balancers send it.
    #[must_use]
    pub fn proxied(self) -> Self {
        Self { preamble: Some(Preamble::default()), ..self }
    }

    /// Returns the client's address as a load balancer has said it, once it has.
    pub const fn source(&self) -> Option<SocketAddr> {
        self.source
    }

    /// Returns the socket, to be watched for bytes.
    pub const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Returns the bytes that have arrived inside TLS.
    pub fn bytes(&self) -> &[u8] {
        &self.early
    }

    /// Whether the TLS handshake is over, or there is none.
    pub fn is_connected(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| !tls.is_handshaking())
    }

    /// Returns the subject of the certificate that the client showed and an authority of this
    /// server vouched for, once the TLS handshake is over.
    pub fn subject(&self) -> Option<String> {
        subject(self.tls.as_ref()?.peer_certificates()?.first()?)
    }

    /// Takes what is there, until `wanted` bytes have arrived inside TLS.
    ///
    /// # Errors
    /// [`Error::Transport`] when the connection is gone, or the peer does not speak TLS 1.3 or
    /// does not authenticate as required; [`Error::Peer`] for a header that is none.
    pub fn advance(&mut self, wanted: usize) -> Result<Arrival> {
        for _ in 0..TURN {
            let missing = wanted.saturating_sub(self.early.len());
            if self.is_reader() {
                return self.pour();
            }
            if missing == 0 || self.relayed {
                return Ok(Arrival::Here);
            }
            if (self.maybe || self.undecided.is_some()) && !self.decide()? {
                return Ok(Arrival::Waiting);
            }
            if self.relayed {
                return Ok(Arrival::Here);
            }
            let moved = match (&mut self.preamble, &mut self.tls) {
                (Some(preamble), _) => match preamble.missing()? {
                    0 => {
                        self.source = preamble.source()?;
                        self.voucher = preamble.voucher().unwrap_or_default().to_vec();
                        self.preamble = None;
                        continue;
                    }
                    missing => {
                        let mut part = Vec::new();
                        let moved = read(&mut self.stream, missing, &mut part);
                        preamble.extend(&part);
                        moved
                    }
                },
                (None, tls) => {
                    let mut part = Zeroizing::new(Vec::new());
                    let moved = match tls {
                        None => read(&mut self.stream, missing, &mut part),
                        Some(tls) => step(tls, &mut self.stream, missing, &mut part)?,
                    };
                    self.take(&mut part)?;
                    moved
                }
            };
            match moved {
                Ok(0) => return Err(closed()),
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Arrival::Waiting),
                Err(e) => return Err(io_error(&e, std::time::Duration::ZERO)),
            }
        }
        Ok(Arrival::More)
    }

    /// Sends bytes inside TLS, as they are.
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let lost = |e: std::io::Error| io_error(&e, std::time::Duration::ZERO);
        let Some(tls) = &mut self.tls else { return self.stream.write_all(bytes).map_err(lost) };
        tls.writer().write_all(bytes).map_err(lost)?;
        while tls.wants_write() {
            tls.write_tls(&mut self.stream).map_err(lost)?;
        }
        Ok(())
    }

    /// Whether the client has closed its connection, as far as is known without waiting.
    pub fn is_gone(&self) -> bool {
        match self.stream.peek(&mut [0]) {
            Ok(seen) => seen == 0,
            Err(e) => !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// Sends bytes inside TLS, as they are, and ends the connection.
    fn end(&mut self, bytes: &[u8]) {
        let sealed = match &mut self.tls {
            None => bytes.to_vec(),
            Some(tls) => {
                let mut out = Vec::new();
                let written = tls.writer().write_all(bytes);
                tls.send_close_notify();
                while written.is_ok() && tls.wants_write() && tls.write_tls(&mut out).is_ok() {}
                out
            }
        };
        // A peer that is gone, or takes nothing, has given its answer away.
        let _ = self.stream.write_all(&sealed);
        let _ = self.stream.shutdown(Shutdown::Write);
        // What is unread when the socket is closed would reset the connection, answer and all.
        let mut rest = [0; 4096];
        let _ = (0..UNREAD).all(|_| self.stream.read(&mut rest).is_ok_and(|read| read > 0));
    }

    /// Returns the connection as a channel, on which what has arrived is received first.
    ///
    /// # Errors
    /// [`Error::Transport`] for a connection that is gone.
    pub fn into_channel(self, timeouts: Timeouts) -> Result<Channel> {
        let lost = |e| io_error(&e, timeouts.idle);
        self.stream.set_nonblocking(false).map_err(lost)?;
        let session = self.tls.map(|mut tls| {
            tls.set_buffer_limit(None);
            Session(*tls)
        });
        let frames = match self.websocket {
            Some(WebSocket::Open(frames)) => Some(frames),
            Some(WebSocket::Asked(_) | WebSocket::Page(_)) => {
                return Err(Error::internal("a WebSocket that is not open yet"));
            }
            None => None,
        };
        let tcp = Tcp::new(self.stream, session, self.early, timeouts)?.framed(frames);
        Ok(Channel::new(Role::Server, Box::new(tcp)))
    }
}

fn read(stream: &mut TcpStream, missing: usize, early: &mut Vec<u8>) -> std::io::Result<usize> {
    let mut bytes = [0; 256];
    let part = bytes.get_mut(..missing.min(256)).unwrap_or_default();
    let read = stream.read(part)?;
    early.extend_from_slice(part.get(..read).unwrap_or_default());
    Ok(read)
}

/// One thing that TLS can do now: give plaintext, write, or read.
fn step(
    tls: &mut Connection,
    stream: &mut TcpStream,
    missing: usize,
    early: &mut Vec<u8>,
) -> Result<std::io::Result<usize>> {
    let mut bytes = [0; 256];
    let part = bytes.get_mut(..missing.min(256)).unwrap_or_default();
    match tls.reader().read(part) {
        Ok(read) => {
            early.extend_from_slice(part.get(..read).unwrap_or_default());
            return Ok(Ok(read));
        }
        Err(e) if e.kind() == ErrorKind::WouldBlock => {}
        Err(_) => return Err(closed()),
    }
    if tls.wants_write() {
        return Ok(tls.write_tls(stream));
    }
    let read = tls.read_tls(stream);
    if matches!(read, Ok(1..))
        && let Err(error) = tls.process_new_packets()
    {
        // The alert is a courtesy; the peer may be gone.
        let _ = tls.write_tls(stream);
        return Err(refuse(&error));
    }
    Ok(read)
}
