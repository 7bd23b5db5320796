//! What a client of a door wants, and the server that is chosen for it.

use runtime::Reveal;

use crate::fleet::talk::ModelNews;

/// What a client wants.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Hash of the model's name; zeros where it names none.
    pub(crate) model: [u8; 32],
    /// What it may learn, where that is said of it alone.
    pub(crate) reveal: Option<Reveal>,
    /// Short hash of the name of what it has kept.
    pub(crate) kept: Option<String>,
    /// It comes by WebSocket, and goes on by WebSocket.
    pub(crate) browser: bool,
}

/// The server that is chosen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) server: String,
    pub(crate) run: [u8; 16],
    pub(crate) address: String,
    pub(crate) model: ModelNews,
}

/// What there is for a client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Choice {
    /// A server with room.
    Server(Chosen),
    /// None that has room, or is ready, now.
    Full,
    /// Servers have it, and none takes WebSockets.
    NoWebSocket,
    /// No server has what it wants; those are the models that there are.
    Unknown(Vec<String>),
}
