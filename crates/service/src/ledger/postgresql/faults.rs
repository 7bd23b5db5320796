//! What errors of PostgreSQL mean for a ledger.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ::postgres::error::SqlState;

use crate::error::Error;

/// How long to wait for other processes, and how long one may hold a lock without a word.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Whether the database has ended a transaction for the sake of another one, so that nothing of it was done.
pub(super) fn is_given_up(error: &::postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code)
    })
}

fn busy(shown: &Path) -> Error {
    let why = format!("another process holds it for more than {} s", PATIENCE.as_secs());
    Error::Unusable { path: shown.into(), why }
}

/// Says what an error of PostgreSQL means for the ledger.
pub(super) fn explain(shown: &Path, error: &::postgres::Error) -> Error {
    let path = PathBuf::from(shown);
    let Some(said) = error.as_db_error() else {
        let mut why = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(error) = cause {
            let more = error.to_string();
            if !why.contains(&more) {
                why = format!("{why}: {more}");
            }
            cause = error.source();
        }
        // A value that has not the type of its column.
        let is_damage = why.starts_with("error deserializing");
        return if is_damage {
            Error::Damaged { path, why }
        } else {
            Error::Unusable { path, why }
        };
    };
    let (code, why) = (said.code(), said.message().to_owned());
    if [SqlState::LOCK_NOT_AVAILABLE, SqlState::QUERY_CANCELED].contains(code) {
        return busy(shown);
    }
    let damage = [
        SqlState::UNDEFINED_TABLE,
        SqlState::UNDEFINED_COLUMN,
        SqlState::UNDEFINED_FUNCTION,
        SqlState::DATATYPE_MISMATCH,
        SqlState::INVALID_SCHEMA_NAME,
        SqlState::INVALID_COLUMN_REFERENCE,
        SqlState::CHECK_VIOLATION,
        SqlState::NOT_NULL_VIOLATION,
        SqlState::DATA_CORRUPTED,
        SqlState::INDEX_CORRUPTED,
    ];
    if damage.contains(code) { Error::Damaged { path, why } } else { Error::Unusable { path, why } }
}
