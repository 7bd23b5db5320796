//! Where a ledger is, as options name it.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use service::ledger_name;

/// The path of a file, or the URL of a PostgreSQL database. `Debug` leaves out the password of a URL.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct LedgerPlace(String);

impl<T: Into<String>> From<T> for LedgerPlace {
    fn from(place: T) -> Self {
        Self(place.into())
    }
}

impl AsRef<Path> for LedgerPlace {
    fn as_ref(&self) -> &Path {
        self.0.as_ref()
    }
}

impl fmt::Debug for LedgerPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ledger_name(&self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_printed() {
        let place = LedgerPlace::from("postgresql://a:secret@localhost/d");
        assert_eq!(format!("{place:?}"), "\"postgresql://a@localhost/d\"");
    }
}
