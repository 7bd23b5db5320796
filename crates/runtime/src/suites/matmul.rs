//! Products of two shared matrices: the ways to run one, and many that follow each other.

use graph::{Graph, MatMul, Node};
use mpc::linear::coefficient::MOST_FOLDINGS;
use mpc::linear::shared_matmul::Left;
use wire::{Error, Result};

use super::appended;
use super::node_context::NodeContext;
use crate::linear::passed_matmul::PassedProduct;
use crate::linear::shared_matmul::{Blocks, SharedProduct};
use crate::plan::options::{Products, StepOptions};
use crate::step::Action;

/// The product of two matrices, in blocks or folded, or of one that grows on masks of several runs.
pub(super) fn product(cx: &NodeContext<'_>) -> Result<Action> {
    if cx.options.runs.is_some() {
        return appended::product(cx);
    }
    shared_product(cx)
}

/// The product of two matrices, in blocks or folded as was chosen; of inputs that follow each other with
/// all entries of a factor that grows at once.
fn shared_product(cx: &NodeContext<'_>) -> Result<Action> {
    let NodeContext { graph, node, batch, options, .. } = *cx;
    let [a, b] = [0, 1].map(|i| graph.input_of(node, i).shape.as_slice());
    let sides = MatMul::sides(a, b).ok_or_else(|| Error::misuse("matrices that do not fit"))?;
    let known = node.inputs.first().is_some_and(|a| graph.known().get(*a) == Some(&true));
    let left = if known { Left::Client } else { Left::Shared };
    let products = graph.nodes.iter().filter(|node| node.op.is::<MatMul>()).count();
    let matmul = cx.operator()?;
    let blocks = match options.products {
        None => None,
        Some(Products::Packing(1)) => Some(Blocks::Apart),
        Some(Products::Folded(place)) => Some(Blocks::Folded(place)),
        Some(_) => return Err(Error::misuse("products that a product of matrices does not have")),
    };
    let chosen = (blocks, cx.digits());
    let planned = |sides, batch| {
        SharedProduct::new(matmul, sides, left, cx.out_bits(), [batch, products], chosen)
    };
    let follow = batch > 1 && !graph.states.is_empty();
    let grown = if follow { appended::shape(graph, node) } else { None };
    let Some((shape, _)) = grown else { return Ok(Action::linear(planned(sides, batch)?)) };
    let product = planned(PassedProduct::sides(&shape, batch), 1)?;
    Ok(Action::linear(PassedProduct { shape, inputs: batch, product }))
}

/// The ways to pack a product of two matrices: in blocks, and folded at each degree and number of levels;
/// for several runs together on masks, where it can be.
pub(super) fn packings(
    graph: &Graph,
    node: &Node,
    batch: usize,
    runs: usize,
) -> Vec<(Products, Action)> {
    if runs > 1 {
        let options = appended::options(runs);
        return appended::packings(&NodeContext {
            batch,
            options,
            ..NodeContext::plain(graph, node)
        });
    }
    let folded = (1..=MOST_FOLDINGS).map(Products::Folded);
    let action = |products| {
        let options = StepOptions { products: Some(products), ..StepOptions::default() };
        let cx = NodeContext { batch, options, ..NodeContext::plain(graph, node) };
        Some((products, shared_product(&cx).ok()?))
    };
    std::iter::once(Products::Packing(1)).chain(folded).filter_map(action).collect()
}
