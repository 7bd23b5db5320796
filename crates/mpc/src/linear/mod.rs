//! Linear layers: one module per protocol.

pub mod appended_matmul;
pub mod coefficient;
pub mod falcon;
pub mod gala;
pub mod gazelle;
pub mod lola;
pub mod ot_matmul;
mod residues;
pub mod shared_matmul;
pub mod slots;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod testing;
mod timed;
mod transport;
pub mod winograd;

pub use timed::Timed;
