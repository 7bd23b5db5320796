//! What can go wrong around a server, in words that say what to do.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::place::is_url;
use crate::refused::Refused;

/// An error of the server's own files, or the refusal of a client. None of them is the fault of
/// a protocol.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A client asked for more inputs than its budget has left; nothing was charged.
    #[error("{0}")]
    Refused(Refused),
    /// The caller passed something that cannot be right, or a file says something that cannot be
    /// read.
    #[error("{0}")]
    Misuse(String),
    /// The file or the tables of a ledger are damaged.
    #[error(
        "the ledger {} is damaged ({why}): restore it from a backup, or {} to begin with all budgets \
         unused",
        path.display(), moved_away(path)
    )]
    Damaged {
        /// The file, or the URL of the database without its password.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file or the schema is a database, but that of another program.
    #[error("{} is no ledger of budgets: it belongs to another program; name another one", path.display())]
    Foreign {
        /// The file, or the URL of the database without its password.
        path: PathBuf,
    },
    /// A newer version of this program wrote the ledger.
    #[error(
        "the ledger {} has version {found}, and this program knows versions up to {known}: \
         use the newer program that wrote it, or another ledger",
        path.display()
    )]
    Newer {
        /// The file, or the URL of the database without its password.
        path: PathBuf,
        /// The version in the file.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The ledger cannot be read or written now: the disk is full, permission is missing, or
    /// another process holds it for too long. What was asked did not happen.
    #[error("cannot use the ledger {}: {why}", path.display())]
    Unusable {
        /// The file, or the URL of the database without its password.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// A ticket of a fleet admits nobody: it was used before, or is over.
    #[error("{0}")]
    Ticket(String),
    /// A client asked for more inputs than its budget has left in the ledger of the door; nothing was charged.
    #[error("{why}")]
    Elsewhere {
        /// Why, for the client.
        why: String,
        /// After what time the same request fits.
        wait: Option<std::time::Duration>,
    },
    /// The door of the fleet does not count now.
    #[error("the door of the fleet cannot count inputs: {0}")]
    Door(String),
    /// This machine's random generator failed.
    #[error("the random generator of this machine failed: {0}")]
    Random(String),
}

/// Shorthand for results with this crate's [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes an error that is the caller's fault.
    pub(crate) fn misuse(what: impl Into<String>) -> Self {
        Self::Misuse(what.into())
    }
}

/// How a damaged ledger is put out of the way.
fn moved_away(path: &Path) -> String {
    let name = path.display();
    match path.to_str().is_some_and(is_url) {
        true => "rename its schema `tacit`".into(),
        false => format!("move it away together with the files {name}-wal and {name}-shm"),
    }
}

impl From<Error> for wire::Error {
    /// Files that cannot be right are the caller's fault; a disk or a random generator that fails is
    /// the machine's. A refusal is a misuse of the server, in the words that the client may read.
    fn from(error: Error) -> Self {
        match error {
            Error::Unusable { .. } | Error::Random(_) | Error::Door(_) => {
                Self::transport(error.to_string())
            }
            _ => Self::misuse(error.to_string()),
        }
    }
}
