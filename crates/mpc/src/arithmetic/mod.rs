//! Protocols on additive shares: products, selection, truncation, changes of the ring, and
//! shared bits as numbers.

pub mod b2a;
mod digit;
pub mod dot;
pub mod extend;
pub(crate) mod factors;
pub mod multiply;
pub mod mux;
pub(crate) mod planes;
pub mod prime;
pub(crate) mod product;
mod puncture;
pub mod reduce;
pub(crate) mod rescale;
pub(crate) mod rows;
pub mod square;
pub mod truncate;
pub(crate) mod widen;
