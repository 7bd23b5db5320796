//! Share widths chosen anew: one model with fewer extensions, or with more.
//!
//! An extension takes rounds and saves bytes, so which ones are worth their rounds depends on
//! the link. Values and weights stay what they are.

use super::{EXTENDED, Needs, WORTH_EXTENDING, refuse_wide};
use crate::ir::{Graph, Model, Node};
use crate::ops::{Accumulator, Extend, Winograd};
use crate::verify::verify;
use crate::{Error, Result, verify_model};
use std::collections::BTreeMap;

/// What extensions have to save, in bits on the wire: from wherever they make anything
/// narrower to only where sums get too wide without.
const WORTHS: [usize; 5] = [usize::MAX, WORTH_EXTENDING[0], 1 << 18, 1, 0];

/// Returns the graphs of `model` with other share widths: first its own, then, from fewer to more,
/// those with extensions wherever they save so many bits, each once; at most 6. Of integers that
/// are never rescaled only its own. All compute the same integers, and their nodes have the same
/// names, extensions apart; [`in_graph`] gives the model of one.
pub fn variants(model: &Model) -> Vec<Graph> {
    let mut graphs = vec![model.graph.clone()];
    if model.graph.exact.is_none() {
        let stripped = Stripped::of(model);
        for worth in WORTHS {
            let graph = stripped.extended(worth);
            graphs.extend(graph.ok().filter(|graph| !graphs.contains(graph)));
        }
    }
    graphs
}

/// `model` with extensions wherever they save at least `worth` bits on the wire, by default as
/// many as when a model is compiled, and wherever sums get too wide without.
///
/// # Errors
/// [`Error::Unsupported`] naming a node that needs wider shares than there are,
/// [`Error::Invalid`] for a model that was no valid one.
pub fn reassigned(model: &Model, worth: Option<usize>) -> Result<Model> {
    let graph = Stripped::of(model).extended(worth.unwrap_or(WORTH_EXTENDING[0]))?;
    in_graph(model.clone(), graph)
}

/// `model` in another graph of the same nodes, extensions apart: one of its [`variants`].
/// Weights follow their nodes by name.
///
/// # Errors
/// [`Error::Invalid`] for the graph of another model.
pub fn in_graph(model: Model, graph: Graph) -> Result<Model> {
    let nodes = graph.nodes.iter().enumerate();
    let places: BTreeMap<&str, usize> = nodes.map(|(at, node)| (node.name.as_str(), at)).collect();
    let mut weights = BTreeMap::new();
    for (index, own) in model.weights {
        let name = model.graph.nodes.get(index).map_or("", |node| node.name.as_str());
        let place = places.get(name);
        let missing = || Error::invalid("widths", name, "has weights and is not in the graph");
        weights.insert(*place.ok_or_else(missing)?, own);
    }
    let model = Model { graph, weights };
    verify_model(&model).map_err(|error| error.in_pass("widths"))?;
    Ok(model)
}

/// A graph without the extensions that a choice of widths inserted, and what it needs.
struct Stripped {
    graph: Graph,
    needs: Needs,
}

impl Stripped {
    fn of(model: &Model) -> Self {
        let mut stripped = Self { graph: model.graph.clone(), needs: Needs::of(model) };
        let is_inserted = |graph: &Graph| graph.nodes.iter().position(|n| inserted(graph, n));
        while let Some(at) = is_inserted(&stripped.graph) {
            stripped.remove(at);
        }
        stripped
    }

    /// With extensions that save at least `worth` bits.
    fn extended(&self, worth: usize) -> Result<Graph> {
        let mut graph = self.graph.clone();
        self.needs.choose(&mut graph);
        self.needs.clone().extend(&mut graph, false, worth, |_| {});
        refuse_wide(&graph)?;
        verify(&graph).map_err(|error| error.in_pass("widths"))?;
        Ok(graph)
    }

    /// Removes an extension: what reads it reads what it extends.
    fn remove(&mut self, at: usize) {
        let Node { inputs, output: gone, .. } = self.graph.nodes.remove(at);
        self.graph.tensors.remove(gone);
        let moved = |tensor: usize| {
            let tensor = if tensor == gone { inputs[0] } else { tensor };
            tensor - usize::from(tensor > gone)
        };
        for node in &mut self.graph.nodes {
            node.inputs.iter_mut().for_each(|input| *input = moved(*input));
            node.output = moved(node.output);
        }
        (self.graph.input, self.graph.output) = (moved(self.graph.input), moved(self.graph.output));
        for state in &mut self.graph.states {
            (state.before, state.after) = (moved(state.before), moved(state.after));
        }
        let Needs { ranges, accumulators, products } = &mut self.needs;
        ranges.remove(gone);
        for bits in [accumulators, products] {
            let all = std::mem::take(bits).into_iter();
            *bits = all.map(|(tensor, bits)| (moved(tensor), bits)).collect();
        }
    }
}

/// Returns a verified `graph` without its share widths: all of the [`variants`] of a model are the
/// same then. No protocol runs it.
pub(crate) fn without_widths(graph: &Graph) -> Graph {
    // What stands for a tensor: itself, or what an extension extends.
    let mut origin: Vec<usize> = (0..graph.tensors.len()).collect();
    let mut bare = graph.clone();
    bare.nodes.retain(|node| {
        let extends = inserted(graph, node);
        if extends {
            origin[node.output] = origin[node.inputs[0]];
        }
        !extends
    });
    // The places of those that stay.
    let mut place = vec![0; origin.len()];
    let mut tensors = Vec::with_capacity(origin.len());
    for (index, mut tensor) in std::mem::take(&mut bare.tensors).into_iter().enumerate() {
        place[index] = tensors.len();
        if origin[index] == index {
            tensor.format.bits = 0;
            tensors.push(tensor);
        }
    }
    let moved = |tensor: usize| place[origin[tensor]];
    bare.tensors = tensors;
    (bare.input, bare.output) = (moved(graph.input), moved(graph.output));
    for state in &mut bare.states {
        (state.before, state.after) = (moved(state.before), moved(state.after));
    }
    for node in &mut bare.nodes {
        node.inputs.iter_mut().for_each(|input| *input = moved(*input));
        node.output = moved(node.output);
        forget_widths(node);
    }
    bare
}

/// Takes the widths from a node that depend on those of the tensors around it.
fn forget_widths(node: &mut Node) {
    if let Some(own) = node.op.accumulator() {
        node.op.set_accumulator(Accumulator { bits: 0, ..own });
    }
    if let Some(layer) = node.op.get_mut::<Winograd>() {
        (layer.product_bits, layer.headroom) = (0, false);
    }
}

/// Whether a node is an extension that a choice of widths inserted, by its name.
fn inserted(graph: &Graph, node: &Node) -> bool {
    let rest = node.name.strip_prefix(graph.input_of(node, 0).name.as_str());
    let primes = rest.and_then(|rest| rest.strip_prefix(EXTENDED));
    node.op == Extend
        && node.output != graph.output
        && node.name == graph.output_of(node).name
        && primes.is_some_and(|primes| primes.chars().all(|prime| prime == '\''))
}
