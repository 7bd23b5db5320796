//! Whole networks against a client that sends anything: linear layers and what follows each in a garbled
//! circuit, with one check before the result is opened.
//!
//! | | |
//! |---|---|
//! | In | correlated OTs whose sender is the server; the client's input; the server's weights |
//! | Out | the client: the results, exactly the interpreter's; the server: nothing |
//! | Reveals | the results; to a server that sends anything whether a predicate on the client's values holds |
//! | Security | [`crate::auth`], and docs/protocols/malicious-client.md for what is proven and what is not |
//! | Cost | [`Network::cost`]; 5 messages each way of changing direction, and 4 a layer |
//! | Paper | Lehmkuhl, Mishra, Srinivasan, Popa, Muse, USENIX Security 2021, and Chandran, Gupta, Obbattu, Shah, SIMC, USENIX Security 2022 (the setting) |
//!
//! A key serves one run. The client commits to it, to its input and to what covers the check; the server
//! answers with all their tags. Each layer takes ciphertexts, responses, commitments to the phases, and
//! their tags with the garbled tables. Results of the last circuits are shares like those of all others,
//! and the server's is sent when the check has passed.

mod client;
mod conduct;
mod cost;
mod network;
mod operand;
mod server;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use client::client;
#[cfg(any(test, feature = "testing"))]
pub use client::client_as;
pub use conduct::{Conduct, Honest};
pub use network::{Block, Entered, Network, Shown};
pub use operand::Operand;
pub use server::server;
