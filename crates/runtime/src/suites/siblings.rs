//! Nodes that run as one step: the same function of each element, or clips to as many bits, of tensors that
//! are all there before the first of them runs, for one run of the protocol takes the rounds of one; and extensions of what a
//! softmax or a norm writes for nothing else, whose messages need not wait for its last ones.

use std::collections::BTreeMap;

use graph::{Graph, Node, Nonlinear, ops};
use pricing::fixed::message::ROUND_BYTES;
use wire::{Error, Result};

use super::node_context::{NodeContext, PlanOperator};
use super::refusal::at;
use crate::plan::options::Function;
use crate::step::composed::Also;
use crate::step::local::Joined;
use crate::step::{Action, Step};

/// Nodes behind a node among which its siblings are looked for.
const NEAR: usize = 16;

/// Which nodes of a graph run with an earlier one: by the node, its host.
#[derive(Debug, Default)]
pub(crate) struct Siblings {
    /// Those of the host's function.
    alike: BTreeMap<usize, usize>,
    /// Extensions of the host's results.
    extending: BTreeMap<usize, usize>,
}

/// Whether a node extends what a softmax or a norm writes, and nothing else reads that.
fn extends(graph: &Graph, written: &BTreeMap<usize, usize>, node: &Node) -> Option<usize> {
    let [tensor] = node.inputs.as_slice() else { return None };
    let host = *written.get(tensor).filter(|_| node.op.is::<ops::Extend>())?;
    let op = &graph.nodes.get(host)?.op;
    let readers = graph.nodes.iter().filter(|other| other.inputs.contains(tensor)).count();
    let kept = graph.output == *tensor || graph.states.iter().any(|state| state.after == *tensor);
    let fits = op.is::<ops::Softmax>() || op.is::<ops::LayerNorm>();
    (fits && readers == 1 && !kept && graph.nonlinear != Nonlinear::Gc).then_some(host)
}

/// Whether a node computes a function of each element of one tensor.
fn by_element(node: &Node) -> bool {
    let op = &node.op;
    let known = op.is::<ops::Relu>() || op.is::<ops::Extend>() || op.is::<ops::Lookup>();
    known && node.inputs.len() == 1
}

/// Whether the protocol of one node is that of the other, on other elements. Extensions of one width
/// are, whatever the widths of their results, of which the largest is as good for all.
fn alike(graph: &Graph, one: &Node, other: &Node) -> bool {
    let extends = one.op.is::<ops::Extend>();
    let widths = |node: &Node| {
        let [from, to] = [graph.input_of(node, 0), graph.output_of(node)].map(|t| &t.format);
        (from.bits, from.signed, if extends { 0 } else { to.bits }, to.signed)
    };
    by_element(other) && widths(one) == widths(other) && one.op == other.op
}

/// Whether both nodes clip values of one width to as many bits, from other lower bounds or to other
/// widths. They run together by OT, to the wider one, where that takes few bytes beside the rounds that it
/// saves.
fn clips_alike(graph: &Graph, one: &Node, other: &Node) -> bool {
    let (Some(a), Some(b)) = (one.op.get::<ops::Relu>(), other.op.get::<ops::Relu>()) else {
        return false;
    };
    let widths = |node: &Node| [graph.input_of(node, 0), graph.output_of(node)].map(|t| t.format);
    let ([from, to], [its_from, its_to]) = (widths(one), widths(other));
    let narrow = if to.bits < its_to.bits { one } else { other };
    let more = to.bits.abs_diff(its_to.bits) as usize * graph.output_of(narrow).len();
    let fits = a.saturate.saturating_add(2) <= from.bits && to.signed == its_to.signed;
    let same = (a.saturate, from.bits, from.signed) == (b.saturate, its_from.bits, its_from.signed);
    same && fits && graph.nonlinear != Nonlinear::Gc && more as u64 / 8 <= 2 * ROUND_BYTES
}

/// Whether a tensor is there before the node at `host` runs, or its elements are, in other places.
fn there(graph: &Graph, written: &BTreeMap<usize, usize>, tensor: usize, host: usize) -> bool {
    let Some(writer) = written.get(&tensor) else { return true };
    let Some(node) = graph.nodes.get(*writer) else { return false };
    let moves = node.op.is::<ops::View>() || node.op.is::<ops::Reshape>();
    *writer < host || moves && node.inputs.iter().all(|input| there(graph, written, *input, host))
}

impl Siblings {
    /// The siblings of a graph, which follow from it alone.
    pub(crate) fn of(graph: &Graph) -> Self {
        let written = graph.nodes.iter().enumerate().map(|(index, node)| (node.output, index));
        let written: BTreeMap<usize, usize> = written.collect();
        let mut hosts = BTreeMap::new();
        let extending = graph.nodes.iter().enumerate();
        let extending: BTreeMap<usize, usize> = extending
            .filter_map(|(index, node)| Some((index, extends(graph, &written, node)?)))
            .collect();
        for (host, node) in graph.nodes.iter().enumerate() {
            if !by_element(node) || hosts.contains_key(&host) || extending.contains_key(&host) {
                continue;
            }
            for (index, other) in graph.nodes.iter().enumerate().skip(host + 1).take(NEAR) {
                let ready = other.inputs.iter().all(|tensor| there(graph, &written, *tensor, host));
                let free = !hosts.contains_key(&index) && !extending.contains_key(&index);
                let fits = alike(graph, node, other) || clips_alike(graph, node, other);
                if ready && free && fits {
                    hosts.insert(index, host);
                }
            }
        }
        Self { alike: hosts, extending }
    }

    /// The node with which a node runs, if it is another.
    pub(crate) fn host(&self, node: usize) -> Option<usize> {
        self.alike.get(&node).or_else(|| self.extending.get(&node)).copied()
    }

    /// The nodes that run with `host`.
    pub(super) fn with<'a>(
        &'a self,
        graph: &'a Graph,
        host: usize,
    ) -> impl Iterator<Item = &'a Node> {
        let all = self.alike.iter().filter(move |(_, its)| **its == host);
        all.filter_map(|(node, _)| graph.nodes.get(*node))
    }

    /// The node that extends what `host` writes, if it runs with it.
    pub(super) fn behind<'a>(&self, graph: &'a Graph, host: usize) -> Option<&'a Node> {
        let (node, _) = self.extending.iter().find(|(_, its)| **its == host)?;
        graph.nodes.get(*node)
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
        let bits = |node: &Node| graph.output_of(node).format.bits;
        let widest = self.with(graph, index).map(bits).max();
        let widest = widest.filter(|widest| *widest > cx.out_bits());
        let behind = self.behind(graph, index).map(bits).or(widest);
        let others = self.with(graph, index).any(|other| !alike(graph, cx.node, other));
        if others && matches!(cx.options.function, Some(Function::Circuits | Function::Table)) {
            let why =
                "clips from other bounds or to other widths as well, which only comparisons do";
            return Err(at(&cx.node.name, Error::misuse(why)));
        }
        let planned = NodeContext { joined, extended: behind, ..*cx };
        let action = plan(&planned).map_err(|e| at(&cx.node.name, e))?;
        let mut step = Step::of_node(graph, index, action);
        if let Some(node) = self.behind(graph, index) {
            step.writes = node.output;
        }
        for node in self.with(graph, index) {
            let Action::Protocol(composed) = &mut step.action else {
                return Err(Error::internal("siblings without a protocol; please report it"));
            };
            let low = |node: &Node| node.op.get().map_or(0, |ops::Relu { low, .. }| *low);
            let (own, its) = (low(cx.node), low(node));
            composed.out_bits = Some(cx.out_bits());
            composed.also.push(Also {
                tensor: node.output,
                len: len(node) * cx.batch,
                bits: bits(node),
                before: composed.before + own - its,
                after: composed.after + its - own,
            });
            step.reads.extend(&node.inputs);
        }
        Ok(step)
    }
}
