//! What a certificate says of its owner and of its time.

use std::time::{Duration, SystemTime};

use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The subject of a certificate as one line, such as `CN=ward-3, O=Clinic`, without control
/// characters; none for a certificate that does not parse or names nobody.
pub(crate) fn subject(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let line = parsed.subject().to_string();
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    Some(line).filter(|line| !line.is_empty())
}

/// When a certificate's time is over; none for one that does not parse.
pub(crate) fn expiry(certificate: &CertificateDer<'_>) -> Option<SystemTime> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let seconds = parsed.validity().not_after.timestamp();
    // One that was over before 1970 is over.
    let after = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    SystemTime::UNIX_EPOCH.checked_add(after)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_tells_its_subject_and_its_end() {
        let made = rcgen::generate_simple_self_signed(vec!["tacit".into()]).unwrap();
        let certificate = made.cert.der();
        assert_eq!(subject(certificate).unwrap(), "CN=rcgen self signed cert");
        assert!(expiry(certificate).unwrap() > SystemTime::now());
        let broken = CertificateDer::from(vec![0x30, 3, 1, 1, 0]);
        assert!(subject(&broken).is_none() && expiry(&broken).is_none());
    }
}
