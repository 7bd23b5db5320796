//! Linear layers: one module per protocol.

pub mod coefficient;
pub mod gala;
pub mod gazelle;
pub mod slots;
