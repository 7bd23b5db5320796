//! FALCON's linear layers as they were published: a research protocol that leaks.
//!
//! | | |
//! |---|---|
//! | In | shares of the input, integers that add up to it; the server's weights and bias |
//! | Out | shares of `W*x + b`, integers whose sum is off by at most [`Layer::error`] |
//! | Reveals | to the client: sums of results and masks that are only [`AcceptLeakage`]'s bits wider than results, with rounding errors that depend on weights |
//! | Security | leaks: every value that the client sees tells two results apart with probability up to 2^-hidden, and a layer has thousands; the server sees ciphertexts only |
//! | Cost | `2*inputs*(16 + N*K/8)` up, `2*responses*N*(K1 + K0)/8` down, 2 rounds ([`Layer::cost`]) |
//! | Paper | Li, Xue, Zhu, Ding, Gao, Wei, Wan, "FALCON" (arXiv 1811.08257), sections 5.1, 5.2 and 5.4 |
//!
//! Real and imaginary parts of the Fourier transforms of all channels, in fixed point, lie in
//! ciphertexts of their own; each is multiplied with both parts of the transforms of the filters.
//!
//! The paper masks with the transform of numbers that are uniform mod p. That does not decrypt: the
//! transform of such numbers wraps around, and what wraps mod p before the transform back is not
//! what wraps after it. What is done here decrypts: masks so small that nothing wraps. They
//! hide what a few bits hide. [`falcon_ntt`](ntt) has the same layers with a
//! transform mod p, where masks are uniform and results exact; this module is there to compare.
//!
//! Floating point is not computed in constant time.

mod check;
mod client;
mod filters;
mod fourier;
mod layer;
mod measure;
pub mod ntt;
mod server;
mod slots;
mod small;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
mod weights;

pub use client::client;
pub use layer::{AcceptLeakage, Layer};
pub use measure::Measurement;
pub use ntt::{Operations, ServerKeys, Worker};
pub use server::server;
pub use small::Small;
pub use weights::ServerWeights;
