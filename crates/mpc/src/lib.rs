//! Two-party protocols on additive shares. Every protocol states what goes in,
//! what comes out, what is revealed and what it costs; the party that runs it is
//! told by its [`wire::Channel`].

pub mod argmax;
pub mod arithmetic;
pub mod circuit;
pub mod clip;
pub mod comet;
pub mod compare;
pub mod dot;
pub mod effort;
pub mod extend;
#[cfg(test)]
mod functionality;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod garbled;
mod inside;
#[cfg(test)]
mod ladder;
pub mod linear;
pub mod lookup;
pub mod maximum;
pub mod multiply;
pub mod open;
pub mod pads;
mod parallel;
mod planner;
pub mod prime;
mod product;
pub mod protocol;
pub mod relu;
pub mod share;
pub mod sign;
pub mod slope;
pub mod softmax;
pub mod square;
pub mod switch;
#[cfg(test)]
mod testing;
pub mod transformer;
mod triples;
pub mod truncate;
mod wrap;

pub use effort::{Effort, Kernel};
pub use pads::{Need, Pads};
pub use protocol::Protocol;
pub use share::Share;
