//! How a server is set up.

use wire::{Link, Origins, ServerTls, Timeouts};

use crate::fleet::membership::Membership;
use crate::limits::Limits;
use crate::policy::Policy;

/// The clients that may connect, and the transport that they use.
#[derive(Clone)]
pub enum Access {
    /// TLS 1.3.
    Tls(ServerTls),
    /// No encryption; both ends on loopback.
    Plaintext,
}

/// Where browsers connect: by WebSocket, which carries the same bytes.
#[derive(Clone, Debug)]
pub struct WebSocketOptions {
    /// Where the server listens for them (HOST:PORT).
    pub listen: String,
    /// The pages that may connect.
    pub origins: Origins,
}

/// The options of a server.
#[derive(Clone)]
pub struct Options {
    /// The sockets and certificates by which clients connect.
    pub access: Access,
    /// Where browsers connect, if they may.
    pub websocket: Option<WebSocketOptions>,
    /// The times that a session waits for its client; `connect` is for TLS and opening together.
    pub timeouts: Timeouts,
    /// A link to imitate; clients must do the same.
    pub link: Option<Link>,
    /// What it asks of its clients.
    pub policy: Policy,
    /// How much the server takes on.
    pub limits: Limits,
    /// Most inputs per session.
    pub most_inputs: usize,
    /// Threads of each session, at least 1.
    pub threads: usize,
    /// Every connection begins with a PROXY v2 header, from which the client's address is taken.
    pub proxied: bool,
    /// The fleet that the server belongs to, if to one.
    pub fleet: Option<Membership>,
    /// Where metrics are shown over plain HTTP (HOST:PORT), if they are.
    pub metrics: Option<String>,
    /// Stop after the first client.
    pub once: bool,
}
