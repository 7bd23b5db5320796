//! Many servers behind one address: the door gives each client a ticket for a server, or passes it on.

use std::time::Duration;

pub(crate) mod allocator;
mod books;
mod choice;
pub(crate) mod dial;
mod guest;
mod hall;
pub(crate) mod member;
pub(crate) mod membership;
mod merge;
pub(crate) mod options;
mod queue;
mod relay;
mod roster;
pub(crate) mod secret;
mod staff;
pub(crate) mod talk;
pub(crate) mod ticket;
mod voucher;
mod watch;

/// How long inputs are kept aside for a session that waits, from each time that this is said.
const EXTENDED: Duration = Duration::from_secs(120);
