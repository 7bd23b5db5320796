//! Serving: options as operators give them, turned into a server.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use graph::Model;
use runtime::planner::Rates;
use runtime::{Provenance, Reveal, Served, Settings, hexadecimal};
use serde::{Deserialize, Serialize};
use service::{
    Budget, Ledger, Limits, Options, Policy, Server, TokenEntry, Tokens, WebSocketOptions,
};
use wire::{Error, Identity, Origins, Pin, Result};

use crate::access::{TlsFiles, access};
use crate::card::{Card, shown};
use crate::membership::{Belonging, membership};
use crate::place::LedgerPlace;
use crate::planning::planning;
use crate::revealed::revealing;
use crate::session::{Patience, link, threads};
use crate::warnings;

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

/// What clients may pin of a model, as digests in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Offering {
    /// What clients call the model.
    pub name: String,
    /// SHA-256 of its public graph without share widths.
    pub graph_digest: String,
    /// The commitment to its file; `None` of a file without a salt.
    pub commitment: Option<String>,
    /// Its model card, whose signature holds.
    pub card: Option<Card>,
    /// Those of all plans that clients may be offered, by link and by what they may learn.
    pub plan_digests: Vec<String>,
}

/// A bound server and how clients know it.
pub struct Welcome {
    server: Server,
    pin: Mutex<Option<Pin>>,
    /// The key that was made at the start, where that is what clients see.
    ephemeral: Option<Identity>,
    offerings: Mutex<Vec<Offering>>,
    ledger: Option<Arc<Ledger>>,
    warnings: Vec<String>,
}

/// Binds `listen` (HOST:PORT) for one model or several.
///
/// # Errors
/// [`Error::Misuse`] for options, files and addresses that cannot be used.
pub fn serve(
    models: Vec<(Model, ModelOptions)>,
    listen: &str,
    options: &ServeOptions,
) -> Result<Welcome> {
    let threads = threads(options.threads)?;
    let makes_key = options.tls.as_ref().is_some_and(TlsFiles::makes_key);
    let ephemeral = makes_key.then(Identity::ephemeral).transpose()?;
    let (access, pin) = access(options.tls.as_ref(), ephemeral.as_ref())?;
    let limits = Limits {
        sessions: options.sessions.map(|sessions| sessions.max(1)),
        waiting: options.waiting,
        memory: options.memory.map(|mb| mb.saturating_mul(1 << 20)),
    };
    let ledger = options.ledger.as_ref().map(Ledger::open).transpose()?.map(Arc::new);
    let policy = policy(options, ledger)?;
    let mut warnings = warnings::of(options, &models, &policy)?;
    warnings.extend(warnings::revocation(&access));
    let (models, offerings) = named(models, options, &policy)?;
    let chosen = Options {
        access,
        policy: policy.clone(),
        timeouts: options.timeouts.timeouts()?,
        link: link(options.network.as_deref())?,
        limits,
        most_inputs: options.most_inputs,
        threads,
        websocket: options.browsers()?,
        metrics: options.metrics.clone(),
        proxied: options.proxy_protocol,
        fleet: membership(&options.belonging(), pin)?,
        once: options.once,
    };
    let server = Server::bind(models, listen, chosen)?;
    let (pin, offerings) = (Mutex::new(pin), Mutex::new(offerings));
    Ok(Welcome { server, pin, ephemeral, offerings, ledger: policy.ledger, warnings })
}

impl Welcome {
    /// Returns the server.
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// Returns what is legal in the options and yet seldom meant, in whole sentences.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the pin of the server's key; `None` in plaintext.
    pub fn pin(&self) -> Option<Pin> {
        *self.pin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what clients may pin of each model.
    pub fn offerings(&self) -> Vec<Offering> {
        self.offerings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts `models`, and the certificates, revocation lists and tokens in the files of `options`,
    /// in the place of what new sessions get; sessions under way go on. A key that is made at the
    /// start stays, and so does the ledger.
    ///
    /// # Errors
    /// [`Error::Misuse`] for files that cannot be used: the server goes on as it was.
    pub fn reload(&self, models: Vec<(Model, ModelOptions)>, options: &ServeOptions) -> Result<()> {
        let policy = policy(options, self.ledger.clone())?;
        let (models, offerings) = named(models, options, &policy)?;
        let (access, pin) = access(options.tls.as_ref(), self.ephemeral.as_ref())?;
        self.server.replace(models, Some(access), policy)?;
        *self.pin.lock().unwrap_or_else(PoisonError::into_inner) = pin;
        *self.offerings.lock().unwrap_or_else(PoisonError::into_inner) = offerings;
        Ok(())
    }
}

/// What is asked of clients.
fn policy(options: &ServeOptions, ledger: Option<Arc<Ledger>>) -> Result<Policy> {
    if ledger.is_none() && options.budget != Budget::default() {
        return Err(Error::misuse("a budget needs a ledger that counts: add --ledger FILE or URL"));
    }
    let tokens = options.tokens.as_deref().map(Tokens::from_file).transpose()?;
    Ok(Policy { tokens: tokens.map(Arc::new), ledger, budget: options.budget })
}

/// The models by their names, and what clients may pin of each.
fn named(
    models: Vec<(Model, ModelOptions)>,
    options: &ServeOptions,
    policy: &Policy,
) -> Result<(Vec<service::Model>, Vec<Offering>)> {
    let several = models.len() > 1;
    let one = |(model, own): (Model, ModelOptions)| {
        let for_all = options.name.clone().filter(|_| !several);
        let name = own.name.clone().or(for_all).unwrap_or_else(|| model.graph.name.clone());
        let budget = own.budget;
        let graph_digest = hexadecimal(&graph::digest(&model.graph));
        let card = own.card.as_deref().or(options.card.as_deref().filter(|_| !several));
        let card = card.map(|file| shown(file, own.commitment.as_ref())).transpose()?;
        let (text, card) = card.unzip();
        let provenance = Provenance { commitment: own.commitment, card: text };
        let (first, others) = variants(model, &provenance, &own.over(options), policy)?;
        let mut plan_digests = Vec::new();
        for served in std::iter::once(&first).chain(&others) {
            for digest in served.plan_digests()?.iter().map(hexadecimal) {
                if !plan_digests.contains(&digest) {
                    plan_digests.push(digest);
                }
            }
        }
        let commitment = own.commitment.as_ref().map(hexadecimal);
        let name = name.clone();
        let offering =
            Offering { name: name.clone(), graph_digest, commitment, card, plan_digests };
        let served = service::Model::new(name, first, others)?;
        let served = match budget {
            Some(budget) => served.with_budget(budget),
            None => served,
        };
        Ok((served, offering))
    };
    models.into_iter().map(one).collect()
}

/// A model once for what all clients may learn, and once for each other thing that the tokens say.
fn variants(
    model: Model,
    provenance: &Provenance,
    options: &ServeOptions,
    policy: &Policy,
) -> Result<(Served, Vec<Served>)> {
    let planning = planning(&options.protocols, options.planned_link(), options.rates)?;
    let cache = options.key_cache.saturating_mul(1 << 20);
    let settings = settings(options)?;
    let serve = |model: Model, reveal: Reveal| {
        let settings = Settings { reveal, ..settings };
        let model = revealing(model, reveal, &options.edges)?;
        Served::new(model, settings, &planning, options.accept_leakage, cache)?
            .of(provenance.clone())
    };
    let entries = policy.tokens.iter().flat_map(|tokens| tokens.entries());
    let mut reveals: Vec<Reveal> = Vec::new();
    for reveal in entries.filter_map(TokenEntry::reveal) {
        if reveal != settings.reveal && !reveals.contains(&reveal) {
            reveals.push(reveal);
        }
    }
    let others = reveals.into_iter().map(|reveal| serve(model.clone(), reveal));
    let others = others.collect::<Result<Vec<_>>>()?;
    Ok((serve(model, settings.reveal)?, others))
}

impl ServeOptions {
    /// What they say of a fleet.
    fn belonging(&self) -> Belonging<'_> {
        Belonging {
            fleet: self.fleet.as_deref(),
            secret: self.fleet_secret.as_deref(),
            advertise: self.advertise.as_deref(),
            server: self.server_id.as_deref(),
            proxied: self.proxy_protocol,
            makes_key: self.tls.as_ref().is_some_and(TlsFiles::makes_key),
        }
    }

    /// What they say of browsers.
    fn browsers(&self) -> Result<Option<WebSocketOptions>> {
        let origins = Origins::new(&self.origins)?;
        match &self.websocket {
            Some(listen) => Ok(Some(WebSocketOptions { listen: listen.clone(), origins })),
            None if self.origins.is_empty() => Ok(None),
            None => Err(Error::misuse(
                "origins are of pages that connect by WebSocket: add --websocket HOST:PORT",
            )),
        }
    }

    /// The link that plans are for, if one is known.
    pub(crate) fn planned_link(&self) -> Option<&str> {
        self.link.as_deref().or(self.network.as_deref())
    }
}

impl ModelOptions {
    /// The options of all models with those of this one in their place.
    fn over(&self, options: &ServeOptions) -> ServeOptions {
        let mut all = options.clone();
        all.reveal = self.reveal.unwrap_or(all.reveal);
        all.edges = self.edges.clone().unwrap_or(all.edges);
        all.offline = self.offline.map_or(all.offline, NonZeroU32::new);
        all.batch =
            self.batch.map_or(all.batch, |batch| NonZeroU32::new(batch).filter(|b| b.get() > 1));
        all.link = self.link.clone().or(all.link);
        all.protocols = self.protocols.clone().unwrap_or(all.protocols);
        all
    }
}

/// What a server offers by these options.
pub(crate) fn settings(options: &ServeOptions) -> Result<Settings> {
    let link = link(options.planned_link())?;
    let ServeOptions { reveal, post_quantum, offline, batch, .. } = *options;
    let ot = options.ot.parse()?;
    let settings = Settings { reveal, ot, post_quantum, offline, batch, ..Settings::default() };
    Ok(settings.planned_for(link))
}
