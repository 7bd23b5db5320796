//! Oblivious transfer between two semi-honest parties.
//!
//! A *correlation* is a block `q` of the sender and a pair `(c, t)` of the
//! receiver with `t = q xor c*Delta`. [`cot`] makes them (base transfers over
//! Ristretto, then SoftSpoken or Ferret extension), [`transfer`] spends them on private
//! table lookups, `ideal` deals them in tests.

pub mod batch;
pub mod block;
pub mod cot;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod gates;
#[cfg(any(test, feature = "testing"))]
pub mod ideal;
pub mod job;
#[cfg(any(test, feature = "testing"))]
pub mod measure;
pub mod opened;
pub mod pads;
pub mod session;
pub mod stream;
pub mod supply;
pub mod transfer;

mod base;
mod ferret;
mod hash;
mod reckoning;
mod setup;
#[cfg(test)]
mod silent;
mod simd;
mod softspoken;
mod store;
#[cfg(test)]
mod tests;
mod tree;

pub use batch::{ReceiverBatch, SenderBatch};
pub use cot::{CotReceiver, CotSender, setup_both, setup_both_cost, setup_cost};
pub use job::{Entry, Job};
pub use opened::{Asked, Offered, ask, offer};
pub use pads::{Column, ReceiverPads, SenderPads};
pub use session::SessionId;
pub use softspoken::Field;
pub use stream::Stretch;
pub use supply::{Made, Source, Sourcing, Supply};
pub use transfer::{Choices, Chooser, Masked, Table, choose, respond};
