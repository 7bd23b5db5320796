//! Linear layers: one module per protocol.

pub mod coefficient;
mod exchange;
pub mod falcon;
pub mod falcon_ntt;
pub mod gala;
pub mod gazelle;
pub mod lola;
pub mod oblivious;
pub mod shared;
pub mod slots;
mod timed;
pub mod winograd;

pub use timed::Timed;
