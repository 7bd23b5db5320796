//! Protocols on shared bits: comparison, signs, circuits of AND gates, and the change from
//! shared bits to additive shares.

pub mod b2a;
pub mod compare;
pub mod gmw;
pub(crate) mod radix;
pub mod sign;
pub(crate) mod triples;
pub(crate) mod wrap;
