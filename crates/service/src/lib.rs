//! The server as operators run it: who is admitted and when, what each client may ask, and what
//! an operator sees of it. The protocols are in the crates below.
//!
//! [`Server`] admits clients and runs their sessions, and shows what it does. [`Client`] says who a client is, [`Tokens`]
//! is the file by which it is known, [`Ledger`]
//! counts its inputs and refuses those beyond its [`Budget`].

mod door;
mod error;
mod event;
mod fleet;
mod gate;
mod identity;
mod joined;
mod kept;
mod ledger;
mod limits;
mod links;
mod lock;
mod options;
mod pace;
mod place;
mod policy;
mod refused;
mod server;
mod shared;
mod telling;
mod tokens;
mod visit;
mod watch;

pub use error::{Error, Result};
pub use event::{End, Event};
pub use fleet::allocator::Allocator;
pub use fleet::membership::Membership;
pub use fleet::options::{AllocatorOptions, Relay};
pub use identity::Client;
pub use ledger::{Budget, Charged, Chosen, Ledger, Reservation, Row, ledger_name};
pub use limits::{Limits, free_memory, raise_descriptors};
pub use options::{Access, Options, WebSocketOptions};
pub use policy::Policy;
pub use refused::{Limit, Refused};
pub use server::Server;
pub use tokens::{NewToken, TokenEntry, Tokens, generate_token};
pub use visit::Model;
pub use watch::live::Session;
