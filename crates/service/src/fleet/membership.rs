//! What a server is told of its fleet.

use std::path::PathBuf;

use wire::Pin;

/// The fleet that a server belongs to.
#[derive(Clone, Debug)]
pub struct Membership {
    /// Control address of the door, HOST:PORT.
    pub control: String,
    /// File with the secret of the fleet.
    pub secret: PathBuf,
    /// The server's name in the fleet.
    pub server: String,
    /// Where clients reach the server, HOST:PORT; where it listens, if absent.
    pub advertise: Option<String>,
    /// Where browsers reach it, HOST:PORT, if it takes WebSockets; where it listens for them, if absent. Port 0 is the
    /// one at which it listens.
    pub advertise_websocket: Option<String>,
    /// The key that the door shows; none in plaintext on loopback.
    pub pin: Option<Pin>,
}
