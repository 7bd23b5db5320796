//! Whole networks of exact integers under encryption: one message each way.
//!
//! | | |
//! |---|---|
//! | In | client: the input, small integers; server: weights and biases |
//! | Out | client: the results, exact; server: nothing |
//! | Reveals | to the server: ciphertexts; to the client: the results, nothing of what is between |
//! | Security | semi-honest, under RLWE and circular security of evaluation keys ([`he::bfv`]) |
//! | Cost | keys once, [`Plan::key_cost`]; a run 2 rounds, [`Plan::cost`] |
//! | Paper | LoLa (arXiv 1812.10659) |
//!
//! Linear layers and squares are evaluated on integers mod several plaintext primes; nothing
//! is rescaled, so only the results must fit their product. Representations and products
//! are those of the paper and one more (`layout.rs`, `product.rs`); a search takes the
//! cheapest (`search.rs`). Both parties derive the plan from public shapes and widths. Zero weights are
//! multiplied like any other. Unlike the paper's, answers are re-randomised, flooded by 40 to 60
//! bits, and masked in every slot without a result.

mod client;
mod evaluate;
mod keys;
mod layout;
mod matrix;
mod message;
mod plan;
mod product;
mod search;
mod server;
mod stage;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
mod weights;

pub use client::{Client, answer_of, request_messages};
pub use evaluate::ServerKeys;
pub use keys::{Seeds, evaluation_keys};
pub use layout::Representation;
pub use message::{Answer, Bodies, Request};
pub use plan::{Layer, Network, Plan, SPARE_BITS};
pub use server::{answer, answer_messages, request_of};
pub use stage::Operations;
pub use weights::{LayerWeights, ServerWeights};
