//! Connections of browsers that read a page.

use std::io::{ErrorKind, Write};

use super::{Arrival, Incoming, TURN};
use crate::error::Result;
use crate::transport::tcp::io_error;
use crate::transport::websocket::{Pages, WebSocket};

impl Incoming {
    /// Shows `pages` to browsers that ask for a file instead of a WebSocket, if there are any.
    #[must_use]
    pub fn showing(self, pages: Option<Pages>) -> Self {
        Self { pages, ..self }
    }

    /// Whether its client reads a file, and wants no session.
    pub const fn is_reader(&self) -> bool {
        matches!(self.websocket, Some(WebSocket::Page(_)))
    }

    /// Whether its client may be a browser that has opened a connection in case it needs one.
    pub fn is_spare(&self) -> bool {
        let is_idle = |asked: &WebSocket| matches!(asked, WebSocket::Asked(it) if it.is_idle());
        self.pages.is_some() && self.websocket.as_ref().is_some_and(is_idle)
    }

    /// Sends on of the file, as much as the connection takes; `Here` when all of it is sent, and the
    /// connection has ended.
    pub(super) fn pour(&mut self) -> Result<Arrival> {
        for _ in 0..TURN {
            let Some(WebSocket::Page(sending)) = &mut self.websocket else {
                return Ok(Arrival::Here);
            };
            let written = match &mut self.tls {
                Some(tls) if tls.wants_write() => tls.write_tls(&mut self.stream).map(|_| 0),
                _ if sending.next().is_empty() => {
                    self.end(&[]);
                    return Ok(Arrival::Here);
                }
                Some(tls) => tls.writer().write(sending.next()),
                None => self.stream.write(sending.next()),
            };
            match written {
                Ok(count) => sending.pass(count),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(Arrival::Waiting),
                Err(e) => return Err(io_error(&e, std::time::Duration::ZERO)),
            }
        }
        Ok(Arrival::More)
    }
}
