//! How to serve, as operators say it.

use std::num::NonZeroU32;

use runtime::planner::Rates;
use runtime::{Reveal, Settings};
use serde::Deserialize;
use service::{Budget, Limits, WebSocketOptions};
use wire::{Error, Origins, Result};

use crate::access::TlsFiles;
use crate::membership::Belonging;
use crate::place::LedgerPlace;
use crate::session::Patience;

/// How to serve.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServeOptions {
    /// What clients learn.
    pub reveal: Reveal,
    /// Edges between buckets, in real units of the score; needed for [`Reveal::Bucket`].
    pub edges: Vec<f64>,
    /// Where correlated OTs come from: `auto`, `ferret` or `softspoken2`, `4`, `8`.
    pub ot: String,
    /// Whether base OTs rest on ML-KEM-768 as well as on Diffie-Hellman.
    pub post_quantum: bool,
    /// The number of runs that are preprocessed before their inputs; none when absent.
    pub offline: Option<NonZeroU32>,
    /// Inputs of one run, 1 to 64; one when absent.
    pub batch: Option<NonZeroU32>,
    /// Inputs of a run of several that follow each other, 2 to 64; there are no such runs when absent.
    pub pass: Option<NonZeroU32>,
    /// TLS, or `None` for plaintext on loopback.
    pub tls: Option<TlsFiles>,
    /// How long to wait for clients.
    pub timeouts: Patience,
    /// Stop after one session.
    pub once: bool,
    /// Sessions at the same time, at least 1; by cores and memory when absent.
    pub sessions: Option<usize>,
    /// Sessions that wait for others to end, at most; others are told when to come back.
    pub waiting: usize,
    /// Memory for the whole process in MB; most of what the machine has left when absent.
    pub memory: Option<u64>,
    /// What clients call the model; the name that it was compiled under when absent.
    pub name: Option<String>,
    /// File of the model card, of a server with one model.
    pub card: Option<String>,
    /// File of the tokens that clients must show; see `service::Tokens`.
    pub tokens: Option<String>,
    /// File, or URL of a PostgreSQL database, in which inputs are counted by client and model.
    pub ledger: Option<LedgerPlace>,
    /// The budget of clients that have none of their own in the ledger.
    pub budget: Budget,
    /// Where browsers connect by WebSocket (HOST:PORT), nowhere when absent.
    pub websocket: Option<String>,
    /// The pages that may do so, by their origins; those of the server's own host when empty.
    pub origins: Vec<String>,
    /// Where metrics are shown over plain HTTP (HOST:PORT); nowhere when absent.
    pub metrics: Option<String>,
    /// Whether every connection begins with a PROXY v2 header that says whose it is.
    pub proxy_protocol: bool,
    /// Control address of the fleet's door, HOST:PORT; with `fleet_secret`.
    pub fleet: Option<String>,
    /// File of the fleet's secret.
    pub fleet_secret: Option<String>,
    /// Where clients of the fleet reach this server, HOST:PORT; where it listens when absent.
    pub advertise: Option<String>,
    /// Where browsers of the fleet reach this server, HOST:PORT, port 0 being the one that `websocket` got; where it
    /// listens for them when absent.
    pub advertise_websocket: Option<String>,
    /// The server's name in the fleet; one by its host, process and time when absent.
    pub server_id: Option<String>,
    /// Most inputs in one session.
    pub most_inputs: usize,
    /// Threads per session, 1 to 64.
    pub threads: usize,
    /// A link to imitate and to plan for: `loopback`, `lan`, `wan` or `RTTms,Mbps`; clients
    /// must imitate the same.
    pub network: Option<String>,
    /// The link to plan for where nothing is imitated, in the same words; that of `network` when
    /// absent.
    pub link: Option<String>,
    /// Protocols of steps: `auto`, which plans for `link` where there is one, `measured`, which
    /// measures the link to each client and plans for that, `plain`, a choice such as `digits4`,
    /// `circuits` or `ahead`.
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
            edges: Vec::new(),
            ot: "auto".into(),
            post_quantum: Settings::default().post_quantum,
            offline: None,
            batch: None,
            pass: None,
            tls: Some(TlsFiles::default()),
            timeouts: Patience::default(),
            once: false,
            sessions: None,
            waiting: Limits::default().waiting,
            memory: None,
            name: None,
            card: None,
            tokens: None,
            ledger: None,
            budget: Budget::default(),
            websocket: None,
            origins: Vec::new(),
            metrics: None,
            proxy_protocol: false,
            fleet: None,
            fleet_secret: None,
            advertise: None,
            advertise_websocket: None,
            server_id: None,
            most_inputs: 1_000_000,
            threads: 1,
            network: None,
            link: None,
            protocols: "auto".into(),
            rates: None,
            accept_leakage: false,
            key_cache: 1024,
        }
    }
}

/// What is said of one of several models; what is absent is as [`ServeOptions`] say for all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelOptions {
    /// What clients call it; the name that it was compiled under when absent.
    pub name: Option<String>,
    /// What its clients learn.
    pub reveal: Option<Reveal>,
    /// Edges between buckets.
    pub edges: Option<Vec<f64>>,
    /// The number of runs that are preprocessed before their inputs; 0 for none.
    pub offline: Option<u32>,
    /// Inputs of one run, 1 to 64.
    pub batch: Option<u32>,
    /// Inputs of a run of several that follow each other, 2 to 64; 1 for no such runs.
    pub pass: Option<u32>,
    /// The link to plan for.
    pub link: Option<String>,
    /// Protocols of its steps.
    pub protocols: Option<String>,
    /// The budget of clients that have none of their own for it in the ledger.
    pub budget: Option<Budget>,
    /// File of its model card.
    pub card: Option<String>,
    /// The commitment to its file, as [`crate::load_committed`] gives it.
    #[serde(skip)]
    pub commitment: Option<[u8; 32]>,
}

impl ServeOptions {
    /// What they say of a fleet.
    pub(super) fn belonging(&self) -> Belonging<'_> {
        Belonging {
            fleet: self.fleet.as_deref(),
            secret: self.fleet_secret.as_deref(),
            advertise: self.advertise.as_deref(),
            advertise_websocket: self.advertise_websocket.as_deref(),
            websocket: self.websocket.is_some(),
            server: self.server_id.as_deref(),
            proxied: self.proxy_protocol,
            makes_key: self.tls.as_ref().is_some_and(TlsFiles::makes_key),
        }
    }

    /// What they say of browsers.
    pub(super) fn browsers(&self) -> Result<Option<WebSocketOptions>> {
        browsers(self.websocket.as_deref(), &self.origins)
    }

    /// The link that plans are for, if one is known.
    pub(crate) fn planned_link(&self) -> Option<&str> {
        self.link.as_deref().or(self.network.as_deref())
    }
}

/// Where browsers connect, and whose pages.
pub(crate) fn browsers(
    websocket: Option<&str>,
    origins: &[String],
) -> Result<Option<WebSocketOptions>> {
    let named = Origins::new(origins)?;
    match websocket {
        Some(listen) => Ok(Some(WebSocketOptions { listen: listen.into(), origins: named })),
        None if origins.is_empty() => Ok(None),
        None => Err(Error::misuse(
            "origins are of pages that connect by WebSocket: add --websocket HOST:PORT",
        )),
    }
}

impl ModelOptions {
    /// The options of all models with those of this one in their place.
    pub(super) fn over(&self, options: &ServeOptions) -> ServeOptions {
        let mut all = options.clone();
        all.reveal = self.reveal.unwrap_or(all.reveal);
        all.edges = self.edges.clone().unwrap_or(all.edges);
        all.offline = self.offline.map_or(all.offline, NonZeroU32::new);
        let several = |count| NonZeroU32::new(count).filter(|count| count.get() > 1);
        all.batch = self.batch.map_or(all.batch, several);
        all.pass = self.pass.map_or(all.pass, several);
        all.link = self.link.clone().or(all.link);
        all.protocols = self.protocols.clone().unwrap_or(all.protocols);
        all
    }
}
