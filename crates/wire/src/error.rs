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
        /// The tag of the message that this step was waiting for, one of
        /// [`tags`](crate::tags), where the error is about one message.
        tag: Option<u8>,
    },
    /// The connection failed: absent, closed, too slow or not authentic.
    #[error("connection: {0}")]
    Transport(TransportError),
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

/// Why a connection failed. It is printed as `what` says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct TransportError {
    /// The reason, for programs.
    pub kind: TransportKind,
    /// The reason, for people.
    pub what: String,
}

/// The reasons for which a connection fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportKind {
    /// No host answers at the server's address.
    Unreachable,
    /// The server's host answers that nobody listens, or the peer refused this party's
    /// certificate or version of TLS.
    Refused,
    /// The peer ended the connection before the session was over.
    Closed,
    /// A wait was longer than its limit: for the connection, for the next byte or for the
    /// whole session.
    TimedOut,
    /// The peer is not who it should be: its certificate or its key is not the one that is
    /// trusted.
    NotAuthentic,
    /// The server takes no session now: it is full or about to stop. It is worth trying again
    /// after this many seconds.
    Busy {
        /// Seconds to wait.
        again: u32,
    },
    /// The server refuses this client or what it asks for, and will again unless its operator
    /// changes something.
    Denied,
    /// None of these, such as a failure of this machine's network, threads or random generator,
    /// or a peer that does not speak TLS.
    Other,
}

/// Shorthand used by every crate that talks to the peer.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes an error that is the peer's fault.
    pub fn peer(expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::Peer { expected: expected.into(), got: got.into(), tag: None }
    }

    /// Returns the error as one about the message with this tag where it is the peer's fault and
    /// not about another message already.
    #[must_use]
    pub fn about(self, message: u8) -> Self {
        match self {
            Self::Peer { expected, got, tag: None } => {
                Self::Peer { expected, got, tag: Some(message) }
            }
            other => other,
        }
    }

    /// Returns the guilty side in a word, for programs of other languages: `misuse`, `peer`, `busy`,
    /// `refused`, `transport`, `unsupported` or `internal`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Misuse(_) => "misuse",
            Self::Peer { .. } => "peer",
            Self::Transport(TransportError { kind: TransportKind::Busy { .. }, .. }) => "busy",
            Self::Transport(TransportError { kind: TransportKind::Denied, .. }) => "refused",
            Self::Transport(_) => "transport",
            Self::Unsupported { .. } => "unsupported",
            Self::Internal(_) => "internal",
        }
    }

    /// Makes an error that is the caller's fault.
    pub fn misuse(what: impl Into<String>) -> Self {
        Self::Misuse(what.into())
    }

    /// Makes the error of a defect of this program.
    pub fn internal(what: impl Into<String>) -> Self {
        Self::Internal(what.into())
    }

    /// Makes an error of the network or of the machine, for a reason that has no kind of its
    /// own.
    pub fn transport(what: impl Into<String>) -> Self {
        Self::connection(TransportKind::Other, what)
    }

    /// Makes the error of a connection that failed for a reason of this kind.
    pub fn connection(kind: TransportKind, what: impl Into<String>) -> Self {
        Self::Transport(TransportError { kind, what: what.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tags;

    #[test]
    fn errors_read_as_ever_and_tell_programs_why() {
        let late = Error::connection(TransportKind::TimedOut, "the peer sent nothing for 5 s");
        assert_eq!(late.to_string(), "connection: the peer sent nothing for 5 s");
        assert_eq!(late.clone().about(tags::RESULT), late);
        let peer = Error::peer("3 bytes", "4 bytes").about(tags::RESULT).about(tags::PROBE);
        assert_eq!(peer.to_string(), "the peer misbehaved: expected 3 bytes, got 4 bytes");
        assert!(matches!(peer, Error::Peer { tag: Some(tags::RESULT), .. }));
    }
}
