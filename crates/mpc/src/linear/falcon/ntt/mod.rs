//! FALCON's linear layers with a transform that is linear mod p, and so can be masked.
//!
//! | | |
//! |---|---|
//! | In | shares mod p of the input, channel by channel; the server's weights and bias |
//! | Out | shares mod p of `W*x + b`; W*x + b must fit [`Layer::plain_bits`] |
//! | Reveals | to the client: slots masked by uniform R, flooded noise; to the server: ciphertexts |
//! | Security | semi-honest, under RLWE ([`he::bfv`]); responses flooded by 40 to 60 bits |
//! | Cost | `inputs*(16 + N*K/8)` up, `responses*N*(K1 + K0)/8` down, 2 rounds ([`Layer::cost`]) |
//! | Paper | Li, Xue, Zhu, Ding, Gao, Wei, Wan, "FALCON" (arXiv 1811.08257), sections 5.1, 5.2 and 5.4 |
//!
//! The client encrypts the transform of every channel of its share, the server multiplies it by
//! the transform of its filters, slot by slot, and adds up the ciphertexts. Nothing is rotated:
//! channels that share a ciphertext are added by the client, after decryption. The transform
//! is the cyclic one over the integers mod p in two dimensions. It is exact, and uniform masks
//! of its values are uniform masks of the result, which is not so for the complex one of the
//! paper ([`falcon`](super)). A matrix product is a filter as large as its input.
//!
//! What the client does and sees depends on shapes, stride and widths ([`Shape`]), not on
//! kernel and padding, but for the length of the transform, which has room for the padding.

mod client;
mod layer;
mod measure;
pub(in crate::linear) mod packing;
pub(in crate::linear) mod parameters;
mod server;
mod shape;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
mod transform;
mod weights;

pub use crate::linear::slots::{Operations, ServerKeys};
pub use crate::linear::transport::Worker;
pub use client::client;
pub use layer::Layer;
pub use measure::Measurement;
pub use server::server;
pub use shape::Shape;
pub use weights::ServerWeights;
