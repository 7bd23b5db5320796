//! Refusals of a suite, with the node that they are about.

use wire::Error;

/// What was refused at `node`, for people.
pub(super) fn at(node: &str, error: Error) -> Error {
    match error {
        Error::Misuse(why) => Error::Unsupported { node: node.into(), instead: why },
        other => other,
    }
}
