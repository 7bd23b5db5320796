//! Oblivious transfer between two semi-honest parties; base OTs and the extensions stand parties that
//! send anything.
//!
//! A *correlation* is a block `q` of the sender and a pair `(c, t)` of the
//! receiver with `t = q xor c*Delta`. [`cot`] makes them (base OTs over
//! Ristretto, on wish with ML-KEM too, then SoftSpoken or Ferret extension), [`one_of_n`] spends them on private
//! table lookups, `ideal` deals them in tests.

pub mod audit;
pub mod block;
pub mod cot;
pub mod filling;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod gates;
#[cfg(any(test, feature = "testing"))]
pub mod ideal;
pub mod job;
pub mod keystream;
#[cfg(any(test, feature = "testing"))]
pub mod measure;
pub mod one_of_n;
pub mod rot;
pub mod session;
pub mod three_halves;

mod base;
mod hash;
mod simd;
#[cfg(test)]
mod tests;

pub use base::hybrid::BaseOts;
pub use cot::batch::{ReceiverBatch, SenderBatch};
pub use cot::both::{setup_cost as kept_setup_cost, setup_costs};
pub use cot::schedule::{CorrelationCounts, Schedule, Source, Sourcing};
pub use cot::softspoken::Field;
pub use cot::{
    Begun, CotReceiver, CotSender, Kept, Setup, setup_both, setup_both_cost, setup_cost,
};
pub use job::{Entry, Job};
pub use keystream::Keystream;
pub use one_of_n::opened::{Asked, Offered, ask, offer};
pub use one_of_n::{Choices, Chooser, Masked, Table, choose, respond};
pub use rot::{Column, ReceiverPads, SenderPads};
pub use session::SessionId;
