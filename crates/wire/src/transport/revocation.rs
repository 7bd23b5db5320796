//! Lists of certificates that an authority has revoked.

use std::time::{Duration, SystemTime};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::revocation_list::CertificateRevocationList;

use crate::error::{Error, Result};

/// Revocation lists that are all in force.
pub(super) struct Revoked {
    /// The lists, as they were signed.
    pub(super) lists: Vec<CertificateRevocationListDer<'static>>,
    /// When the first of them is over.
    pub(super) until: SystemTime,
}

/// The revocation lists in `file` (PEM) for clients of `authorities`, of which one has a list at
/// least. Signatures are verified when a client comes.
///
/// # Errors
/// [`Error::Misuse`] for a file that cannot be read or has no list, a list that is none or is
/// over, and lists of other authorities only.
pub(super) fn read(file: &str, authorities: &[CertificateDer<'_>]) -> Result<Revoked> {
    let bad = |why: String| Error::misuse(format!("`{file}` {why}"));
    let read = CertificateRevocationListDer::pem_file_iter(file);
    let read = read.map_err(|e| bad(format!("holds no revocation list: {e}")))?;
    let lists: Vec<_> = read
        .collect::<Result<_, _>>()
        .map_err(|e| bad(format!("holds a revocation list that cannot be read: {e}")))?;
    let subjects: Vec<Vec<u8>> = authorities.iter().filter_map(subject).collect();
    let (mut until, mut ours) = (None, false);
    for list in &lists {
        let (_, parsed) = CertificateRevocationList::from_der(list)
            .map_err(|e| bad(format!("holds a revocation list that cannot be read: {e}")))?;
        let issuer = printable(&parsed.issuer().to_string());
        let end = parsed.next_update().ok_or_else(|| {
            bad(format!("holds a revocation list of {issuer} that does not say when it is over"))
        })?;
        let seconds = u64::try_from(end.timestamp()).unwrap_or(0);
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        if end <= SystemTime::now() {
            let why = "is over; get the current one of this authority";
            return Err(bad(format!("holds a revocation list of {issuer} that {why}")));
        }
        until = Some(until.map_or(end, |sooner: SystemTime| sooner.min(end)));
        ours |= subjects.iter().any(|subject| subject == parsed.issuer().as_raw());
    }
    match until {
        Some(until) if ours => Ok(Revoked { lists, until }),
        Some(_) => Err(bad("has no revocation list of the authority of clients".into())),
        None => Err(bad("holds no revocation list".into())),
    }
}

/// The subject of a certificate as it is encoded.
fn subject(certificate: &CertificateDer<'_>) -> Option<Vec<u8>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    Some(parsed.subject().as_raw().to_vec())
}

/// The start of a name from a file, fit for a terminal.
fn printable(name: &str) -> String {
    name.chars().take(256).map(|c| if c.is_control() { '?' } else { c }).collect()
}
