//! Sessions: options as users give them, turned into channels.

use std::num::NonZeroU32;
use std::time::Duration;

use graph::Model;
use runtime::files::KeyFiles;
use runtime::planner::{Conditions, Planning, Rates};
use runtime::{Access, Answer, Options, Request, Reveal, Server, Session, Settings};
use serde::Deserialize;
use wire::{
    Channel, ClientTls, Error, Identity, Link, Pin, Result, Role, ServerTls, Timeouts, Trust,
    connect,
};

/// How long a party waits, in seconds; one policy for both sides.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Patience {
    /// For the connection, and again for the whole TLS handshake.
    pub connect: f64,
    /// For the next byte, in either direction.
    pub idle: f64,
    /// For the session from the hello to the result.
    pub session: f64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { connect: 10.0, idle: 30.0, session: 3600.0 }
    }
}

impl Patience {
    pub(crate) fn timeouts(&self) -> Result<Timeouts> {
        let duration = |name: &str, seconds: f64| {
            let duration = Duration::try_from_secs_f64(seconds);
            let duration = duration.ok().filter(|d| (SHORTEST..=LONGEST).contains(d));
            duration.ok_or_else(|| {
                Error::misuse(format!("the {name} timeout is 0.001 to 1e9 seconds, not {seconds}"))
            })
        };
        Ok(Timeouts {
            connect: duration("connect", self.connect)?,
            idle: duration("idle", self.idle)?,
            total: duration("session", self.session)?,
        })
    }
}

const SHORTEST: Duration = Duration::from_millis(1);
/// Far below what clocks overflow at.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// PEM files of a server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsFiles {
    /// Certificate chain; with `key`. Without them a fresh self-signed key is made.
    pub certificate: Option<String>,
    /// Private key.
    pub key: Option<String>,
    /// Authority whose certificates clients must show.
    pub client_ca: Option<String>,
}

/// How to serve.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServeOptions {
    /// What clients learn.
    pub reveal: Reveal,
    /// Where correlated OTs come from: `auto`, `ferret` or `softspoken2`, `4`, `8`.
    pub ot: String,
    /// The number of runs that are preprocessed before their inputs; none when absent.
    pub offline: Option<NonZeroU32>,
    /// Inputs of one run, 1 to 64; one when absent.
    pub batch: Option<NonZeroU32>,
    /// TLS, or `None` for plaintext on loopback.
    pub tls: Option<TlsFiles>,
    /// How long to wait for clients.
    pub timeouts: Patience,
    /// Stop after one session.
    pub once: bool,
    /// Sessions at the same time.
    pub sessions: usize,
    /// Most inputs in one session.
    pub most_inputs: usize,
    /// Threads per session, 1 to 64.
    pub threads: usize,
    /// A link to imitate and to plan for: `loopback`, `lan`, `wan` or `RTTms,Mbps`; clients
    /// must imitate the same.
    pub network: Option<String>,
    /// Protocols of steps that are not linear: `auto`, which plans for `network` where there is
    /// one, `measured`, which measures the link to each client and plans for that, `plain`,
    /// a choice such as `digits4`, `circuits` or `ahead`.
    pub protocols: String,
    /// What this machine takes for a unit of each kind of work; the reference machine's rates
    /// when absent.
    pub rates: Option<Rates>,
    /// Serve a suite that leaks more than the result.
    pub accept_leakage: bool,
    /// Memory for evaluation keys of clients who may come back, in MB.
    pub key_cache: usize,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            reveal: Reveal::Output,
            ot: "auto".into(),
            offline: None,
            batch: None,
            tls: Some(TlsFiles::default()),
            timeouts: Patience::default(),
            once: false,
            sessions: 64,
            most_inputs: 1_000_000,
            threads: 1,
            network: None,
            protocols: "auto".into(),
            rates: None,
            accept_leakage: false,
            key_cache: 1024,
        }
    }
}

/// How to reach a server: by `pin`, `ca` or `plaintext`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PredictOptions {
    /// The server's key, as `tacit serve` prints it.
    pub pin: Option<String>,
    /// PEM file of the authority that certified the server.
    pub ca: Option<String>,
    /// No TLS; loopback only.
    pub plaintext: bool,
    /// Own certificate chain, for servers that ask for it.
    pub certificate: Option<String>,
    /// The private key of the certificate.
    pub key: Option<String>,
    /// How long to wait for the server.
    pub timeouts: Patience,
    /// Threads, 1 to 64; 1 when absent.
    pub threads: Option<usize>,
    /// A link to imitate: `loopback` (none), `lan`, `wan` or `RTTms,Mbps`; the server must do
    /// the same.
    pub network: Option<String>,
    /// Agree to a suite that leaks more than the result.
    pub accept_leakage: bool,
    /// Files of suite `lola` with own keys: KEYS.secret and KEYS.keys; fresh ones when absent.
    pub keys: Option<String>,
}

impl PredictOptions {
    fn key_files(&self) -> Result<Option<KeyFiles>> {
        let read = |name: &str, ending: &str| {
            let path = format!("{name}.{ending}");
            std::fs::read(&path).map_err(|e| Error::misuse(format!("{path}: {e}")))
        };
        let files = self.keys.as_deref().map(|name| {
            let (secret, evaluation) = (read(name, "secret")?.into(), read(name, "keys")?);
            Ok(KeyFiles { secret, evaluation })
        });
        files.transpose()
    }
}

/// A bound server and how clients know it.
pub struct Welcome {
    /// The server.
    pub server: Server,
    /// The pin of the server's key; `None` in plaintext.
    pub pin: Option<Pin>,
}

/// Binds `listen` (HOST:PORT) for `model`.
///
/// # Errors
/// [`Error::Misuse`] for options, files and addresses that cannot be used.
pub fn serve(model: Model, listen: &str, options: &ServeOptions) -> Result<Welcome> {
    let threads = threads(options.threads)?;
    let settings = settings(options)?;
    let (access, pin) = match &options.tls {
        None => (Access::Plaintext, None),
        Some(files) => {
            let identity = match (&files.certificate, &files.key) {
                (Some(certificate), Some(key)) => Identity::from_files(certificate, key)?,
                (None, None) => Identity::ephemeral()?,
                _ => return Err(Error::misuse("a certificate and its key belong together")),
            };
            let pin = identity.pin()?;
            (Access::Tls(ServerTls::new(identity, files.client_ca.as_deref())?), Some(pin))
        }
    };
    let options = Options {
        settings,
        planning: planning(&options.protocols, options.network.as_deref(), options.rates)?,
        access,
        timeouts: options.timeouts.timeouts()?,
        link: link(options.network.as_deref())?,
        sessions: options.sessions.max(1),
        most_inputs: options.most_inputs,
        threads,
        once: options.once,
        accept_leakage: options.accept_leakage,
        key_cache: options.key_cache.saturating_mul(1 << 20),
    };
    Ok(Welcome { server: Server::bind(model, listen, options)?, pin })
}

/// Runs one session with `server` (HOST:PORT) over `values` of the given shape, one input or
/// several with a leading axis, in model units.
///
/// # Errors
/// [`Error::Misuse`] for inputs or options that do not fit, [`Error::Peer`] when the
/// server misbehaves, [`Error::Transport`] when it is absent, late or not authentic.
pub fn predict(
    server: &str,
    values: &[f32],
    shape: &[usize],
    options: &PredictOptions,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Answer> {
    let threads = threads(options.threads.unwrap_or(1))?;
    if values.iter().any(|value| !value.is_finite()) {
        return Err(Error::misuse("the input has NaN or infinite values"));
    }
    let files = options.key_files()?;
    let mut channel = open(server, options)?;
    let (accept_leakage, keys) = (options.accept_leakage, files.as_ref());
    let request = Request { values, shape, threads, accept_leakage, keys, progress };
    runtime::predict(&mut channel, request)
}

/// Opens a session of at most `inputs` inputs with `server` (HOST:PORT). Between inputs it
/// prepares what the server's store has room for.
///
/// # Errors
/// [`Error::Misuse`] for options and numbers of inputs that cannot be, [`Error::Peer`] when
/// the server misbehaves, [`Error::Transport`] when it is absent, late or not authentic.
pub fn session(server: &str, inputs: usize, options: &PredictOptions) -> Result<Session> {
    let threads = threads(options.threads.unwrap_or(1))?;
    let (files, channel) = (options.key_files()?, open(server, options)?);
    Session::open(channel, inputs, threads, options.accept_leakage, files.as_ref())
}

/// Connects, authenticates and shapes the link as `options` say.
pub(crate) fn open(server: &str, options: &PredictOptions) -> Result<Channel> {
    let link = link(options.network.as_deref())?;
    let mut channel = reach(server, options)?;
    if let Some(link) = link {
        channel.shape(link)?;
    }
    Ok(channel)
}

fn reach(server: &str, options: &PredictOptions) -> Result<Channel> {
    let timeouts = options.timeouts.timeouts()?;
    let trust = match (&options.pin, &options.ca, options.plaintext) {
        (Some(pin), None, false) => Trust::Pin(pin.parse()?),
        (None, Some(file), false) => Trust::Authority(file.clone()),
        (None, None, true) => {
            return wire::plaintext(Role::Client, connect(server, timeouts)?, timeouts);
        }
        _ => return Err(Error::misuse("exactly one of pin, ca and plaintext")),
    };
    let identity = match (&options.certificate, &options.key) {
        (Some(certificate), Some(key)) => Some(Identity::from_files(certificate, key)?),
        (None, None) => None,
        _ => return Err(Error::misuse("a certificate and its key belong together")),
    };
    let tls = ClientTls::new(&trust, identity)?;
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    tls.channel(host, connect(server, timeouts)?, timeouts)
}

pub(crate) fn link(network: Option<&str>) -> Result<Option<Link>> {
    network.map(str::parse).transpose()
}

/// How steps' protocols are chosen; see [`ServeOptions::protocols`].
///
/// # Errors
/// [`Error::Misuse`] for other names.
pub(crate) fn planning(
    protocols: &str,
    network: Option<&str>,
    rates: Option<Rates>,
) -> Result<Planning> {
    Ok(match (protocols, link(network)?) {
        ("auto", Some(link)) => Planning::Best(Box::new(conditions(Some(link), rates))),
        ("auto", None) | ("plain", _) => Planning::Plain,
        ("measured", _) => Planning::Measured(Box::new(rates.unwrap_or_else(Rates::reference))),
        (name, _) => Planning::Uniform(name.parse().map_err(|_| {
            let known = "auto, plain, measured, digits1 to digits8, circuits, \
                         rows1 to rows8, table, packing1 to packing4, transfers, ahead";
            Error::misuse(format!("no protocols `{name}`; there are {known}"))
        })?),
    })
}

/// This machine and a link.
pub(crate) fn conditions(link: Option<Link>, rates: Option<Rates>) -> Conditions {
    let link = link.filter(|link| *link != Link::LOOPBACK);
    Conditions { rates: rates.unwrap_or_else(Rates::reference), link }
}

/// What a server offers by these options.
pub(crate) fn settings(options: &ServeOptions) -> Result<Settings> {
    let link = link(options.network.as_deref())?;
    let ServeOptions { reveal, offline, batch, .. } = *options;
    let ot = options.ot.parse()?;
    let settings = Settings { reveal, ot, offline, batch, ..Settings::default() };
    Ok(settings.planned_for(link))
}

pub(crate) fn threads(count: usize) -> Result<usize> {
    match count {
        1..=64 => Ok(count),
        _ => Err(Error::misuse(format!("1 to 64 threads, not {count}"))),
    }
}
