//! TLS 1.3 with a pinned key or a certificate authority.
//!
//! The client must hold the server's [`Pin`], or the certificate of the authority
//! that vouches for it, before they talk; a server may ask for a certificate too. Keys are exchanged by
//! X25519 and ML-KEM-768 together (X25519MLKEM768), so that a recording stays closed while either holds.

mod failure;
mod provider;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection, version::TLS13,
};
use zeroize::Zeroizing;

pub(super) use self::failure::refuse;
use self::provider::provider;
use crate::channel::Channel;
use crate::cost::Role;
use crate::error::{Error, Result};
use crate::fleet::DOOR_PROTOCOL;
use crate::transport::authority::{Certified, roots};
use crate::transport::key_file;
use crate::transport::pin::{Pin, Pinned};
use crate::transport::revocation;
use crate::transport::tcp::{Patience, Tcp, Timeouts, closed, io_error, remaining, timed_out};

/// A certificate chain and its private key.
#[derive(Debug)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Makes a fresh self-signed key, good for this process and for pinning.
    ///
    /// # Errors
    /// [`Error::Transport`] when no key can be made.
    pub fn ephemeral() -> Result<Self> {
        let made = rcgen::KeyPair::generate();
        let made = made.map_err(|e| Error::transport(format!("cannot make a TLS key: {e}")))?;
        Self::self_signed(&made)
    }

    /// The key in a file of its own, with a fresh self-signed certificate: good for pinning. The
    /// key is made where there is none, for its owner alone.
    ///
    /// # Errors
    /// [`Error::Misuse`] naming a file that cannot be read or made, that others may read, or that
    /// holds no key.
    pub fn kept(file: &str) -> Result<Self> {
        Self::self_signed(&key_file::key(file)?)
    }

    fn self_signed(key: &rcgen::KeyPair) -> Result<Self> {
        let names = vec!["tacit".into(), "localhost".into()];
        let made = rcgen::CertificateParams::new(names).and_then(|made| made.self_signed(key));
        let made = made.map_err(|e| Error::transport(format!("cannot certify a TLS key: {e}")))?;
        let key = PrivateKeyDer::try_from(key.serialize_der());
        let key = key.map_err(|e| Error::transport(format!("cannot use the TLS key: {e}")))?;
        Ok(Self { chain: vec![made.der().clone()], key })
    }

    /// Returns a copy, for TLS settings that are made anew.
    #[must_use]
    pub fn copied(&self) -> Self {
        Self { chain: self.chain.clone(), key: self.key.clone_key() }
    }

    /// From two PEM files.
    ///
    /// # Errors
    /// [`Error::Misuse`] naming the file that cannot be read.
    pub fn from_files(certificate: &str, key: &str) -> Result<Self> {
        let chain = read_certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|e| Error::misuse(format!("`{key}` holds no private key: {e}")))?;
        Ok(Self { chain, key })
    }

    /// Returns when the first certificate's time is over; none where it does not say.
    pub fn expiry(&self) -> Option<SystemTime> {
        self.chain.first().and_then(crate::transport::certificate::expiry)
    }

    /// Returns the pin of this identity.
    ///
    /// # Errors
    /// [`Error::Misuse`] when the first certificate does not parse.
    pub fn pin(&self) -> Result<Pin> {
        let bad = |e: String| Error::misuse(format!("unusable certificate: {e}"));
        let first = self.chain.first().ok_or_else(|| bad("the file is empty".into()))?;
        Pin::of(first).map_err(|e| bad(e.to_string()))
    }
}

/// Whom a client trusts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Exactly this public key.
    Pin(Pin),
    /// Anybody certified for the host name by the authority in this PEM file.
    Authority(String),
}

/// A client's TLS settings.
#[derive(Clone)]
pub struct ClientTls(Arc<ClientConfig>);

/// A server's TLS settings.
#[derive(Clone)]
pub struct ServerTls {
    pub(super) config: Arc<ServerConfig>,
    expiry: Option<SystemTime>,
    revocation_expiry: Option<SystemTime>,
}

/// The clients that a server admits by their certificates.
#[derive(Clone, Copy, Debug)]
pub struct Members<'a> {
    /// PEM file of the authority that issued their certificates.
    pub authority: &'a str,
    /// PEM file of the lists of certificates that are revoked. With it a client is admitted only
    /// if a list of each issuer of its chain is there, in force, and does not have it.
    pub revoked: Option<&'a str>,
}

impl ClientTls {
    /// Trusts `trust`; shows `identity` when the server asks for one.
    ///
    /// # Errors
    /// [`Error::Misuse`] for files that do not parse.
    pub fn new(trust: &Trust, identity: Option<Identity>) -> Result<Self> {
        Self::with(provider(), trust, identity)
    }

    fn with(provider: CryptoProvider, trust: &Trust, identity: Option<Identity>) -> Result<Self> {
        let provider = Arc::new(provider);
        let builder = ClientConfig::builder_with_provider(provider.clone());
        let builder = builder.with_protocol_versions(&[&TLS13]).map_err(|e| refuse(&e))?;
        let verifier: Arc<dyn ServerCertVerifier> = match trust {
            Trust::Pin(pin) => Arc::new(Pinned::new(*pin, &provider)),
            Trust::Authority(file) => {
                Arc::new(Certified::new(file, read_certificates(file)?, provider)?)
            }
        };
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(own) => {
                builder.with_client_auth_cert(own.chain, own.key).map_err(|e| refuse(&e))?
            }
        };
        Ok(Self(Arc::new(config)))
    }

    /// Says in the handshake that this client follows doors; [`Channel::is_door`] tells then
    /// whether the peer is one. A server that is none takes no notice.
    #[must_use]
    pub fn following(&self) -> Self {
        let mut config = ClientConfig::clone(&self.0);
        config.alpn_protocols = vec![DOOR_PROTOCOL.to_vec()];
        Self(Arc::new(config))
    }

    /// Shakes hands over `stream` with the server called `host`.
    ///
    /// # Errors
    /// [`Error::Transport`] when the peer is not who it should be, does not speak
    /// TLS 1.3 or is too slow.
    pub fn channel(&self, host: &str, stream: TcpStream, timeouts: Timeouts) -> Result<Channel> {
        let name = ServerName::try_from(host.to_string())
            .map_err(|_| Error::misuse(format!("`{host}` is not a host name")))?;
        let session = ClientConnection::new(self.0.clone(), name).map_err(|e| refuse(&e))?;
        handshake(Role::Client, session.into(), stream, timeouts)
    }
}

impl ServerTls {
    /// Shows `identity`; with `members` it also asks every client for a certificate, each time
    /// anew.
    ///
    /// # Errors
    /// [`Error::Misuse`] for files that do not parse, and revocation lists that are over or of
    /// other authorities.
    pub fn new(identity: Identity, members: Option<Members<'_>>) -> Result<Self> {
        Self::with(provider(), identity, members)
    }

    fn with(
        provider: CryptoProvider,
        identity: Identity,
        members: Option<Members<'_>>,
    ) -> Result<Self> {
        let (provider, expiry) = (Arc::new(provider), identity.expiry());
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_protocol_versions(&[&TLS13]).map_err(|e| refuse(&e))?;
        let mut revocation_expiry = None;
        let builder = match members {
            None => builder.with_no_client_auth(),
            Some(Members { authority: file, revoked }) => {
                let authorities = read_certificates(file)?;
                let lists = revoked.map(|lists| revocation::read(lists, &authorities));
                let roots = Arc::new(roots(file, authorities)?);
                let mut verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                if let Some(revoked) = lists.transpose()? {
                    revocation_expiry = Some(revoked.until);
                    verifier = verifier.with_crls(revoked.lists).enforce_revocation_expiration();
                }
                let verifier =
                    verifier.build().map_err(|e| Error::misuse(format!("`{file}`: {e}")))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config =
            builder.with_single_cert(identity.chain, identity.key).map_err(|e| refuse(&e))?;
        if members.is_some() {
            // Who resumes a session is not asked for its certificate again.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Self { config: Arc::new(config), expiry, revocation_expiry })
    }

    /// Returns the settings of a door, which says in the handshake that it is one to clients who
    /// follow doors.
    #[must_use]
    pub fn door(&self) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = vec![DOOR_PROTOCOL.to_vec()];
        Self { config: Arc::new(config), ..self.clone() }
    }

    /// Returns when the certificate's time is over; none where it does not say.
    pub const fn expiry(&self) -> Option<SystemTime> {
        self.expiry
    }

    /// Returns when the first of the revocation lists is over, from when on clients are refused;
    /// none without lists.
    pub const fn revocation_expiry(&self) -> Option<SystemTime> {
        self.revocation_expiry
    }

    /// Shakes hands over an accepted `stream`.
    ///
    /// # Errors
    /// [`Error::Transport`] when the peer does not speak TLS 1.3, does not
    /// authenticate as required or is too slow.
    pub fn channel(&self, stream: TcpStream, timeouts: Timeouts) -> Result<Channel> {
        let session = ServerConnection::new(self.config.clone()).map_err(|e| refuse(&e))?;
        handshake(Role::Server, session.into(), stream, timeouts)
    }
}

/// An established TLS connection, driven by the protocol thread.
pub(crate) struct Session(pub(super) Connection);

/// The label of exported keys (RFC 9266).
const BINDING: &[u8] = b"EXPORTER-Channel-Binding";
/// Room for what a few records add to their bytes.
const RECORDS: usize = 256;

impl Session {
    /// The registered name of the group in which keys were exchanged.
    pub(crate) fn key_exchange(&self) -> Option<&'static str> {
        self.0.negotiated_key_exchange_group()?.name().as_str()
    }

    /// Whether the door's protocol was agreed on.
    pub(crate) fn is_door(&self) -> bool {
        self.0.alpn_protocol() == Some(DOOR_PROTOCOL)
    }

    /// A value that both ends derive from the keys of this connection, and nobody else can.
    pub(crate) fn binding(&self) -> Option<[u8; 32]> {
        let exported = match &self.0 {
            Connection::Client(one) => one.export_keying_material([0; 32], BINDING, None),
            Connection::Server(one) => one.export_keying_material([0; 32], BINDING, None),
        };
        exported.ok()
    }

    /// Encrypts `bytes`.
    pub(crate) fn seal(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
        self.0.writer().write_all(bytes).map_err(|e| Error::transport(format!("TLS: {e}")))?;
        self.pending(bytes.len() + RECORDS)
    }

    /// Reads at least one plaintext byte into `out`, 0 once the peer has said goodbye;
    /// also returns what TLS itself wants to send. An end without goodbye is an error.
    pub(crate) fn open(
        &mut self,
        stream: &mut TcpStream,
        out: &mut [u8],
        patience: Patience,
    ) -> Result<(usize, Vec<u8>)> {
        loop {
            match self.0.reader().read(out) {
                Ok(read) => return Ok((read, self.pending(0)?)),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return Err(closed()),
            }
            if patience.read(stream, |stream| self.0.read_tls(stream))? == 0 {
                return Err(closed());
            }
            self.0.process_new_packets().map_err(|e| refuse(&e))?;
        }
    }

    /// Returns whether plaintext is there, or an end, that no read from the network has to bring.
    pub(crate) fn is_ready(&mut self) -> bool {
        let state = self.0.process_new_packets();
        state.map_or(true, |state| state.plaintext_bytes_to_read() > 0 || state.peer_has_closed())
    }

    /// The closing alert. Without it the peer takes the end for an accident.
    pub(crate) fn goodbye(&mut self) -> Result<Vec<u8>> {
        self.0.send_close_notify();
        self.pending(0)
    }

    fn pending(&mut self, room: usize) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(room);
        while self.0.wants_write() {
            self.0.write_tls(&mut out).map_err(|e| Error::transport(format!("TLS: {e}")))?;
        }
        Ok(out)
    }
}

fn handshake(
    role: Role,
    mut connection: Connection,
    mut stream: TcpStream,
    timeouts: Timeouts,
) -> Result<Channel> {
    let deadline = Instant::now() + timeouts.connect;
    let failed = |e: std::io::Error| match e.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => slow(timeouts.connect),
        _ => io_error(&e, timeouts.connect),
    };
    let interrupted = |e: &std::io::Error| e.kind() == ErrorKind::Interrupted;
    stream.set_nodelay(true).map_err(failed)?;
    while connection.is_handshaking() || connection.wants_write() {
        // The limit is for the whole handshake: a peer that sends byte by byte gains nothing.
        let left = remaining(deadline).ok_or_else(|| slow(timeouts.connect))?;
        let set = stream.set_read_timeout(Some(left));
        set.and_then(|()| stream.set_write_timeout(Some(left))).map_err(failed)?;
        let moved = match connection.wants_write() {
            true => connection.write_tls(&mut stream),
            false => connection.read_tls(&mut stream),
        };
        match moved {
            Err(e) if interrupted(&e) => continue,
            Err(e) => return Err(failed(e)),
            Ok(0) => return Err(closed()),
            Ok(_) => {}
        }
        if let Err(error) = connection.process_new_packets() {
            // The alert is a courtesy; the peer may be gone.
            let _ = connection.write_tls(&mut stream);
            return Err(refuse(&error));
        }
    }
    connection.set_buffer_limit(None);
    Ok(Channel::new(
        role,
        Box::new(Tcp::new(stream, Some(Session(connection)), Zeroizing::default(), timeouts)?),
    ))
}

fn slow(limit: Duration) -> Error {
    let limit = limit.as_secs_f32();
    timed_out(format!("the peer did not finish the TLS handshake within {limit} s"))
}

fn read_certificates(file: &str) -> Result<Vec<CertificateDer<'static>>> {
    let bad = |e: String| Error::misuse(format!("`{file}` holds no certificate: {e}"));
    let read = CertificateDer::pem_file_iter(file).map_err(|e| bad(e.to_string()))?;
    let chain: Vec<_> = read.collect::<Result<_, _>>().map_err(|e| bad(e.to_string()))?;
    if chain.is_empty() { Err(bad("the file has none".into())) } else { Ok(chain) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
