//! The default suite: coefficient-packed RLWE for linear layers, oblivious transfer for the
//! rest, both planned by cost (docs/concepts/planner.md).

use std::sync::Arc;

use graph::{Embedding, Graph, Linear, MatMul, ops};
use mpc::compare::Radix;
use wire::{Error, Result};

use super::ending::last;
use super::functions_by::{Circuits, garbled};
use super::known::Known;
use super::node_context::NodeContext;
use super::operators::packings;
use super::refusal::at;
use super::registered::action;
use super::siblings::Siblings;
use super::suite::{NodePlanner, Suite};
use super::{circuits, tables, transformer};
use crate::plan::options::{Function, OptionsByStep, StepOptions};
use crate::plan::settings::Settings;
use crate::step::{Action, Step};

/// The suite.
pub(super) static SUITE: Suite = Suite {
    name: "auto",
    summary: "every layer by cost: coefficient-packed RLWE, oblivious transfer, circuits, tables",
    steps,
    nodes: Some(NODES),
    plans_widths: true,
    asks_sooner: true,
    ..Suite::PLAIN
};

/// How its nodes are planned one by one.
pub(super) const NODES: NodePlanner = NodePlanner { action: chosen, packings };

/// Digits of the comparisons beside circuits of rows where none are chosen: at the widths of
/// encoders six bits take the fewest rounds, and of those the fewest bytes.
const BESIDE: Radix = Radix::R64;

/// Most ciphertexts of a plan, both ways: pricing a plan takes time for each, and a
/// client prices the plan of a server it does not trust.
const MOST_CIPHERTEXTS: usize = 1 << 20;

/// The steps of a whole graph, with `choices` for some of them.
///
/// # Errors
/// [`Error::Unsupported`] naming the node that no protocol fits.
pub(crate) fn steps(
    graph: &Graph,
    settings: Settings,
    choices: &OptionsByStep,
) -> Result<Vec<Step>> {
    let known = Known::default();
    let steps = steps_among(&known, graph, settings, choices)?;
    drop(known);
    let one = |step| Arc::into_inner(step).ok_or_else(|| Error::internal("a step of two plans"));
    steps.into_iter().map(one).collect()
}

/// [`steps`], of which those of nodes that are `known` are shared.
///
/// # Errors
/// The errors of [`steps`].
pub(super) fn steps_among(
    known: &Known,
    graph: &Graph,
    settings: Settings,
    choices: &OptionsByStep,
) -> Result<Vec<Arc<Step>>> {
    let mut steps = Vec::with_capacity(graph.nodes.len() + 2);
    let mut ciphertexts = 0usize;
    let siblings = Siblings::of(graph);
    for (index, node) in graph.nodes.iter().enumerate() {
        let (batch, options) = (settings.batch(), choices.beside(index, siblings.host(index)));
        let cx = NodeContext { graph, node, batch, options, joined: 0, extended: None };
        let step = known.step((index, batch, options), || siblings.step(index, &cx, chosen))?;
        if let Action::Linear(layer) = &step.action {
            ciphertexts = ciphertexts.saturating_add(layer.ciphertexts());
        }
        if ciphertexts > MOST_CIPHERTEXTS {
            let why = format!("up to it the plan takes more than {MOST_CIPHERTEXTS} ciphertexts");
            return Err(at(&node.name, Error::misuse(why)));
        }
        steps.push(step);
    }
    let end = last(graph, settings, choices.of(graph.nodes.len()))?;
    steps.extend(end.into_iter().map(Arc::new));
    Ok(steps)
}

/// What runs a node, as was chosen.
///
/// # Errors
/// [`Error::Misuse`] for options that it does not have.
pub(super) fn chosen(cx: &NodeContext<'_>) -> Result<Action> {
    let NodeContext { node, options, .. } = *cx;
    let linear = node.op.is::<Linear>() || node.op.is::<Embedding>() || node.op.is::<ops::Trees>();
    let multiplies = linear || node.op.is::<MatMul>();
    let prepares = linear || node.op.is::<MatMul>() && options.runs.is_some();
    if !multiplies && options.products.is_some() || !prepares && options.preprocessed {
        return Err(Error::misuse("an option for linear layers"));
    }
    if options.turns && !transformer::goes_in_turns(cx) {
        return Err(Error::misuse("turns of what is begun by one party only"));
    }
    if options.shallow && !transformer::is_shallow(cx) {
        return Err(Error::misuse("shallow tables of what has none in turns"));
    }
    if options.near && !(options.shallow && node.op.is::<ops::Softmax>()) {
        return Err(Error::misuse("near parties of what is no shallow softmax"));
    }
    match options.function {
        Some(Function::Table) => return tables::action(cx),
        Some(Function::Tables(radix)) => return transformer::by_transfers(cx, radix),
        Some(Function::Rows(radix)) => return circuits::of_rows(cx, radix),
        Some(Function::Stages(_)) if !node.op.is::<ops::Trees>() => {
            return Err(Error::misuse("stages of what are no trees"));
        }
        Some(Function::OnMask) if !node.op.is::<ops::Relu>() && !node.op.is::<ops::Gelu>() => {
            return Err(Error::misuse("a function on a mask that is neither ReLU nor GELU"));
        }
        _ => {}
    }
    match garbled(cx.graph, options) {
        Ok(_) => action(cx),
        Err(Circuits) => {
            let plain = NodeContext { options: StepOptions { function: None, ..options }, ..*cx };
            match (circuits::action(&plain)?, options.function) {
                (Some(action), _) => Ok(action),
                (None, None) => action(&plain),
                (None, Some(_)) => circuits::of_rows(cx, BESIDE),
            }
        }
    }
}
