//! The fleet that a server belongs to, by its options.

use std::time::SystemTime;

use service::Membership;
use wire::{Error, Pin, Result};

/// What a server's options say of the fleet that it belongs to.
pub(crate) struct Belonging<'a> {
    /// Control address of the fleet's door, HOST:PORT; with `secret`.
    pub(crate) fleet: Option<&'a str>,
    /// File of the fleet's secret.
    pub(crate) secret: Option<&'a str>,
    /// Where clients of the fleet reach this server, HOST:PORT.
    pub(crate) advertise: Option<&'a str>,
    /// Where browsers reach it, HOST:PORT.
    pub(crate) advertise_websocket: Option<&'a str>,
    /// It takes WebSockets.
    pub(crate) websocket: bool,
    /// The server's name in the fleet.
    pub(crate) server: Option<&'a str>,
    /// Every connection begins with a PROXY v2 header.
    pub(crate) proxied: bool,
    /// The server makes a key at each start.
    pub(crate) makes_key: bool,
}

/// The fleet that a server belongs to, whose door shows the same key of this `pin`.
///
/// # Errors
/// [`Error::Misuse`] for options that exclude each other.
pub(crate) fn membership(of: &Belonging<'_>, pin: Option<Pin>) -> Result<Option<Membership>> {
    let (control, secret) = match (of.fleet, of.secret) {
        (Some(control), Some(secret)) => (control.to_owned(), secret.into()),
        (None, None) if of.advertise.or(of.advertise_websocket).or(of.server).is_none() => {
            return Ok(None);
        }
        _ => return Err(Error::misuse("--fleet and --fleet-secret belong together")),
    };
    if of.proxied {
        return Err(Error::misuse(
            "the door of a fleet sends headers of its own: leave --proxy-protocol out",
        ));
    }
    if of.makes_key {
        return Err(Error::misuse(
            "a server of a fleet shows the door's key: give it the same --key-file",
        ));
    }
    if of.advertise_websocket.is_some() && !of.websocket {
        return Err(Error::misuse(
            "--advertise-websocket says where browsers come: add --websocket HOST:PORT",
        ));
    }
    let server = match of.server {
        Some(server) => server.to_owned(),
        None => format!("server-{}-{}", std::process::id(), since_1970()),
    };
    let advertise = of.advertise.map(str::to_owned);
    let advertise_websocket = of.advertise_websocket.map(str::to_owned);
    Ok(Some(Membership { control, secret, server, advertise, advertise_websocket, pin }))
}

/// Milliseconds since 1970, by which servers with the same process number on other machines differ.
fn since_1970() -> u128 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis())
}
