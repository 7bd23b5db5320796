//! What functions run on, by the options of a step: oblivious transfer, or garbled circuits.

use graph::Graph;
use mpc::compare::Radix;

use crate::plan::options::{Function, StepOptions};

/// Garbled circuits.
pub(super) struct Circuits;

/// Digits of comparisons, where they are chosen.
pub(super) fn digits_of(options: StepOptions) -> Option<Radix> {
    match options.function {
        Some(Function::Digits(radix)) => Some(radix),
        _ => None,
    }
}

/// Circuits, or digits of comparisons by transfers, where those are chosen.
pub(super) fn garbled(
    graph: &Graph,
    options: StepOptions,
) -> std::result::Result<Option<Radix>, Circuits> {
    match (options.function, graph.nonlinear) {
        (Some(Function::Circuits), _) | (None, graph::Nonlinear::Gc) => Err(Circuits),
        _ => Ok(digits_of(options)),
    }
}
