//! Protocols on additive shares: products, selection, truncation, and changes of the ring.

pub mod dot;
pub mod extend;
pub mod multiply;
pub mod mux;
pub mod prime;
pub(crate) mod product;
pub mod square;
pub mod truncate;
