//! Suites: which protocols the nodes of a graph get. A suite is a value in a file of its own and a
//! line in [`BUILT_IN`]; nothing else knows suites by name.

mod appended;
mod auto;
mod chain;
pub(crate) mod checked;
mod circuits;
mod comet;
mod ending;
mod falcon;
mod falcon_ntt;
mod falcon_published;
mod functions_by;
mod gala;
mod garbled;
mod gazelle;
pub(crate) mod known;
pub(crate) mod likeness;
pub(crate) mod lola;
mod matmul;
mod node_context;
mod operators;
mod ot_layers;
mod packed;
mod products;
mod refusal;
mod registered;
pub(crate) mod siblings;
mod slots;
pub(crate) mod suite;
mod tables;
mod transformer;
mod ufo;

use std::sync::Arc;

use graph::Graph;
use mpc::linear::slots::Protocol;
use wire::{Error, Result};

use crate::linear::slots::Packing;
use crate::plan::options::{OptionsByStep, Products, StepOptions};
use crate::plan::settings::Settings;
use crate::step::Step;
use known::Known;
pub use node_context::{NodeContext, PlanOperator};
pub use registered::register_operator;
use siblings::Siblings;
use suite::Suite;

/// The suites of this version, in the order in which they are compared.
static BUILT_IN: [&Suite; 9] = [
    &auto::SUITE,
    &ufo::SUITE,
    &gala::SUITE,
    &gazelle::SUITE,
    &falcon_ntt::SUITE,
    &comet::SUITE,
    &lola::SUITE,
    &falcon_published::SUITE,
    &checked::SUITE,
];

/// Returns all suites: those of this version, then those that were registered.
pub fn all() -> Vec<&'static Suite> {
    BUILT_IN.into_iter().chain(registered::suites()).collect()
}

/// Makes a suite known for this process. Both parties need it.
///
/// # Errors
/// [`Error::Misuse`] for a name that another suite has.
pub fn register_suite(suite: &'static Suite) -> Result<()> {
    if registered::keep(suite, &BUILT_IN) {
        return Ok(());
    }
    Err(Error::misuse(format!("there is a suite `{}` already", suite.name)))
}

/// The suite of this name.
///
/// # Errors
/// [`Error::Misuse`] with the names that there are.
pub(crate) fn named(name: &str) -> Result<&'static Suite> {
    let all = all();
    let names = || all.iter().map(|suite| suite.name).collect::<Vec<_>>().join(", ");
    let found = all.iter().find(|suite| suite.name == name).copied();
    found.ok_or_else(|| {
        let known = names();
        Error::misuse(format!("suite `{name}` is not in this version; use one of {known}"))
    })
}

/// Whether this version has `suite`.
///
/// # Errors
/// [`Error::Misuse`] with the names that there are.
pub fn check(suite: &str) -> Result<()> {
    named(suite).map(|_| ())
}

/// Whether a party that `accepted` leakage, or did not, may run `suite`.
///
/// # Errors
/// [`Error::Misuse`] with what leaks, when it may not.
pub fn consent(suite: &str, accepted: bool) -> Result<()> {
    match named(suite).ok().and_then(|suite| suite.leaks) {
        Some(what) if !accepted => Err(Error::misuse(format!("suite `{suite}` leaks: {what}"))),
        _ => Ok(()),
    }
}

/// Returns whether the linear layers of `suite` always round exactly, whatever was asked for.
pub fn rounds_exactly(suite: &str) -> bool {
    named(suite).is_ok_and(|suite| suite.rounds_exactly)
}

/// Returns whether `suite` keeps the sizes of filters from the client.
pub fn hides_filters(suite: &str) -> bool {
    named(suite).is_ok_and(|suite| suite.hides_filters)
}

/// Returns whether `suite` computes all functions by one inverse square root, and has none for GELU
/// and softmax.
pub fn unifies(suite: &str) -> bool {
    named(suite).is_ok_and(|suite| suite.unifies)
}

/// Returns whether models for `suite` are integers that are never rescaled.
pub fn never_rescales(suite: &str) -> bool {
    named(suite).is_ok_and(|suite| suite.never_rescales)
}

/// Returns whether the linear layers of `suite` are products by oblivious transfer.
pub fn ot_products(suite: &str) -> bool {
    named(suite).is_ok_and(|suite| suite.ot_products)
}

/// Returns whether `suite` is secure against a client that sends anything.
pub fn secure_against_client(suite: &str) -> bool {
    named(suite).is_ok_and(|suite| suite.secure_against_client)
}

/// Whether the first layer of a model for `suite` is asked for before anything else of a run, where it can be.
pub(crate) fn asks_sooner(suite: &str) -> bool {
    named(suite).is_ok_and(|suite| suite.asks_sooner)
}

/// Whether the planner may give shares of models for `suite` other widths.
pub(crate) fn plans_widths(suite: &str) -> bool {
    named(suite).is_ok_and(|suite| suite.plans_widths)
}

/// How a suite packs slots, if it does.
pub(crate) fn packing(suite: &str) -> Option<Packing> {
    named(suite).ok().and_then(Suite::packing)
}

/// Returns the slot-packed protocol of a suite that has one.
pub fn slot_protocol(suite: &str) -> Option<Protocol> {
    match packing(suite) {
        Some(Packing::Rotated(protocol)) => Some(protocol),
        _ => None,
    }
}

/// Returns the steps of a graph of one linear node whose input is shared, under the slot-packed
/// suite it is for; `None` when it is for another.
pub fn slot_layer(graph: &Graph) -> Option<Result<Vec<Step>>> {
    packing(&graph.suite).map(|packing| match packing {
        Packing::Published(_) => Err(falcon::networks_only()),
        _ => slots::of_nodes(graph, packing, false),
    })
}

/// Returns the steps of the nodes of a graph for suite `ufo`, without an end.
pub fn ot_nodes(graph: &Graph, settings: Settings) -> Result<Vec<Step>> {
    ufo::of_nodes(graph, settings, &OptionsByStep::default())
}

/// Whether steps of `suite` can be chosen among.
pub(crate) fn chooses(suite: &str) -> bool {
    named(suite).is_ok_and(|suite| suite.nodes.is_some())
}

/// The step at `index` of the plan for `graph`, run as `options` say. `siblings` are the graph's.
///
/// # Errors
/// [`Error::Misuse`] where it cannot be.
pub(crate) fn step(
    (graph, siblings): (&Graph, &Siblings),
    settings: Settings,
    index: usize,
    options: StepOptions,
) -> Result<Step> {
    let Some(node) = graph.nodes.get(index) else {
        let ending = ending::last(graph, settings, options)?;
        let step = ending.into_iter().nth(index - graph.nodes.len());
        return step.ok_or_else(|| Error::misuse("a step that the plan does not have"));
    };
    let nodes = named(&graph.suite)?.nodes.unwrap_or(auto::NODES);
    let cx =
        NodeContext { graph, node, batch: settings.batch(), options, joined: 0, extended: None };
    siblings.step(index, &cx, nodes.action)
}

/// [`step`] of a node, shared where it is `known` of plans of the same graph.
///
/// # Errors
/// The errors of [`step`].
pub(crate) fn step_among(
    known: &Known,
    planned: (&Graph, &Siblings),
    settings: Settings,
    index: usize,
    options: StepOptions,
) -> Result<Arc<Step>> {
    known.step((index, settings.batch(), options), || step(planned, settings, index, options))
}

/// The packings of a linear step of a suite that chooses among them, for so many runs together, first
/// the default; none of another step.
///
/// # Errors
/// [`Error::Misuse`] where there is no packing.
pub(crate) fn packings(
    graph: &Graph,
    settings: Settings,
    (index, runs): (usize, usize),
) -> Result<Vec<(Products, Step)>> {
    let nodes = named(&graph.suite)?.nodes;
    let (Some(node), Some(nodes)) = (graph.nodes.get(index), nodes) else {
        return Ok(Vec::new());
    };
    let actions = (nodes.packings)(graph, node, (settings.batch(), runs))?.into_iter();
    Ok(actions.map(|(how, action)| (how, Step::of_node(graph, index, action))).collect())
}

/// Returns the steps of `graph` as the default suite runs them, each node under the options that
/// `options` gives for it: what most suites of one's own are made of.
///
/// # Errors
/// [`Error::Unsupported`] naming the node that no protocol fits.
pub fn steps_by_node(
    graph: &Graph,
    settings: Settings,
    options: impl Fn(&graph::Node) -> StepOptions,
) -> Result<Vec<Step>> {
    let mut chosen = OptionsByStep::default();
    let siblings = Siblings::of(graph);
    for (index, node) in graph.nodes.iter().enumerate() {
        if siblings.host(index).is_some() {
            continue;
        }
        let wanted = options(node);
        let runs = (auto::NODES.action)(&NodeContext {
            graph,
            node,
            batch: settings.batch(),
            options: wanted,
            joined: 0,
            extended: None,
        })
        .is_ok();
        chosen.set(index, if runs { wanted } else { StepOptions::default() });
    }
    auto::steps(graph, settings, &chosen)
}

/// The steps of `graph` under the suite it was compiled for. Those of nodes that are `known` of plans of the same graph are
/// shared where suite `auto` chooses each.
///
/// # Errors
/// [`Error::Unsupported`] for a node without a protocol, [`Error::Misuse`] for options where
/// there are none.
pub(crate) fn steps_among(
    known: &Known,
    graph: &Graph,
    settings: Settings,
    options: &OptionsByStep,
) -> Result<Vec<Arc<Step>>> {
    let suite = suited(graph, options)?;
    if suite.name == auto::SUITE.name {
        return auto::steps_among(known, graph, settings, options);
    }
    let steps = (suite.steps)(graph, settings, options)?;
    Ok(steps.into_iter().map(Arc::new).collect())
}

/// The suite of a graph, which has such options.
fn suited(graph: &Graph, options: &OptionsByStep) -> Result<&'static Suite> {
    let suite = named(&graph.suite)?;
    options.check(graph.nodes.len())?;
    if !options.is_empty() && suite.nodes.is_none() {
        return Err(Error::misuse(format!("suite `{}` has nothing to choose", graph.suite)));
    }
    if graph.exact.is_some() && !suite.never_rescales {
        return Err(Error::misuse("a model that is never rescaled is for suite lola"));
    }
    Ok(suite)
}
