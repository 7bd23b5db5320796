//! Convolution and matrix product under coefficient-packed RLWE.
//!
//! | | |
//! |---|---|
//! | In | shares of one or several inputs `x` mod 2^P or wider; the server's weights and bias; shares of an addend |
//! | Out | stochastic: shares mod 2^out of `(W*x + b + m*addend) / 2^shift`, off by less than [`noise::stochastic_error`](he::rlwe::noise::stochastic_error); exact: shares mod 2^(P+4) of `16*(W*x + b + m*addend) + e`, 0 < e < 16 |
//! | Reveals | to the client: phases masked by uniform R; to the server: ciphertexts |
//! | Security | semi-honest, under RLWE; the functionality is a linear map of the client's perturbed input plus weight-independent noise (ENGINE section 2) |
//! | Cost | `inputs*(16 + N*K/8)` up, `responses*N*K'/8 + outputs*K'/8` down, 2 rounds ([`Layer::cost`]) |
//! | Paper | Huang, Lu, Hong, Ding, "Cheetah" (USENIX Security 2022), sections 3 and 4 |
//!
//! P is `out + shift`: a result that fits `out` bits has an accumulator that fits P.
//!
//! Bias and the server's part of the addend go into the mask: R is uniform, so R
//! minus anything is. The client adds its part of the addend to the phase before
//! it rounds; when K' < P that adds less than 2^-8 to the rounding error.
//! Zero weights are multiplied like any other: messages and work depend on the
//! plan only.

mod answers;
pub mod checked;
mod clear;
mod client;
mod folded;
mod known;
mod layer;
mod layouts;
mod narrow;
mod packing;
mod preprocess;
mod product;
mod products;
mod server;
mod shares;
mod sooner;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
pub(super) mod tests;
mod tile;

pub use client::client;
pub use folded::MOST_FOLDINGS;
pub use layer::{Layer, MOST_PACKINGS};
pub use preprocess::{ClientAsked, PreprocessedClient, PreprocessedServer, ServerAsked};
pub use product::{ServerWeights, transform_bytes, transforms_soon};
pub use server::server;
pub use sooner::{receive_answers, send_sooner};

pub use crate::linear::transport::{ServerKeys, SharedKeys, Worker};
