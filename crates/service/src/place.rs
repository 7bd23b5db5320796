//! Which places of a ledger are URLs.

/// Returns whether the place of a ledger is a URL of a database, where it is no path of a file.
pub(crate) fn is_url(place: &str) -> bool {
    place.starts_with("postgresql://") || place.starts_with("postgres://")
}
