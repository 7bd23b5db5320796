//! The request of HTTP that becomes a WebSocket.

use std::net::IpAddr;
use std::sync::Arc;

use tungstenite::error::ProtocolError;
use tungstenite::handshake::machine::TryParse;
use tungstenite::handshake::server::{Request, create_response, write_response};
use zeroize::Zeroizing;

use super::{Pages, Sending};
use crate::error::{Error, Result};

/// Longest request that is read.
const MOST_REQUEST: usize = 1 << 13;

/// The pages whose requests a server takes.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    /// Origins such as `https://example.org`; pages of the server's own host where there are none.
    named: Arc<[String]>,
}

/// A request that arrives.
pub(crate) struct Upgrade {
    /// May hold the client's token, behind the request.
    bytes: Zeroizing<Vec<u8>>,
    origins: Origins,
    /// Whether the server is for clients on this machine.
    local: bool,
}

/// What becomes of a request: the response and what came after the request; or the response that
/// ends the connection, and why.
pub(crate) type Upgraded = Result<(Vec<u8>, Zeroizing<Vec<u8>>), (Vec<u8>, Error)>;

impl Origins {
    /// The origins of `named`, each a scheme and a host with or without a port.
    ///
    /// # Errors
    /// [`Error::Misuse`] for what is no origin.
    pub fn new(named: &[String]) -> Result<Self> {
        for origin in named {
            let host = origin.strip_prefix("https://").or(origin.strip_prefix("http://"));
            let is_host = |host: &str| {
                let known = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
                !host.is_empty() && host.bytes().all(known)
            };
            if !host.is_some_and(is_host) {
                return Err(Error::misuse(format!(
                    "`{origin}` is no origin: write https://HOST or https://HOST:PORT, without a path"
                )));
            }
        }
        Ok(Self { named: named.into() })
    }

    /// Whether a page of `origin` may talk to the server that it calls `host`.
    fn allow(&self, origin: &str, host: &str) -> bool {
        if self.named.is_empty() {
            let of = origin.split_once("://").map_or("", |(_, rest)| rest);
            return !of.is_empty() && name(of).eq_ignore_ascii_case(name(host));
        }
        self.named.iter().any(|named| named.eq_ignore_ascii_case(origin))
    }
}

/// The name of a host without its port.
fn name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Whether a host is this machine, whoever answers for its name.
fn is_local(name: &str) -> bool {
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = address.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    is_loopback || name.eq_ignore_ascii_case("localhost")
}

impl Upgrade {
    pub(crate) fn new(origins: Origins, local: bool) -> Self {
        Self { bytes: Zeroizing::default(), origins, local }
    }

    /// Takes bytes of the request; `None` while it is not whole.
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> Option<Upgraded> {
        self.bytes.extend_from_slice(bytes);
        let refused = |status: &str, got: &str| {
            let error = Error::peer("a request to open a WebSocket", got);
            Some(Err((response(status, &format!("{error}\n")), error)))
        };
        match Request::try_parse(&self.bytes) {
            Ok(None) if self.bytes.len() < MOST_REQUEST => None,
            Ok(None) => refused("431 Request Header Fields Too Large", "a longer one than any"),
            Err(e) => refused("400 Bad Request", &format!("one that is none: {e}")),
            Ok(Some((_, request))) if let Err(got) = self.check(&request) => {
                refused("403 Forbidden", &got)
            }
            Ok(Some((length, request))) => match accepted(&request) {
                Ok(response) => Some(Ok((response, Zeroizing::new(self.bytes.split_off(length))))),
                Err(e) => refused("426 Upgrade Required", &e),
            },
        }
    }

    /// Whether nothing has been said yet.
    pub(crate) fn is_idle(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What of `pages` the request asks for, if that is what it does.
    pub(crate) fn page(&self, pages: &Pages) -> Option<Sending> {
        pages.answer(&self.bytes, |host| !self.local || is_local(name(host)))
    }

    /// Refuses requests of pages that are not for this server.
    fn check(&self, request: &Request) -> Result<(), String> {
        let header = |name: &str| {
            let values: Vec<_> = request.headers().get_all(name).iter().collect();
            match values[..] {
                [] => Ok(None),
                [one] => one.to_str().map(Some).map_err(|_| format!("one of another {name}")),
                _ => Err(format!("one with several headers `{name}`")),
            }
        };
        let host = header("host")?.ok_or("one without a host")?;
        if self.local && !is_local(name(host)) {
            // A page whose name was made to lead here.
            return Err("one for another host; in plaintext a server is called localhost".into());
        }
        // Programs other than browsers have no origin.
        match header("origin")? {
            Some(origin) if !self.origins.allow(origin, host) => {
                Err("one of a page of another origin; the server's --origin says which it takes"
                    .into())
            }
            _ => Ok(()),
        }
    }
}

/// The response that opens the WebSocket.
fn accepted(request: &Request) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let made = create_response(request).and_then(|made| write_response(&mut out, &made));
    made.map_err(|e| match e {
        tungstenite::Error::Protocol(
            ProtocolError::MissingConnectionUpgradeHeader
            | ProtocolError::MissingUpgradeWebSocketHeader,
        ) => "one for a page; this address is for clients of Tacit".into(),
        other => format!("another: {other}"),
    })?;
    Ok(out)
}

/// A response that ends the connection.
fn response(status: &str, text: &str) -> Vec<u8> {
    let length = text.len();
    format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{text}"
    )
    .into_bytes()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
