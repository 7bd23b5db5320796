//! Errors that are our own: states that no argument of a caller leads to.

use wire::Error;

/// A defect of this crate, by what was found.
pub(crate) fn defect(found: &str) -> Error {
    Error::internal(format!("{found}; please report this, with the model's plan and the command"))
}
