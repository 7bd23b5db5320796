//! What a client says first, which is looked at and left where it is.

use std::io::ErrorKind;

use rustls::ServerConnection;
use rustls::server::Acceptor;

use super::Incoming;
use crate::error::{Error, Result};
use crate::fleet::DOOR_PROTOCOL;
use crate::tags;
use crate::transport::proxy::Preamble;
use crate::transport::tcp::{closed, io_error};
use crate::transport::tls::{ServerTls, refuse};

/// Most bytes of a hello of TLS that are looked at.
const MOST_HELLO: usize = 1 << 14;
/// The first byte of a PROXY v2 header, with which neither TLS nor a frame begins.
const FIRST_OF_HEADER: u8 = b'\r';
/// A connection to a door whose client has not yet said whether it follows doors.
pub(super) struct Undecided {
    pub(super) tls: Option<ServerTls>,
    /// All clients are passed on.
    pub(super) all: bool,
}

impl Incoming {
    /// Looks at what the client says first, as far as it is there, and leaves it there; whether
    /// that was enough to know how the connection goes on.
    pub(super) fn decide(&mut self) -> Result<bool> {
        let mut first = vec![0; if self.maybe { 1 } else { MOST_HELLO }];
        let seen = match self.stream.peek(&mut first) {
            Ok(0) => return Err(closed()),
            Ok(seen) => first.get(..seen).unwrap_or_default(),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(false);
            }
            Err(e) => return Err(io_error(&e, std::time::Duration::ZERO)),
        };
        if self.maybe {
            self.maybe = false;
            self.preamble = (seen.first() == Some(&FIRST_OF_HEADER)).then(Preamble::default);
            return Ok(true);
        }
        let Some(undecided) = &self.undecided else { return Ok(true) };
        let follows = match &undecided.tls {
            None => seen.first() == Some(&tags::DOOR_REQUEST),
            Some(_) => match follows(seen)? {
                Some(follows) => follows,
                None if seen.len() >= MOST_HELLO => {
                    return Err(Error::peer("a hello of TLS", "a longer one than any"));
                }
                None => return Ok(false),
            },
        };
        self.relayed = undecided.all || !follows;
        if !self.relayed
            && let Some(tls) = &undecided.tls
        {
            let session = ServerConnection::new(tls.config.clone()).map_err(|e| refuse(&e))?;
            self.tls = Some(Box::new(session.into()));
        }
        self.undecided = None;
        Ok(true)
    }
}

/// Whether a client follows doors, by its hello of TLS; `None` while that is not whole.
fn follows(mut seen: &[u8]) -> Result<Option<bool>> {
    let mut acceptor = Acceptor::default();
    while !seen.is_empty() {
        if acceptor.read_tls(&mut seen).is_err() {
            return Ok(None);
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => {
                let hello = accepted.client_hello();
                let named = hello.alpn().is_some_and(|mut names| names.any(|n| n == DOOR_PROTOCOL));
                return Ok(Some(named));
            }
            Ok(None) => {}
            Err((error, _)) => return Err(refuse(&error)),
        }
    }
    Ok(None)
}
