//! Errors about models, in the words of sessions.

use wire::Error;

/// The graph's errors in the words of the public API.
pub(crate) fn refused(error: graph::Error) -> Error {
    match error {
        graph::Error::Unsupported { node, what, instead } => {
            Error::Unsupported { node, instead: format!("{what}; {instead}") }
        }
        bug @ graph::Error::Internal { .. } => Error::Internal(bug.to_string()),
        other => Error::misuse(other.to_string()),
    }
}
