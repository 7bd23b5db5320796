//! Protocols on shared bits: comparison, carries, and circuits of AND gates.

pub mod compare;
pub mod gmw;
pub(crate) mod radix;
pub(crate) mod table;
pub(crate) mod triples;
pub(crate) mod wrap;
