//! Linear layers on packed slots, for every order of rotations.
//!
//! | | |
//! |---|---|
//! | In | shares mod p of the input, channel by channel; the server's weights and bias |
//! | Out | shares mod p of `W*x + b`; W*x + b must fit [`Layer::plain_bits`] |
//! | Reveals | to the client: slots masked by uniform R, flooded noise; to the server: ciphertexts |
//! | Security | semi-honest, under RLWE and circular security of rotation keys ([`he::bfv`]) |
//! | Cost | `inputs*(16 + N*K/8)` up, `responses*N*(K1 + K0)/8` down, 2 rounds ([`Layer::cost`]) |
//! | Paper | "GAZELLE" (USENIX Security 2018), "GALA" (NDSS 2021) |
//!
//! The server's computation is written once (`evaluate.rs`) against a trait of operations on
//! ciphertexts (`machine.rs`); [`gazelle`](super::gazelle) and [`gala`](super::gala) choose
//! the order. Operation counts come from that code, run without data. Zero weights are
//! multiplied like any other: messages and work depend on the plan only. Every slot of a
//! response is masked, those without a result too.

pub(in crate::linear) mod choose;
mod client;
mod encode;
mod encrypted;
pub(in crate::linear) mod evaluate;
mod grid;
mod keys;
mod layer;
pub(in crate::linear) mod machine;
mod measure;
mod parameters;
pub(in crate::linear) mod plan;
mod server;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
mod weights;

pub use super::transport::Worker;
pub use client::client;
pub use keys::ServerKeys;
pub use layer::{Layer, Protocol};
pub use machine::Operations;
pub use measure::Measurement;
pub use server::{Server, server};
pub use weights::ServerWeights;
