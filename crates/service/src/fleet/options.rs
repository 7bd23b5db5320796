//! How a door is set up.

use std::path::PathBuf;

use serde::Deserialize;
use wire::ServerTls;

use crate::options::{Access, WebSocketOptions};
use crate::policy::Policy;

/// Which clients are passed on rather than told a server's address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Relay {
    /// None: clients that do not follow doors are turned away.
    Never,
    /// Those that do not follow doors.
    #[default]
    Old,
    /// All, where servers cannot be reached from outside.
    Always,
}

/// How a door is set up.
pub struct AllocatorOptions {
    /// Where clients come, HOST:PORT; port 0 takes any free one.
    pub listen: String,
    /// Where browsers come, if they may.
    pub websocket: Option<WebSocketOptions>,
    /// Where servers come, HOST:PORT.
    pub control: String,
    /// The certificates by which clients know the fleet.
    pub access: Access,
    /// The same identity for control connections, without certificates of clients; none in plaintext.
    pub control_tls: Option<ServerTls>,
    /// File of the fleet's secret, which is made where there is none.
    pub secret: PathBuf,
    /// What is asked of clients.
    pub policy: Policy,
    /// Which clients are passed on.
    pub relay: Relay,
    /// Clients that wait, at most.
    pub queue: usize,
    /// How long a ticket is good, in seconds, 1 to 60.
    pub ticket_seconds: u64,
    /// Where metrics are shown over plain HTTP (HOST:PORT), if they are.
    pub metrics: Option<String>,
}
