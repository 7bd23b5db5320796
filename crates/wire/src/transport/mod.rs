//! What carries bytes between the parties, and links that are imitated.

pub(crate) mod authority;
pub(crate) mod certificate;
pub(crate) mod following;
pub(crate) mod incoming;
mod key_file;
pub(crate) mod link;
pub(crate) mod memory;
pub(crate) mod pin;
pub(crate) mod proxy;
mod revocation;
pub(crate) mod tcp;
pub(crate) mod tls;
