//! Trust in one public key.

use std::fmt;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// SHA-256 of a public key (SubjectPublicKeyInfo), printed and parsed as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin(pub(crate) [u8; 32]);

impl Pin {
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Result<Self, rustls::Error> {
        let parsed = rustls::server::ParsedCertificate::try_from(certificate)?;
        Ok(Self(Sha256::digest(parsed.subject_public_key_info()).into()))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::str::FromStr for Pin {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || Error::misuse("a pin has 64 hexadecimal digits (`tacit serve` prints it)");
        let mut pin = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(bad());
        }
        for (i, byte) in pin.iter_mut().enumerate() {
            let digits = text.get(2 * i..2 * i + 2).ok_or_else(bad)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| bad())?;
        }
        Ok(Self(pin))
    }
}

/// Accepts one public key, whatever the certificate says about names and dates.
#[derive(Debug)]
pub(crate) struct Pinned {
    pin: Pin,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    pub(crate) fn new(pin: Pin, provider: &CryptoProvider) -> Self {
        Self { pin, algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if Pin::of(end_entity)? == self.pin {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not offered".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_prints_and_parses() {
        let pin = Pin([0xab; 32]);
        assert_eq!(pin.to_string().parse(), Ok(pin));
        for bad in ["", "abc", &"g".repeat(64), &"é".repeat(32)] {
            assert!(bad.parse::<Pin>().is_err());
        }
    }
}
