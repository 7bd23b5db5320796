//! Sessions: options as users give them, turned into channels.

use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

use runtime::files::{KeyFiles, open_secret};
use runtime::{Answer, Asking, KeptKeys, Plan, Provenance, Request, Session, Trusts};
use serde::Deserialize;
use wire::fleet::Amount;
use wire::{Channel, Error, Link, Result, Timeouts, Trust};
use zeroize::Zeroizing;

use crate::again;
use crate::follow::{Route, reach};
use crate::trust::Pins;

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

/// A passphrase, which is erased when it is dropped and never printed.
#[derive(Clone, Deserialize)]
#[serde(from = "String")]
pub struct Passphrase(Zeroizing<String>);

impl From<String> for Passphrase {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl Passphrase {
    fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a passphrase")
    }
}

/// How to reach a server: by `pin`, `ca` or `plaintext`.
#[derive(Clone, Debug, Deserialize)]
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
    /// The name of the model, for servers that have several.
    pub model: Option<String>,
    /// What proves who the client is, to servers that want it.
    pub token: Option<String>,
    /// Seconds for which a session is tried again, as a whole and with fresh randomness, when the
    /// server is full, about to stop or gone; 0 for not at all.
    pub retry_for: f64,
    /// The inputs may have NaN and infinite values, which only models of tables know; else they are
    /// refused before the server is asked for anything.
    pub missing: bool,
    /// Files of suite `lola` with own keys: KEYS.secret and KEYS.keys; fresh ones when absent.
    pub keys: Option<String>,
    /// The passphrase of KEYS.secret, where that is encrypted.
    pub passphrase: Option<Passphrase>,
    /// The digest of the plan that the server must offer, 64 hexadecimal digits.
    pub plan_digest: Option<String>,
    /// The digest of the public graph that it must offer, whatever the link.
    pub graph_digest: Option<String>,
    /// The commitment to the file of the model that it must show.
    pub model_commitment: Option<String>,
    /// Go to the server that the door of a fleet names; else a door passes the client on.
    pub follow: bool,
    /// The signer whose card it must show of that file: its public key, 64 hexadecimal digits.
    pub card_key: Option<String>,
}

impl Default for PredictOptions {
    fn default() -> Self {
        Self {
            pin: None,
            ca: None,
            plaintext: false,
            certificate: None,
            key: None,
            timeouts: Patience::default(),
            threads: None,
            network: None,
            accept_leakage: false,
            model: None,
            token: None,
            retry_for: 0.0,
            missing: false,
            keys: None,
            passphrase: None,
            plan_digest: None,
            graph_digest: None,
            model_commitment: None,
            follow: true,
            card_key: None,
        }
    }
}

impl PredictOptions {
    fn asking<'a>(&'a self, keys: Option<&'a KeptKeys>) -> Asking<'a> {
        let (model, token) = (self.model.as_deref(), self.token.as_deref());
        Asking { model, token, keys, ..Asking::default() }
    }

    fn key_files(&self) -> Result<Option<KeyFiles>> {
        let read = |name: &str, ending: &str| {
            let path = format!("{name}.{ending}");
            std::fs::read(&path).map_err(|e| Error::misuse(format!("{path}: {e}")))
        };
        let files = self.keys.as_deref().map(|name| {
            let secret = Zeroizing::new(read(name, "secret")?);
            let passphrase = self.passphrase.as_ref().map(Passphrase::text);
            let (secret, evaluation) = (open_secret(&secret, passphrase)?, read(name, "keys")?);
            Ok(KeyFiles { secret, evaluation })
        });
        files.transpose()
    }
}

/// What a client is told while it waits for its results.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// So many inputs of all are done.
    Done(usize, usize),
    /// The server is busy: so many sessions begin before this one.
    Waiting(u32),
    /// The session failed for a reason that may pass, and is tried again after so many seconds.
    Retrying(f64, String),
}

/// Runs one session with `server` (HOST:PORT) over `values` of the given shape, one input or
/// several with a leading axis, in model units. With `kept` it uses what an earlier session with
/// the same server left there, and leaves something to the next.
///
/// # Errors
/// [`Error::Misuse`] for inputs or options that do not fit, [`Error::Peer`] when the
/// server misbehaves, [`Error::Transport`] when it is absent, late, full or not authentic.
pub fn predict(
    server: &str,
    values: &[f32],
    shape: &[usize],
    options: &PredictOptions,
    kept: Option<&KeptKeys>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Answer> {
    let threads = threads(options.threads.unwrap_or(1))?;
    if !options.missing && values.iter().any(|value| !value.is_finite()) {
        return Err(Error::misuse("the input has NaN or infinite values"));
    }
    let files = options.key_files()?;
    let pins = Pins::of(options)?;
    let trust = &|plan: &Plan, provenance: &Provenance| pins.check(plan, provenance);
    let told = RefCell::new(progress);
    let tell = |progress| (told.borrow_mut())(progress);
    let waiting = |before| tell(Progress::Waiting(before));
    again::until(options.retry_for, &|seconds, why| tell(Progress::Retrying(seconds, why)), || {
        let amount = Amount::Values(values.len() as u64);
        let mut channel = open(server, options, (options.asking(kept), amount), &waiting)?;
        let (accept_leakage, keys) = (options.accept_leakage, files.as_ref());
        let done = &mut |done, all| tell(Progress::Done(done, all));
        let trust = Some(trust as &Trusts<'_>);
        let asking = Asking { waiting: Some(&waiting), trust, ..options.asking(kept) };
        let progress = done;
        let request = Request { values, shape, threads, accept_leakage, keys, asking, progress };
        runtime::predict(&mut channel, request)
    })
}

/// Opens a session of at most `inputs` inputs with `server` (HOST:PORT). Between inputs it
/// prepares what the server's store has room for. `kept` is as in [`predict`].
///
/// # Errors
/// [`Error::Misuse`] for options and numbers of inputs that cannot be, [`Error::Peer`] when
/// the server misbehaves, [`Error::Transport`] when it is absent, late or not authentic.
pub fn session(
    server: &str,
    inputs: usize,
    options: &PredictOptions,
    kept: Option<&KeptKeys>,
) -> Result<Session> {
    let threads = threads(options.threads.unwrap_or(1))?;
    let files = options.key_files()?;
    let pins = Pins::of(options)?;
    let trust = &|plan: &Plan, provenance: &Provenance| pins.check(plan, provenance);
    again::until(options.retry_for, &|_, _| (), || {
        let amount = Amount::Runs(inputs as u64);
        let channel = open(server, options, (options.asking(kept), amount), &|_| ())?;
        let (leakage, files) = (options.accept_leakage, files.as_ref());
        let asking = Asking { trust: Some(trust as &Trusts<'_>), ..options.asking(kept) };
        Session::open(channel, inputs, threads, leakage, files, asking)
    })
}

/// Connects, authenticates and shapes the link as `options` say; of a door it asks for so much, and `told` hears
/// how many clients come first.
pub(crate) fn open(
    server: &str,
    options: &PredictOptions,
    asked: (Asking<'_>, Amount),
    told: &dyn Fn(u32),
) -> Result<Channel> {
    let link = link(options.network.as_deref())?;
    let mut channel = reach(server, &route(options)?, asked, told)?;
    if let Some(link) = link {
        channel.shape(link)?;
    }
    Ok(channel)
}

/// How the server is known, as options say.
fn route(options: &PredictOptions) -> Result<Route<'_>> {
    let trust = match (&options.pin, &options.ca, options.plaintext) {
        (Some(pin), None, false) => Some(Trust::Pin(pin.parse()?)),
        (None, Some(file), false) => Some(Trust::Authority(file.clone())),
        (None, None, true) => None,
        _ => return Err(Error::misuse("exactly one of pin, ca and plaintext")),
    };
    let identity = match (&options.certificate, &options.key) {
        (Some(certificate), Some(key)) => Some((certificate.as_str(), key.as_str())),
        (None, None) => None,
        _ => return Err(Error::misuse("a certificate and its key belong together")),
    };
    let (timeouts, follow) = (options.timeouts.timeouts()?, options.follow);
    Ok(Route { trust, identity, timeouts, follow })
}

pub(crate) fn link(network: Option<&str>) -> Result<Option<Link>> {
    network.map(str::parse).transpose()
}

pub(crate) fn threads(count: usize) -> Result<usize> {
    match count {
        1..=64 => Ok(count),
        _ => Err(Error::misuse(format!("1 to 64 threads, not {count}"))),
    }
}
