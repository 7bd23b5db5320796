//! What a page says of a client.

use std::fmt;
use std::time::Duration;

use runtime::{Plan, Provenance, digest_of, hexadecimal};
use serde::Deserialize;
use wire::{Error, Result, TransportKind};
use zeroize::Zeroizing;

/// Longest and shortest limit of time, in seconds.
const LIMITS: std::ops::RangeInclusive<f64> = 0.001..=1e9;

/// A client's options, with the names of those of the command line.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Options {
    /// The name of the model, for servers that have several.
    pub(crate) model: Option<String>,
    /// What proves who the client is, to servers that want it.
    pub(crate) token: Option<Token>,
    /// Agree to a suite that leaks more than the result.
    pub(crate) accept_leakage: bool,
    /// Leave something with the server by which the next session begins sooner.
    pub(crate) keep_keys: bool,
    /// The digest of the plan that the server must offer, 64 hexadecimal digits.
    plan_digest: Option<Digest>,
    /// The digest of the public graph that it must offer, whatever the link.
    graph_digest: Option<Digest>,
    /// The commitment to the file of the model that it must show.
    model_commitment: Option<Digest>,
    /// Seconds without a byte of the server.
    idle_seconds: f64,
    /// Seconds of the whole session.
    session_seconds: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            model: None,
            token: None,
            accept_leakage: false,
            keep_keys: true,
            plan_digest: None,
            graph_digest: None,
            model_commitment: None,
            idle_seconds: 30.0,
            session_seconds: 3600.0,
        }
    }
}

/// A token, which is erased when it is dropped.
#[derive(Deserialize)]
#[serde(from = "String")]
pub(crate) struct Token(Zeroizing<String>);

impl From<String> for Token {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl Token {
    /// Returns the token as the server expects it.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// A digest in hexadecimal digits.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Digest([u8; 32]);

impl TryFrom<String> for Digest {
    type Error = &'static str;

    fn try_from(text: String) -> std::result::Result<Self, &'static str> {
        digest_of(&text).map(Self).ok_or("a digest has 64 hexadecimal digits")
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

impl Options {
    /// Reads options in JSON.
    ///
    /// # Errors
    /// [`Error::Misuse`].
    pub(crate) fn parse(json: &str) -> Result<Self> {
        let options: Self =
            serde_json::from_str(json).map_err(|e| Error::misuse(format!("options: {e}")))?;
        for seconds in [options.idle_seconds, options.session_seconds] {
            if !LIMITS.contains(&seconds) {
                let why = format!("a limit of time is 0.001 to 1e9 seconds, not {seconds}");
                return Err(Error::misuse(why));
            }
        }
        Ok(options)
    }

    /// How long to wait for a byte, and for all of the session.
    pub(crate) fn patience(&self) -> (Duration, Duration) {
        let [idle, total] = [self.idle_seconds, self.session_seconds]
            .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        (idle, total)
    }

    /// Refuses an offer that is not as pinned.
    ///
    /// # Errors
    /// [`Error::Transport`] of kind [`TransportKind::NotAuthentic`].
    pub(crate) fn check(&self, plan: &Plan, provenance: &Provenance) -> Result<()> {
        let graph = graph::digest(plan.graph());
        let found = [
            ("graph digest", &self.graph_digest, Some(graph)),
            ("model commitment", &self.model_commitment, provenance.commitment),
            ("plan digest", &self.plan_digest, Some(plan.digest())),
        ];
        for (what, pinned, found) in found {
            if let Some(pinned) = pinned
                && found != Some(pinned.0)
            {
                let found = found.as_ref().map_or("none".into(), hexadecimal);
                let why = format!(
                    "the {what} is {found}, not {pinned} as pinned: ask the server's operator"
                );
                return Err(Error::connection(TransportKind::NotAuthentic, why));
            }
        }
        Ok(())
    }
}
