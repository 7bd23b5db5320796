//! The URL of a ledger: what it may say, how it is shown without its password, and when TLS is asked for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::postgres::config::{Host, SslMode};
use ::postgres::{Client, Config, NoTls};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::faults::{PATIENCE, explain};
use crate::error::{Error, Result};
use crate::place::is_url;

/// How a URL looks, for those that cannot be read.
const FORM: &str = "postgresql://USER@HOST:PORT/DATABASE";
/// Where a password stands that is not in the URL.
const PASSWORD: &str = "PGPASSWORD";
/// How long a connection may take, by address.
const CONNECT: Duration = Duration::from_secs(5);

/// Where a ledger is, and how to get there.
pub(super) struct Address {
    config: Config,
    /// The authorities that vouch for the server, where TLS is asked for.
    tls: Option<MakeRustlsConnect>,
    /// The URL for people, without the password.
    pub(super) shown: PathBuf,
}

/// Returns how the place of a ledger is shown to people: a file by its path, a database by its URL without password and
/// options.
pub fn shown(place: &str) -> String {
    if !is_url(place) {
        return place.into();
    }
    let read = split(place).and_then(|(url, _)| url.parse().ok());
    read.map_or_else(|| FORM.into(), |config| name(&config))
}

impl Address {
    /// Reads a URL. The password, where it has none, is that of the environment variable PGPASSWORD.
    ///
    /// # Errors
    /// [`Error::Misuse`] for one that cannot be read, and for a server on another machine without TLS.
    pub(super) fn read(url: &str) -> Result<Self> {
        // What the parser says may have a part of the password in it.
        let bad = || {
            Error::misuse(format!(
                "the URL of the ledger cannot be read: it is {FORM}, with %XX in the place of \
                 special characters of the password, and the options host, sslmode, sslrootcert \
                 and those of libpq"
            ))
        };
        let (url, tls) = split(url).ok_or_else(bad)?;
        let mut config: Config = url.parse().map_err(|_| bad())?;
        let shown = PathBuf::from(name(&config));
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(Error::misuse(format!(
                "the URL of the ledger names no host: it is {FORM}, or \
                 postgresql:///DATABASE?host=/var/run/postgresql for a socket of this machine"
            )));
        }
        let tls = tls.connector(&config, &shown.display().to_string())?;
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        if config.get_password().is_none()
            && let Ok(password) = std::env::var(PASSWORD)
        {
            config.password(password);
        }
        if config.get_application_name().is_none() {
            config.application_name("tacit");
        }
        // A server that is silent is given up within the patience of those who wait for an answer.
        config.connect_timeout(CONNECT).tcp_user_timeout(PATIENCE);
        config
            .keepalives_idle(PATIENCE / 2)
            .keepalives_interval(PATIENCE / 5)
            .keepalives_retries(3);
        Ok(Self { config, tls, shown })
    }

    pub(super) fn connect(&self) -> Result<Client> {
        let connected = match &self.tls {
            Some(tls) => self.config.connect(tls.clone()),
            None => self.config.connect(NoTls),
        };
        connected.map_err(|e| explain(&self.shown, &e))
    }
}

/// What a URL says of TLS, still encoded.
#[derive(Default)]
struct Tls {
    mode: Option<String>,
    authority: Option<String>,
}

impl Tls {
    /// What connects by TLS, or `None` where the server is on this machine and no authority is named.
    fn connector(&self, config: &Config, shown: &str) -> Result<Option<MakeRustlsConnect>> {
        let is_tcp = |host: &Host| matches!(host, Host::Tcp(_));
        let hosts = config.get_hosts();
        let mode = self.mode.as_deref();
        let known = ["disable", "prefer", "require", "verify-ca", "verify-full"];
        if mode.is_some_and(|mode| !known.contains(&mode)) {
            return Err(Error::misuse(format!("sslmode is one of {}", known.join(", "))));
        }
        let Some(authority) = &self.authority else {
            let far = !hosts.iter().all(is_near)
                || !config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback);
            if far || mode.is_some_and(|mode| !matches!(mode, "disable" | "prefer")) {
                return Err(Error::misuse(format!(
                    "the ledger {shown} is reached by TLS alone: add ?sslrootcert=FILE to its URL, \
                     the certificate (PEM) of the authority that vouches for the server"
                )));
            }
            return Ok(None);
        };
        if mode == Some("disable") || hosts.is_empty() || !hosts.iter().all(is_tcp) {
            return Err(Error::misuse(format!(
                "sslrootcert asks for TLS, which the ledger {shown} has not with sslmode=disable, \
                 by a socket, or without the host's name"
            )));
        }
        let file = decoded(authority).ok_or_else(|| Error::misuse("sslrootcert has bad %XX"))?;
        connector(&file).map(Some).map_err(|why| {
            Error::misuse(format!("cannot use the sslrootcert {file} of the ledger: {why}"))
        })
    }
}

/// Takes apart what a URL says of TLS and the rest. `None` where an option says nothing.
fn split(url: &str) -> Option<(String, Tls)> {
    let Some((before, options)) = url.split_once('?') else {
        return Some((url.into(), Tls::default()));
    };
    let (mut tls, mut rest) = (Tls::default(), Vec::new());
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=')? {
            ("sslmode", value) => tls.mode = Some(value.into()),
            ("sslrootcert", value) => tls.authority = Some(value.into()),
            _ => rest.push(option),
        }
    }
    let mark = if rest.is_empty() { "" } else { "?" };
    Some((format!("{before}{mark}{}", rest.join("&")), tls))
}

/// The text of an option without %XX, as the parser of URLs reads it.
fn decoded(value: &str) -> Option<String> {
    let config: Config = format!("postgresql:///?application_name={value}").parse().ok()?;
    config.get_application_name().map(Into::into)
}

/// Whether what is sent to a host stays on this machine.
fn is_near(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost"
                || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        Host::Unix(_) => true,
    }
}

/// What connects to servers for whose name the authorities of a file vouch.
fn connector(file: &str) -> Result<MakeRustlsConnect, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|e| e.to_string())? {
        let certificate = certificate.map_err(|e| e.to_string())?;
        roots.add(certificate).map_err(|e| e.to_string())?;
    }
    if roots.is_empty() {
        return Err("it has no certificate".into());
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| e.to_string())?;
    let config = versions.with_root_certificates(roots).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// The URL without password and options.
fn name(config: &Config) -> String {
    let mut hosts: Vec<String> = config.get_hosts().iter().map(host).collect();
    if hosts.is_empty() {
        hosts = config.get_hostaddrs().iter().map(ToString::to_string).collect();
    }
    let ports = config.get_ports();
    let placed = hosts.iter().enumerate().map(|(at, host)| {
        match ports.get(at).or(ports.first()).filter(|port| **port != 5432) {
            Some(port) => format!("{host}:{port}"),
            None => host.clone(),
        }
    });
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let database = config.get_dbname().map(|name| format!("/{name}")).unwrap_or_default();
    format!("postgresql://{user}{}{database}", placed.collect::<Vec<_>>().join(","))
}

fn host(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(folder) => folder.display().to_string().replace('/', "%2F"),
    }
}
