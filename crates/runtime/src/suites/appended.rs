//! Products whose right factor is what it was in the run before, moved by an entry, with a new
//! entry at its end: attention of a model that keeps keys and values.

use std::collections::{BTreeMap, BTreeSet};

use graph::ops::{Concat, Offset, Reshape};
use graph::{Graph, MatMul, Node, Rounding};
use mpc::linear::appended_matmul::{Axis, Layer, Shape};
use wire::{Error, Result};

use super::node_context::NodeContext;
use crate::linear::appended_matmul::AppendedProduct;
use crate::plan::options::{Products, StepOptions};
use crate::step::Action;

/// Most elements of all tensors that are traced for one product: a plan from outside is traced before it
/// is accepted.
const MOST_TRACED: usize = 1 << 22;

/// Where an element of a tensor comes from that is only moved about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Zero,
    /// An element of a tensor that something computes, or that is there before the first node.
    Element(usize, usize),
    /// A constant of the server: its node and its place.
    Constant(usize, usize),
}

/// For each value the node and the place of the server's constant that it is, or nothing for a zero.
pub(super) type Constants = Vec<Option<(usize, usize)>>;

/// The right factor of a product.
#[derive(Debug)]
struct Right {
    axis: Axis,
    /// The values of the entries that never change.
    constants: Constants,
}

/// The product of a node whose right factor grows, prepared for several runs.
///
/// # Errors
/// [`Error::Misuse`] for another product, and for one that runs may leave out which are only for
/// what the graph keeps: parties would not know of all entries.
pub(super) fn product(cx: &NodeContext<'_>) -> Result<Action> {
    let refuse = || Error::misuse("a product on masks of several runs whose factor does not grow");
    let NodeContext { graph, node, batch, options, .. } = *cx;
    let matmul: &MatMul = cx.operator()?;
    let chosen = options.products.is_some() || options.function.is_some();
    let random = matmul.rounding == Rounding::Stochastic;
    if batch != 1 || chosen || !random || !is_for_states(graph, node) {
        return Err(refuse());
    }
    let (shape, constants) = shape(graph, node).ok_or_else(refuse)?;
    let layer = Layer::new(shape, matmul.shift, cx.out_bits(), options.runs())?;
    Ok(Action::linear(AppendedProduct { layer, constants }))
}

/// The sizes of a product whose right factor grows, and the values of the entries that never change.
pub(super) fn shape(graph: &Graph, node: &Node) -> Option<(Shape, Constants)> {
    let Right { axis, constants } = right(graph, node)?;
    let [a, b] = [0, 1].map(|i| graph.input_of(node, i).shape.as_slice());
    let [batch, rows, inner, columns] = MatMul::sides(a, b)?;
    let other = if axis == Axis::Inner { columns } else { inner };
    let fixed = constants.len() / (batch * other).max(1);
    Some((Shape { batch, rows, inner, columns, axis, fixed }, constants))
}

/// The way to prepare a product for several runs together, where there is one.
pub(super) fn packings(cx: &NodeContext<'_>) -> Vec<(Products, Action)> {
    product(cx).ok().map(|action| (Products::Packing(1), action)).into_iter().collect()
}

/// Whether [`product`] may plan this node.
pub(super) fn grows(graph: &Graph, node: &Node) -> bool {
    node.op.is::<MatMul>() && is_for_states(graph, node) && right(graph, node).is_some()
}

/// The options of a product on masks of so many runs.
pub(super) fn options(runs: usize) -> StepOptions {
    let runs = u32::try_from(runs).ok().and_then(std::num::NonZeroU32::new);
    StepOptions { preprocessed: true, runs, ..StepOptions::default() }
}

/// Whether all runs compute the node, those too that are only for what the graph keeps.
fn is_for_states(graph: &Graph, node: &Node) -> bool {
    let mut needed: BTreeSet<usize> = graph.states.iter().map(|state| state.after).collect();
    for other in graph.nodes.iter().rev() {
        if needed.contains(&other.output) {
            needed.extend(&other.inputs);
        }
    }
    needed.contains(&node.output)
}

/// What the right factor of a product is, if it grows.
fn right(graph: &Graph, node: &Node) -> Option<Right> {
    let tensor = *node.inputs.get(1)?;
    let origins = origins(graph, tensor);
    let all = origins.get(&tensor)?;
    let [a, b] = [0, 1].map(|i| graph.input_of(node, i).shape.as_slice());
    let [items, _, inner, columns] = MatMul::sides(a, b)?;
    [Axis::Columns, Axis::Inner].into_iter().find_map(|axis| {
        let (entries, other) = match axis {
            Axis::Columns => (columns, inner),
            Axis::Inner => (inner, columns),
        };
        let value = |entry: usize, at: usize| {
            let (item, at) = (at / other, at % other);
            let place = match axis {
                Axis::Columns => (item * inner + at) * columns + entry,
                Axis::Inner => (item * inner + entry) * columns + at,
            };
            all.get(place).copied()
        };
        let entry = |entry: usize| (0..items * other).map(move |at| value(entry, at));
        let fixed = (0..entries).take_while(|at| entry(*at).all(is_fixed));
        let fixed = fixed.count();
        // What an entry has before a run, the one in front of it has after the run.
        let moves = (fixed + 1..entries).all(|at| {
            entry(at - 1).zip(entry(at)).all(|(before, value)| {
                moved(graph, &origins, before).is_some_and(|after| Some(after) == value)
            })
        });
        let new = |value| match value {
            Some(Origin::Element(tensor, _)) => graph.states.iter().all(|s| s.before != tensor),
            _ => false,
        };
        if fixed == entries || !moves || !entry(entries - 1).all(new) {
            return None;
        }
        let constants = (0..fixed).flat_map(entry).map(|value| match value {
            Some(Origin::Constant(node, at)) => Some((node, at)),
            _ => None,
        });
        Some(Right { axis, constants: constants.collect() })
    })
}

fn is_fixed(value: Option<Origin>) -> bool {
    matches!(value, Some(Origin::Constant(..) | Origin::Zero))
}

/// What an element of a state is after the run.
fn moved(
    graph: &Graph,
    origins: &BTreeMap<usize, Vec<Origin>>,
    value: Option<Origin>,
) -> Option<Origin> {
    let Some(Origin::Element(tensor, at)) = value else { return None };
    let state = graph.states.iter().find(|state| state.before == tensor)?;
    origins.get(&state.after)?.get(at).copied()
}

/// Origins of the elements of a tensor and of what the states become that it shows, and of all
/// tensors between them and what is computed; nothing where these are too large.
fn origins(graph: &Graph, tensor: usize) -> BTreeMap<usize, Vec<Origin>> {
    let mut wanted = BTreeSet::from([tensor]);
    movers(graph, &mut wanted);
    let read = graph.states.iter().filter(|state| wanted.contains(&state.before));
    let after: Vec<usize> = read.map(|state| state.after).collect();
    wanted.extend(after);
    let movers = movers(graph, &mut wanted);
    let length = |tensor: &usize| graph.tensors.get(*tensor).map_or(0, graph::Tensor::len);
    if wanted.iter().map(length).fold(0, usize::saturating_add) > MOST_TRACED {
        return BTreeMap::new();
    }
    let mut known: BTreeMap<usize, Vec<Origin>> = BTreeMap::new();
    for (index, node) in movers.into_iter().rev() {
        let moved = moved_by(graph, (index, node), &known);
        known.insert(node.output, moved);
    }
    for tensor in wanted {
        known.entry(tensor).or_insert_with(|| elements(graph, tensor));
    }
    known
}

/// The nodes that only move elements to the tensors that are `wanted`, last first, and what they read.
fn movers<'a>(graph: &'a Graph, wanted: &mut BTreeSet<usize>) -> Vec<(usize, &'a Node)> {
    let mut movers = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate().rev() {
        let op = &node.op;
        let moves = op.rearranges() || op.is::<Concat>() || op.is::<Offset>();
        if moves && wanted.contains(&node.output) {
            wanted.extend(&node.inputs);
            movers.push((index, node));
        }
    }
    movers
}

fn elements(graph: &Graph, tensor: usize) -> Vec<Origin> {
    let count = graph.tensors.get(tensor).map_or(0, graph::Tensor::len);
    (0..count).map(|at| Origin::Element(tensor, at)).collect()
}

/// Origins of what a node writes that only moves elements, or adds constants to zeros.
fn moved_by(
    graph: &Graph,
    (index, node): (usize, &Node),
    known: &BTreeMap<usize, Vec<Origin>>,
) -> Vec<Origin> {
    let of = |input: &usize| known.get(input).cloned().unwrap_or_else(|| elements(graph, *input));
    let inputs = node.inputs.iter().map(of);
    let all: Vec<Origin> = inputs.flatten().collect();
    if node.op.is::<Concat>() || node.op.is::<Reshape>() {
        return all;
    }
    if node.op.is::<Offset>() {
        let zeros = all.iter().all(|origin| *origin == Origin::Zero);
        let constant = |at| Origin::Constant(index, at);
        let own = elements(graph, node.output);
        return if zeros { (0..all.len()).map(constant).collect() } else { own };
    }
    let place = |place: Option<usize>| match place {
        Some(place) => all.get(place).copied(),
        None => Some(Origin::Zero),
    };
    let shown: Option<Vec<Origin>> = graph.arrangement(node).into_iter().map(place).collect();
    shown.unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
