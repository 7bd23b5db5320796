//! Garbled circuits without a network: boolean circuits on words of wires, garbling
//! of many instances at a time (half-gates, and three halves for circuits with tagged outputs), and outputs as
//! additive shares.
//!
//! A [`Builder`] makes a [`Circuit`], once per shape; a [`Batch`] is that circuit for a
//! number of instances. The garbler turns a batch into tables ([`Garbler::garble`]), the
//! evaluator turns tables and labels into its shares ([`evaluate()`]).

pub mod batch;
pub mod circuit;
pub mod evaluate;
pub mod garble;
pub mod ring_share;
pub mod tables;
pub mod tagged;
pub mod words;

mod gates;
mod liveness;
mod products;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod three_halves;

pub use batch::Batch;
pub use circuit::{Builder, Circuit, Wire, Word};
pub use evaluate::evaluate;
pub use garble::{Garbler, Garbling};
pub use ring_share::Ring;
pub use tables::Tables;
