//! Sessions between two parties: handshake, keys, runs, the server's listener.

pub(crate) mod client;
pub(crate) mod course;
pub(crate) mod encoded;
pub(crate) mod estimate;
pub(crate) mod expected;
pub(crate) mod handshake;
pub(crate) mod input;
pub(crate) mod kept;
pub(crate) mod known;
pub(crate) mod open;
pub(crate) mod opening;
pub(crate) mod probe;
mod run_costs;
pub(crate) mod server;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
