//! Suite `ufo`: linear layers by transfers that choose by the bits of low-bit weights, 3x3
//! convolutions in the Winograd domain where the model has them there; the rest as in the
//! default suite.

use graph::{Graph, Linear, ops};
use wire::{Error, Result};

use super::auto;
use super::ending::last;
use super::node_context::NodeContext;
use super::ot_layers::{positions, tiles};
use super::refusal::at;
use super::siblings::Siblings;
use super::suite::{NodePlanner, Suite};
use crate::linear::ot_matmul::OtLayer;
use crate::plan::options::OptionsByStep;
use crate::plan::settings::Settings;
use crate::step::{Action, Step};

/// The suite.
pub(super) static SUITE: Suite = Suite {
    name: "ufo",
    summary: "linear layers by oblivious transfer on weights of few bits, Winograd tiles",
    steps,
    nodes: Some(NodePlanner { action, packings: |_, _, _| Ok(Vec::new()) }),
    ot_products: true,
    ..Suite::PLAIN
};

/// Most pieces of a plan that clients send, and most OTs: pricing a plan takes time for
/// each, and a client prices the plan of a server it does not trust.
const MOST_PIECES: usize = 1 << 21;
const MOST_OTS: usize = 1 << 30;

pub(super) fn steps(
    graph: &Graph,
    settings: Settings,
    choices: &OptionsByStep,
) -> Result<Vec<Step>> {
    let mut steps = of_nodes(graph, settings, choices)?;
    steps.extend(last(graph, settings, choices.of(graph.nodes.len()))?);
    Ok(steps)
}

/// The steps of all nodes.
pub(super) fn of_nodes(
    graph: &Graph,
    settings: Settings,
    choices: &OptionsByStep,
) -> Result<Vec<Step>> {
    let mut steps = Vec::with_capacity(graph.nodes.len() + 2);
    let (mut pieces, mut ots) = (0usize, 0usize);
    let siblings = Siblings::of(graph);
    for (index, node) in graph.nodes.iter().enumerate() {
        let (batch, options) = (settings.batch(), choices.beside(index, siblings.host(index)));
        let cx = NodeContext { graph, node, batch, options, joined: 0, extended: None };
        let step = siblings.step(index, &cx, action)?;
        if let Action::Linear(layer) = &step.action
            && let Some(layer) = layer.downcast::<OtLayer>()
        {
            pieces = pieces.saturating_add(layer.layer.product().pieces());
            ots = ots.saturating_add(layer.layer.product().ots());
        }
        if pieces > MOST_PIECES || ots > MOST_OTS {
            let why = format!("up to it the plan takes more than {MOST_OTS} oblivious transfers");
            return Err(at(&node.name, Error::misuse(why)));
        }
        steps.push(step);
    }
    Ok(steps)
}

pub(super) fn action(cx: &NodeContext<'_>) -> Result<Action> {
    let (op, out_bits, batch) = (&cx.node.op, cx.out_bits(), cx.batch);
    let is_layer = op.is::<Linear>() || op.is::<ops::Winograd>();
    let step = if is_layer && !cx.options.is_none() {
        return Err(Error::misuse("layers of suite ufo have nothing to choose"));
    } else if let Some(linear) = op.get::<Linear>() {
        positions(linear, out_bits, batch)?
    } else if let Some(layer) = op.get::<ops::Winograd>() {
        tiles(layer, out_bits, batch)?
    } else {
        return auto::chosen(cx);
    };
    Ok(Action::linear(step))
}
