//! Two-party protocols on additive shares. Every protocol states what goes in,
//! what comes out, what is revealed and what it costs; the party that runs it is
//! told by its [`wire::Channel`].

pub mod arithmetic;
pub mod auth;
pub mod boolean;
mod bytes;
pub mod checked;
pub mod correlations;
mod defect;
mod estimate;
#[cfg(test)]
mod functionality;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod garbled;
#[cfg(test)]
mod ladder;
pub mod linear;
pub mod nonlinear;
pub mod open;
pub mod parallel;
mod planner;
pub mod protocol;
pub mod share;
#[cfg(test)]
mod testing;
pub mod transformer;
pub mod trees;
mod turns;
pub mod work;

pub use arithmetic::{dot, extend, multiply, prime, reduce, square, truncate};
pub use boolean::compare;
pub use correlations::{Correlations, Demand, Pads};
pub use nonlinear::{argmax, clip, comet, leaky_relu, lookup, maximum, relu, sign, softmax};
pub use protocol::Protocol;
pub use share::Share;
