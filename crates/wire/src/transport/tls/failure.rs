//! What a failure of TLS means for those who see it.

use rustls::{AlertDescription, CertificateError};

use crate::error::{Error, TransportKind};
use crate::transport::authority::SelfSigned;

/// Says what a TLS failure means for the user.
pub(in crate::transport) fn refuse(error: &rustls::Error) -> Error {
    let why = match error {
        rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => {
            "the server's key is not the pinned one; ask its operator for the current pin".into()
        }
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "the peer's certificate has expired".into(),
        rustls::Error::InvalidCertificate(CertificateError::Revoked) => {
            "the peer's certificate has been revoked".into()
        }
        rustls::Error::InvalidCertificate(
            CertificateError::ExpiredRevocationList
            | CertificateError::ExpiredRevocationListContext { .. },
        ) => "a revocation list (--client-crl) is over, so that nobody is admitted: put the \
              current one in its place and send SIGHUP"
            .into(),
        rustls::Error::InvalidCertificate(CertificateError::UnknownRevocationStatus) => {
            "no revocation list (--client-crl) is of the issuer of the peer's certificate".into()
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRevoked) => {
            "the peer refuses this party's certificate, since its issuer has revoked it; ask the \
             issuer for a new one"
                .into()
        }
        rustls::Error::InvalidCertificate(CertificateError::Other(other))
            if other.0.is::<SelfSigned>() =>
        {
            other.0.to_string()
        }
        rustls::Error::InvalidMessage(_) => "the peer does not speak TLS".into(),
        other => format!("TLS: {other}"),
    };
    let kind = match error {
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => {
            TransportKind::NotAuthentic
        }
        rustls::Error::AlertReceived(_) => TransportKind::Refused,
        _ => TransportKind::Other,
    };
    Error::connection(kind, why)
}
