//! Who may connect to a server, and how clients know it.

use serde::Deserialize;
use service::Access;
use wire::{Error, Identity, Members, Pin, Result, ServerTls};

/// PEM files of a server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsFiles {
    /// Certificate chain; with `key`. Without them, and without `key_file`, a fresh self-signed key
    /// is made.
    pub certificate: Option<String>,
    /// Private key.
    pub key: Option<String>,
    /// File of a key without a certificate, which is made where there is none and then stays.
    pub key_file: Option<String>,
    /// Authority whose certificates clients must show.
    pub client_ca: Option<String>,
    /// Lists of those that are revoked; with `client_ca`.
    pub client_crl: Option<String>,
}

impl TlsFiles {
    /// Whether the key is one that is made at the start.
    pub(crate) fn makes_key(&self) -> bool {
        self.certificate.is_none() && self.key.is_none() && self.key_file.is_none()
    }
}

/// How clients connect, and the pin of the key; without `files` in plaintext. `ephemeral` is the key that was made at the start,
/// if one was.
///
/// # Errors
/// [`Error::Misuse`] for files that cannot be used or do not belong together.
pub(crate) fn access(
    files: Option<&TlsFiles>,
    ephemeral: Option<&Identity>,
) -> Result<(Access, Option<Pin>)> {
    let Some(files) = files else { return Ok((Access::Plaintext, None)) };
    let identity = identity(files, ephemeral)?;
    let revoked = files.client_crl.as_deref();
    let members = files.client_ca.as_deref().map(|authority| Members { authority, revoked });
    if members.is_none() && revoked.is_some() {
        return Err(Error::misuse("revocation lists need the authority of clients: --client-ca"));
    }
    let pin = identity.pin()?;
    Ok((Access::Tls(ServerTls::new(identity, members)?), Some(pin)))
}

/// What a server shows: the certificate or key in its files, or the key that was made at the start.
///
/// # Errors
/// As [`access`].
pub(crate) fn identity(files: &TlsFiles, ephemeral: Option<&Identity>) -> Result<Identity> {
    Ok(match (&files.certificate, &files.key, &files.key_file) {
        (Some(certificate), Some(key), None) => Identity::from_files(certificate, key)?,
        (None, None, Some(file)) => Identity::kept(file)?,
        (None, None, None) => match ephemeral {
            Some(made) => made.copied(),
            None => Identity::ephemeral()?,
        },
        (_, _, Some(_)) => {
            let why = "a key file has no certificate of its own: give it, or a certificate and key";
            return Err(Error::misuse(why));
        }
        _ => return Err(Error::misuse("a certificate and its key belong together")),
    })
}
