//! A suite chooses one protocol per operator. Nothing else knows suites by name.

mod auto;
mod circuits;
mod falcon;
mod garbled;
pub(crate) mod lola;
mod slots;
mod tables;
mod transformer;
mod ufo;

use graph::{Graph, Nonlinear};
use mpc::linear::falcon::AcceptLeakage;
use mpc::linear::slots::Protocol;
use wire::{Error, Result};

use crate::linear::slots::Packing;
use crate::plan::options::{OptionsByStep, StepOptions};
use crate::plan::settings::Settings;
use crate::plan::step::Step;

/// Those of this version.
const SUITES: [&str; 8] =
    ["auto", "gazelle", "gala", "ufo", "lola", "comet", "falcon-ntt", "falcon"];

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

/// Whether a party that `accepted` leakage, or did not, may run `suite`.
///
/// # Errors
/// [`Error::Misuse`] with what leaks, when it may not.
pub fn consent(suite: &str, accepted: bool) -> Result<()> {
    if accepted || !matches!(packing(suite), Some(Packing::Published(_))) {
        return Ok(());
    }
    Err(Error::misuse(format!(
        "suite `{suite}` leaks: masks are a few bits wider than what they mask, so the server \
         learns about inputs and activations, the client about weights; use falcon-ntt, which \
         does not, or --accept-leakage on both sides with data that nobody minds"
    )))
}

/// Whether the linear layers of `suite` always round exactly, whatever was asked for.
pub fn rounds_exactly(suite: &str) -> bool {
    !matches!(packing(suite), None | Some(Packing::Published(_)))
}

/// Whether `suite` keeps the sizes of filters from the client.
pub fn hides_filters(suite: &str) -> bool {
    matches!(packing(suite), Some(Packing::Transformed | Packing::Published(_)))
}

/// Whether `suite` computes all functions by one inverse square root, and has none for GELU
/// and softmax.
pub fn unifies(suite: &str) -> bool {
    suite == "comet"
}

/// Whether models for `suite` are integers that are never rescaled.
pub fn never_rescales(suite: &str) -> bool {
    suite == "lola"
}

/// Whether the linear layers of `suite` are products by transfers.
pub fn transfers(suite: &str) -> bool {
    suite == "ufo"
}

/// How a suite packs slots, if it does.
pub(crate) fn packing(suite: &str) -> Option<Packing> {
    match suite {
        "gazelle" => Some(Packing::Rotated(Protocol::Gazelle)),
        "gala" => Some(Packing::Rotated(Protocol::Gala)),
        "falcon-ntt" => Some(Packing::Transformed),
        "falcon" => Some(Packing::Published(AcceptLeakage::hiding_bits(falcon::MOST_HIDDEN))),
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
    packing(&graph.suite).map(|packing| match packing {
        Packing::Published(_) => Err(falcon::networks_only()),
        _ => slots::of_nodes(graph, packing, false),
    })
}

/// The steps of the nodes of a graph for suite `ufo`, without an end.
pub(crate) fn transfer_nodes(graph: &Graph, settings: Settings) -> Result<Vec<Step>> {
    ufo::of_nodes(graph, settings, &OptionsByStep::default())
}

/// Whether steps of `suite` can be chosen among.
pub(crate) fn chooses(suite: &str) -> bool {
    matches!(suite, "auto" | "ufo" | "comet")
}

/// The step at `index` of the plan for `graph`, run as `choice` says.
///
/// # Errors
/// [`Error::Misuse`] where it cannot be.
pub(crate) fn step(
    graph: &Graph,
    settings: Settings,
    index: usize,
    choice: StepOptions,
) -> Result<Step> {
    let action = match graph.nodes.get(index) {
        Some(node) if transfers(&graph.suite) => ufo::action(graph, node, settings.batch(), choice),
        Some(node) => auto::chosen(graph, node, settings.batch(), choice),
        None => {
            let ending = auto::last(graph, settings, choice)?;
            let step = ending.into_iter().nth(index - graph.nodes.len());
            return step.ok_or_else(|| Error::misuse("a step that the plan does not have"));
        }
    };
    Ok(Step::of_node(graph, index, action?))
}

/// The packings of a linear step of a suite that chooses among them, first the one that
/// everybody takes; none of another step.
///
/// # Errors
/// [`Error::Misuse`] where there is no packing.
pub(crate) fn packings(graph: &Graph, settings: Settings, index: usize) -> Result<Vec<Step>> {
    let Some(node) = graph.nodes.get(index).filter(|_| !transfers(&graph.suite)) else {
        return Ok(Vec::new());
    };
    let actions = auto::packings(graph, node, settings.batch())?.into_iter();
    Ok(actions.map(|action| Step::of_node(graph, index, action)).collect())
}

/// The steps of `graph` under the suite it was compiled for.
///
/// # Errors
/// [`Error::Unsupported`] for a node without a protocol, [`Error::Misuse`] for choices where
/// there are none.
pub(crate) fn steps(
    graph: &Graph,
    settings: Settings,
    choices: &OptionsByStep,
) -> Result<Vec<Step>> {
    check(&graph.suite)?;
    choices.check(graph.nodes.len())?;
    if !choices.is_empty() && !chooses(&graph.suite) {
        return Err(Error::misuse(format!("suite `{}` has nothing to choose", graph.suite)));
    }
    if never_rescales(&graph.suite) {
        return lola::steps(graph, settings);
    }
    if graph.exact.is_some() {
        return Err(Error::misuse("a model that is never rescaled is for suite lola"));
    }
    if transfers(&graph.suite) {
        return ufo::steps(graph, settings, choices);
    }
    match (packing(&graph.suite), graph.nonlinear) {
        (Some(packing), Nonlinear::Gc) => garbled::steps(graph, settings, packing),
        (Some(Packing::Published(_)), Nonlinear::Ot) => Err(falcon::circuits_only()),
        (Some(packing), Nonlinear::Ot) => slots::steps(graph, settings, packing),
        (None, _) => auto::steps(graph, settings, choices),
    }
}
