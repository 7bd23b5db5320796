//! The door of a fleet: options as operators give them, turned into one that is bound.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use service::{Access, Allocator, AllocatorOptions, Budget, Ledger, Policy, Relay, Tokens};
use wire::{Error, Identity, Pin, Result, ServerTls};

use crate::access::{TlsFiles, access, identity};
use crate::place::LedgerPlace;
use crate::serving::browsers;

/// How a door is set up.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DoorOptions {
    /// Where clients come, HOST:PORT.
    pub listen: String,
    /// Where browsers come by WebSocket (HOST:PORT); nowhere when absent.
    pub websocket: Option<String>,
    /// The pages that may do so, by their origins; those of the door's own host when empty.
    pub origins: Vec<String>,
    /// Where servers come, HOST:PORT.
    pub control: String,
    /// File of the fleet's secret, which is made where there is none.
    pub secret: String,
    /// TLS, the same as that of the servers, or `None` for plaintext on loopback.
    pub tls: Option<TlsFiles>,
    /// File of the tokens that clients must show.
    pub tokens: Option<String>,
    /// File, or URL of a PostgreSQL database, in which inputs are counted by client and model.
    pub ledger: Option<LedgerPlace>,
    /// The budget of clients that have none of their own.
    pub budget: Budget,
    /// Where metrics are shown over plain HTTP (HOST:PORT); nowhere when absent.
    pub metrics: Option<String>,
    /// Which clients are passed on rather than told a server's address.
    pub relay: Relay,
    /// Clients that wait, at most.
    pub queue: usize,
    /// How long a ticket is good, in seconds, 1 to 60.
    pub ticket_seconds: u64,
}

impl Default for DoorOptions {
    fn default() -> Self {
        Self {
            listen: String::new(),
            websocket: None,
            origins: Vec::new(),
            control: String::new(),
            secret: String::new(),
            tls: Some(TlsFiles::default()),
            tokens: None,
            ledger: None,
            budget: Budget::default(),
            metrics: None,
            relay: Relay::Old,
            queue: 256,
            ticket_seconds: 30,
        }
    }
}

/// A bound door and how clients know it.
pub struct Doorway {
    allocator: Allocator,
    ledger: Option<Arc<Ledger>>,
    pin: Mutex<Option<Pin>>,
}

/// Binds a door.
///
/// # Errors
/// [`Error::Misuse`] for options, files and addresses that cannot be used.
pub fn door(options: &DoorOptions) -> Result<Doorway> {
    let ledger = options.ledger.as_ref().map(Ledger::open).transpose()?.map(Arc::new);
    let (access, control_tls, pin) = shown(options)?;
    let allocator = Allocator::bind(AllocatorOptions {
        listen: options.listen.clone(),
        websocket: browsers(options.websocket.as_deref(), &options.origins)?,
        control: options.control.clone(),
        access,
        control_tls,
        secret: (&options.secret).into(),
        policy: policy(options, ledger.clone())?,
        relay: options.relay,
        queue: options.queue,
        ticket_seconds: options.ticket_seconds,
        metrics: options.metrics.clone(),
    })?;
    Ok(Doorway { allocator, ledger, pin: Mutex::new(pin) })
}

impl Doorway {
    /// Returns the door.
    pub const fn allocator(&self) -> &Allocator {
        &self.allocator
    }

    /// Returns the pin of the fleet's key; `None` in plaintext.
    pub fn pin(&self) -> Option<Pin> {
        *self.pin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the certificates and tokens in the files of `options` in the place of what new clients get. Control
    /// connections and the ledger stay.
    ///
    /// # Errors
    /// [`Error::Misuse`] for files that cannot be used: the door goes on as it was.
    pub fn reload(&self, options: &DoorOptions) -> Result<()> {
        let (access, _, pin) = shown(options)?;
        self.allocator.replace(access, policy(options, self.ledger.clone())?);
        *self.pin.lock().unwrap_or_else(PoisonError::into_inner) = pin;
        Ok(())
    }
}

/// What clients see, what servers see, and the pin.
fn shown(options: &DoorOptions) -> Result<(Access, Option<ServerTls>, Option<Pin>)> {
    let Some(files) = &options.tls else { return Ok((Access::Plaintext, None, None)) };
    if files.makes_key() {
        let why = "the door of a fleet and its servers show the same key: give both the same --key-file, \
                   or the same --certificate and --key";
        return Err(Error::misuse(why));
    }
    let (access, pin) = access(Some(files), None)?;
    let control: Identity = identity(files, None)?;
    Ok((access, Some(ServerTls::new(control, None)?), pin))
}

fn policy(options: &DoorOptions, ledger: Option<Arc<Ledger>>) -> Result<Policy> {
    if ledger.is_none() && options.budget != Budget::default() {
        return Err(Error::misuse("a budget needs a ledger that counts: add --ledger FILE or URL"));
    }
    let tokens = options.tokens.as_deref().map(Tokens::from_file).transpose()?;
    Ok(Policy { tokens: tokens.map(Arc::new), ledger, budget: options.budget })
}
