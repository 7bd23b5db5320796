//! Linear layers: one module per protocol.

pub mod coefficient;
