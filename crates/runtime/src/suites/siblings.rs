//! Nodes that run as one step: the same function of each element, of tensors that are all there before
//! the first of them runs. One run of the protocol takes the rounds of one.

use std::collections::BTreeMap;

use graph::{Graph, Node, ops};
use wire::{Error, Result};

use super::node_context::{NodeContext, PlanOperator};
use super::refusal::at;
use crate::step::composed::Also;
use crate::step::local::Joined;
use crate::step::{Action, Step};

/// Nodes behind a node among which its siblings are looked for.
const NEAR: usize = 16;

/// Which nodes of a graph run with an earlier one: by the node, its host.
#[derive(Debug, Default)]
pub(crate) struct Siblings(BTreeMap<usize, usize>);

/// Whether a node computes a function of each element of one tensor.
fn by_element(node: &Node) -> bool {
    let op = &node.op;
    let known = op.is::<ops::Relu>() || op.is::<ops::Extend>() || op.is::<ops::Lookup>();
    known && node.inputs.len() == 1
}

/// Whether the protocol of one node is that of the other, on other elements.
fn alike(graph: &Graph, one: &Node, other: &Node) -> bool {
    let widths = |node: &Node| {
        let [from, to] = [graph.input_of(node, 0), graph.output_of(node)].map(|t| &t.format);
        (from.bits, from.signed, to.bits, to.signed)
    };
    by_element(other) && widths(one) == widths(other) && one.op == other.op
}

impl Siblings {
    /// The siblings of a graph, which follow from it alone.
    pub(crate) fn of(graph: &Graph) -> Self {
        let written = graph.nodes.iter().enumerate().map(|(index, node)| (node.output, index));
        let written: BTreeMap<usize, usize> = written.collect();
        let there = |tensor: &usize, host| written.get(tensor).is_none_or(|writer| *writer < host);
        let mut hosts = BTreeMap::new();
        for (host, node) in graph.nodes.iter().enumerate() {
            if !by_element(node) || hosts.contains_key(&host) {
                continue;
            }
            for (index, other) in graph.nodes.iter().enumerate().skip(host + 1).take(NEAR) {
                let ready = other.inputs.iter().all(|tensor| there(tensor, host));
                if ready && !hosts.contains_key(&index) && alike(graph, node, other) {
                    hosts.insert(index, host);
                }
            }
        }
        Self(hosts)
    }

    /// The node with which a node runs, if it is another.
    pub(crate) fn host(&self, node: usize) -> Option<usize> {
        self.0.get(&node).copied()
    }

    /// The nodes that run with `host`.
    fn with<'a>(&'a self, graph: &'a Graph, host: usize) -> impl Iterator<Item = &'a Node> {
        let all = self.0.iter().filter(move |(_, its)| **its == host);
        all.filter_map(|(node, _)| graph.nodes.get(*node))
    }

    /// Makes the step of the node at `index`. `plan` chooses one for the elements of the node and of
    /// its siblings; a node that runs with another gets a step that computes nothing.
    ///
    /// # Errors
    /// What `plan` returns, and [`Error::Misuse`] when a node that runs with another has options of
    /// its own.
    pub(super) fn step(
        &self,
        index: usize,
        cx: &NodeContext<'_>,
        plan: PlanOperator,
    ) -> Result<Step> {
        let graph = cx.graph;
        if let Some(host) = self.host(index).and_then(|host| graph.nodes.get(host)) {
            if !cx.options.is_none() {
                let why = format!("options of a step that runs with `{}`", host.name);
                return Err(at(&cx.node.name, Error::misuse(why)));
            }
            let joined = Joined { operator: host.op.kind(), host: host.name.clone() };
            let reads = vec![cx.node.output];
            return Ok(Step { reads, ..Step::of_node(graph, index, Action::local(joined)) });
        }
        let len = |node: &Node| graph.output_of(node).len();
        let joined = self.with(graph, index).map(len).sum();
        let action = plan(&NodeContext { joined, ..*cx }).map_err(|e| at(&cx.node.name, e))?;
        let mut step = Step::of_node(graph, index, action);
        for node in self.with(graph, index) {
            let Action::Protocol(composed) = &mut step.action else {
                return Err(Error::internal("siblings without a protocol; please report it"));
            };
            composed.also.push(Also { tensor: node.output, len: len(node) * cx.batch });
            step.reads.extend(&node.inputs);
        }
        Ok(step)
    }
}
