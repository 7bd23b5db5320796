//! A suite chooses one protocol per operator. Nothing else knows suites by name.

mod auto;
mod garbled;
mod slots;

use graph::{Graph, Nonlinear};
use mpc::linear::slots::Protocol;
use wire::{Error, Result};

use crate::packed::Packing;
use crate::plan::Settings;
use crate::steps::Step;

/// Those of this version.
const SUITES: [&str; 4] = ["auto", "gazelle", "gala", "falcon-ntt"];

/// Whether this version has `suite`.
///
/// # Errors
/// [`Error::Misuse`] with those that it has.
pub fn check(suite: &str) -> Result<()> {
    if SUITES.contains(&suite) {
        return Ok(());
    }
    let known = SUITES.join(", ");
    if suite == "falcon" {
        return Err(Error::misuse(
            "suite `falcon` follows its paper, whose masks leak, and runs single layers only \
             (`tacit reproduce falcon-table2`); networks run under suite falcon-ntt",
        ));
    }
    Err(Error::misuse(format!("suite `{suite}` is not in this version; use one of {known}")))
}

/// Whether the linear layers of `suite` always round exactly, whatever was asked for.
pub fn rounds_exactly(suite: &str) -> bool {
    packing(suite).is_some()
}

/// Whether `suite` keeps the sizes of filters from the client.
pub fn hides_filters(suite: &str) -> bool {
    packing(suite) == Some(Packing::Transformed)
}

/// How a suite packs slots, if it does.
pub(crate) fn packing(suite: &str) -> Option<Packing> {
    match suite {
        "gazelle" => Some(Packing::Rotated(Protocol::Gazelle)),
        "gala" => Some(Packing::Rotated(Protocol::Gala)),
        "falcon-ntt" => Some(Packing::Transformed),
        _ => None,
    }
}

/// The slot-packed protocol of a suite that has one.
pub(crate) fn slot_protocol(suite: &str) -> Option<Protocol> {
    match packing(suite) {
        Some(Packing::Rotated(protocol)) => Some(protocol),
        _ => None,
    }
}

/// The steps of a graph of one linear node whose input is shared, under the slot-packed
/// suite it is for; `None` when it is for another.
pub(crate) fn slot_layer(graph: &Graph) -> Option<Result<Vec<Step>>> {
    packing(&graph.suite).map(|packing| slots::of_nodes(graph, packing, false))
}

/// The steps of `graph` under the suite it was compiled for.
pub(crate) fn steps(graph: &Graph, settings: Settings) -> Result<Vec<Step>> {
    check(&graph.suite)?;
    match (packing(&graph.suite), graph.nonlinear) {
        (Some(packing), Nonlinear::Gc) => garbled::steps(graph, settings, packing),
        (Some(packing), Nonlinear::Ot) => slots::steps(graph, settings, packing),
        (None, _) => auto::steps(graph, settings),
    }
}
