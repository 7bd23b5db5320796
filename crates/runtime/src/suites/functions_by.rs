//! What functions run on, by the options of a step: oblivious transfer, or garbled circuits.

use graph::Graph;
use mpc::compare::Radix;

use crate::plan::options::{Function, StepOptions};

/// Garbled circuits.
pub(super) struct Circuits;

/// Digits of comparisons, where they are chosen.
pub(super) fn digits_of(choice: StepOptions) -> Option<Radix> {
    match choice.function {
        Some(Function::Digits(radix)) => Some(radix),
        _ => None,
    }
}

/// Circuits, or digits of comparisons by transfers, where those are chosen.
pub(super) fn garbled(
    graph: &Graph,
    choice: StepOptions,
) -> std::result::Result<Option<Radix>, Circuits> {
    match (choice.function, graph.nonlinear) {
        (Some(Function::Circuits), _) | (None, graph::Nonlinear::Gc) => Err(Circuits),
        _ => Ok(digits_of(choice)),
    }
}
