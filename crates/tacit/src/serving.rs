//! Serving: options as operators give them, turned into a server.

use std::sync::{Arc, Mutex, PoisonError};

use graph::Model;
use runtime::{Provenance, Reveal, Served, Settings, hexadecimal};
use serde::Serialize;
use service::{Budget, Ledger, Limits, Options, Policy, Server, TokenEntry, Tokens};
use wire::{Error, Identity, Pin, Result};

use crate::access::{TlsFiles, access};
use crate::card::{Card, shown};
use crate::membership::membership;
use crate::planning::planning;
use crate::revealed::revealing;
use crate::session::{link, threads};
use crate::warnings;

mod options;

pub(crate) use self::options::browsers;
pub use self::options::{ModelOptions, ServeOptions};

/// What clients may pin of a model, as digests in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Offering {
    /// What clients call the model.
    pub name: String,
    /// `client` where it is secure against a client that sends anything, as in reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure_against: Option<&'static str>,
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
        let secure_against = runtime::secure_against_client(&model.graph.suite).then_some("client");
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
        let offering = Offering {
            name: name.clone(),
            secure_against,
            graph_digest,
            commitment,
            card,
            plan_digests,
        };
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

/// What a server offers by these options.
pub(crate) fn settings(options: &ServeOptions) -> Result<Settings> {
    let link = link(options.planned_link())?;
    let ServeOptions { reveal, post_quantum, offline, batch, pass, .. } = *options;
    let ot = options.ot.parse()?;
    let own = Settings { reveal, ot, post_quantum, offline, batch, pass, ..Settings::default() };
    Ok(own.planned_for(link))
}
