//! Garbled circuits whose evaluator's outputs carry MACs of the garbler.
//!
//! The garbler holds [`MacKeys`]: Delta, which is that of its correlated OTs, and alpha. The
//! evaluator's bits are committed by these OTs, whose blocks are their labels. What the evaluator
//! computes is an integer `v` with a tag `m = alpha*v + beta mod 2^(k + 40)`; the garbler holds
//! `beta`. An evaluator that names another value mod 2^k with a tag that fits knows alpha.
//!
//! | | |
//! |---|---|
//! | `bits` | bits of the evaluator to tags of the integers that they make |
//! | `ahead` | garbling before the garbler's bits exist |
//! | `batch` | what is public about a garbling |
//! | `garble`, `evaluate` | circuits whose output bits are projected to a value and its tag |
//! | `switched` | projections of bits that count where another bit is 1 |
//! | `wide` | packing of words of more than 64 bits |

mod ahead;
mod batch;
mod bits;
mod evaluate;
mod garble;
mod keys;
mod switched;
mod wide;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use crate::three_halves::GATE_BITS;
pub use ahead::{LaterLabels, evaluate_ahead, garble_ahead, garbler_labels};
pub use batch::TaggedBatch;
pub use bits::{BitTags, tags_of_bits};
pub use evaluate::{EvaluatorShare, evaluate, evaluate_arriving};
pub use garble::{GarblerShare, Weights, garble, garble_weighted};
pub use keys::{ALPHA_BITS, MacKeys};
