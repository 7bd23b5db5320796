//! What can go wrong, by who is to blame.

use thiserror::Error;

/// An error names the guilty side. After any of these the session is dropped,
/// never repaired.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller passed something that cannot be right; nothing was sent.
    #[error("invalid call: {0}")]
    Misuse(String),
    /// The peer sent something that this step does not allow.
    #[error("the peer misbehaved: expected {expected}, got {got}")]
    Peer {
        /// What this step was waiting for.
        expected: String,
        /// What arrived instead (lengths and tags, never contents).
        got: String,
    },
    /// The connection failed: absent, closed, too slow or not authentic.
    #[error("connection: {0}")]
    Transport(String),
    /// A model or plan asks for something this version does not do.
    #[error("node `{node}` is not supported; {instead}")]
    Unsupported {
        /// The node's name.
        node: String,
        /// What to do instead.
        instead: String,
    },
    /// A defect of this program; please report it.
    #[error("internal error: {0}")]
    Internal(String),
}

/// Shorthand used by every crate that talks to the peer.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The peer's fault.
    pub fn peer(expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::Peer { expected: expected.into(), got: got.into() }
    }

    /// The caller's fault.
    pub fn misuse(what: impl Into<String>) -> Self {
        Self::Misuse(what.into())
    }

    /// A defect of this program.
    pub fn internal(what: impl Into<String>) -> Self {
        Self::Internal(what.into())
    }

    /// Nobody's fault but the network's.
    pub fn transport(what: impl Into<String>) -> Self {
        Self::Transport(what.into())
    }
}
