//! Linear layers on packed slots, for every order of rotations.
//!
//! The server's computation is written once ([`evaluate`]) against a trait of operations
//! on ciphertexts ([`machine`]); [`gazelle`](super::gazelle) and [`gala`](super::gala)
//! choose the order. Operation counts come from that code, run without data.

mod choose;
mod encode;
mod evaluate;
mod grid;
mod layer;
mod machine;
mod modular;
mod plan;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;

pub(in crate::linear) use choose::{Quotients, fewest_ciphertexts};
pub(in crate::linear) use evaluate::operations;
pub use layer::{Layer, Protocol};
pub use machine::Operations;
pub(in crate::linear) use plan::{Plan, Sequence};
