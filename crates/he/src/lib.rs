//! Lattice encryption for linear layers. Pure computation: nothing here knows
//! of a network, and every value that crosses one is handed over as integers.

pub mod bfv;
mod error;
pub mod rlwe;
mod simd;

pub use error::{Error, Result};
