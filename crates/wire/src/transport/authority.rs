//! Trust in the certificates of a PEM file, with advice where that cannot work.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};

use crate::error::{Error, Result};
use crate::transport::pin::Pin;

/// Accepts servers that an authority in a file certified for their host name.
#[derive(Debug)]
pub(crate) struct Certified {
    file: String,
    keys: Vec<Pin>,
    verifier: Arc<WebPkiServerVerifier>,
}

impl Certified {
    /// From the certificates in `file`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for certificates that cannot be those of an authority.
    pub(crate) fn new(
        file: &str,
        certificates: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self> {
        let keys = certificates.iter().filter_map(|one| Pin::of(one).ok()).collect();
        let roots = Arc::new(roots(file, certificates)?);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
        let verifier = verifier.map_err(|e| Error::misuse(format!("`{file}`: {e}")))?;
        Ok(Self { file: file.into(), keys, verifier })
    }
}

/// The authorities in `file`.
pub(crate) fn roots(
    file: &str,
    certificates: Vec<CertificateDer<'static>>,
) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).map_err(|e| Error::misuse(format!("`{file}`: {e}")))?;
    }
    Ok(roots)
}

impl ServerCertVerifier for Certified {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified = self.verifier.verify_server_cert(end_entity, intermediates, name, ocsp, now);
        verified.map_err(|why| match Pin::of(end_entity) {
            Ok(pin) if self.keys.contains(&pin) => {
                let advice = SelfSigned { file: self.file.clone(), pin };
                CertificateError::Other(OtherError(Arc::new(advice))).into()
            }
            _ => why,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// The file of the authority holds the key of the server itself, as it does where somebody made a
/// certificate with `openssl req -x509` and gave it to both sides.
#[derive(Debug)]
pub(crate) struct SelfSigned {
    file: String,
    pin: Pin,
}

impl std::error::Error for SelfSigned {}

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, pin } = self;
        write!(
            f,
            "`{file}` holds the server's own certificate, which is no authority that vouches for \
             it; trust its key instead of --ca: --pin {pin}"
        )
    }
}
