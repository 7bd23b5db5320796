//! A suite chooses one protocol per operator. Nothing else knows suites by name.

mod auto;
mod slots;

use graph::Graph;
use mpc::linear::slots::Protocol;
use wire::{Error, Result};

use crate::plan::Settings;
use crate::steps::Step;

/// Those of this version.
const SUITES: [&str; 3] = ["auto", "gazelle", "gala"];

/// Whether this version has `suite`.
///
/// # Errors
/// [`Error::Misuse`] with those that it has.
pub fn check(suite: &str) -> Result<()> {
    if SUITES.contains(&suite) {
        return Ok(());
    }
    let known = SUITES.join(", ");
    Err(Error::misuse(format!("suite `{suite}` is not in this version; use one of {known}")))
}

/// Whether the linear layers of `suite` always round exactly, whatever was asked for.
pub fn rounds_exactly(suite: &str) -> bool {
    slot_protocol(suite).is_some()
}

/// The slot-packed protocol of a suite that has one.
pub(crate) fn slot_protocol(suite: &str) -> Option<Protocol> {
    match suite {
        "gazelle" => Some(Protocol::Gazelle),
        "gala" => Some(Protocol::Gala),
        _ => None,
    }
}

/// The steps of a graph of one linear node whose input is shared, under the slot-packed
/// suite it is for; `None` when it is for another.
pub(crate) fn slot_layer(graph: &Graph) -> Option<Result<Vec<Step>>> {
    slot_protocol(&graph.suite).map(|protocol| slots::of_nodes(graph, protocol, false))
}

/// The steps of `graph` under the suite it was compiled for.
pub(crate) fn steps(graph: &Graph, settings: Settings) -> Result<Vec<Step>> {
    check(&graph.suite)?;
    match slot_protocol(&graph.suite) {
        Some(protocol) => slots::steps(graph, settings, protocol),
        None => auto::steps(graph, settings),
    }
}
