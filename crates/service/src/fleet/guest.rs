//! What those who come to a door are, by what they say first.

use std::net::TcpStream;
use std::sync::PoisonError;

use wire::fleet::{DoorRequest, Preface};
use wire::{Error, Incoming, Result, tags};

use crate::door::Reading;
use crate::fleet::hall::Hall;
use crate::fleet::options::Relay;
use crate::options::Access;

/// Bytes that all requests have and that are read at once.
const SHORTEST: usize = 64;

/// What a client of the door is.
pub(crate) enum Visit {
    /// One that is passed on.
    Relayed,
    /// One that asks for a server.
    Asks(DoorRequest),
    /// A browser that begins a session and follows no doors.
    Begins,
}

/// How many bytes are read of a client that began like this.
pub(crate) fn wanted(bytes: &[u8]) -> usize {
    Preface::most(bytes).max(SHORTEST)
}

/// Starts to read a connection, by WebSocket if it is one of a browser's.
pub(crate) fn open(hall: &Hall, stream: TcpStream, browser: bool) -> Result<Incoming> {
    let all = hall.options.relay == Relay::Always;
    let access = hall.access.read().unwrap_or_else(PoisonError::into_inner);
    let tls = match &*access {
        Access::Tls(tls) => Some(tls),
        Access::Plaintext => None,
    };
    let Some(browsers) = hall.options.websocket.as_ref().filter(|_| browser) else {
        return Incoming::at_door(stream, tls, all);
    };
    // Browsers say nothing of doors in TLS, so whether one follows is known when its WebSocket is open.
    let incoming = match all {
        true => Incoming::at_door(stream, tls, all)?,
        false => Incoming::new(stream, tls)?,
    };
    Ok(incoming.websocket(&browsers.origins))
}

/// Reads what a client is.
pub(crate) fn read(incoming: &Incoming) -> Reading<Visit> {
    if incoming.is_relayed() {
        return Ok(Some(Visit::Relayed));
    }
    match Preface::read(incoming.bytes()) {
        Ok(None) => Ok(None),
        Ok(Some((Some(Preface::Follows(request)), _))) => Ok(Some(Visit::Asks(request))),
        Ok(Some((None, _))) if incoming.is_websocket() && is_opening(incoming.bytes()) => {
            Ok(Some(Visit::Begins))
        }
        Ok(Some(_)) => {
            let error = Error::peer("a request to a door", "something else");
            Err((Vec::new(), error))
        }
        Err(error) => Err((Vec::new(), error)),
    }
}

/// Whether a session begins like this.
fn is_opening(bytes: &[u8]) -> bool {
    bytes.first() == Some(&tags::HELLO)
}
