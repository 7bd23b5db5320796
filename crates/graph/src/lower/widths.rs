//! Share widths: every value fits, and every reader finds the width it needs.

use crate::ir::{Format, Graph, Linear, MatMul, Model, Node, Op, Tensor};
use crate::model::ranges;
use crate::width::{self, Known};
use crate::winograd::Winograd;
use crate::{Error, Result};
use std::collections::BTreeMap;

mod transfers;

/// Widest accumulator that the linear protocols are given.
const WIDEST: u32 = 40;
/// Widest shares that anything else works on: sums and norms of finely scaled residuals.
const WIDEST_LOCAL: u32 = 48;
/// Bits from the largest deviation of a row to the smallest that a norm tells apart, and
/// two for the range of values.
const DEVIATIONS: u32 = 11;
/// Bits on the wire that are worth the two rounds of an extension, under encryption and by
/// transfers.
const WORTH_EXTENDING: [usize; 2] = [1 << 22, 2 * transfers::ROUND];

/// Sets `bits` of every tensor and `accumulator_bits` of every node to the
/// smallest values that satisfy [`crate::verify_model`], with extensions where a
/// reader needs much wider shares than a tensor's values.
pub(super) fn assign(model: &mut Model, by_transfers: bool) -> Result<()> {
    choose(model);
    // Functions know their inputs' widths now.
    choose(model);
    let worth = WORTH_EXTENDING[usize::from(by_transfers)];
    while let Some(tensor) = narrow(model, by_transfers, worth) {
        extend(model, tensor);
        choose(model);
    }
    refuse_wide(model)
}

fn choose(model: &mut Model) {
    let ranges = ranges(model);
    let graph = &mut model.graph;
    let mut bits = values(graph, &ranges);
    // What sums of products need, by node.
    let mut products = BTreeMap::new();
    for (index, node) in graph.nodes.iter_mut().enumerate() {
        let inputs: Vec<Known> = node.inputs.iter().map(|i| ranges[*i].clone()).collect();
        let inner = graph.tensors[node.inputs[0]].shape.last().copied().unwrap_or(1);
        match &mut node.op {
            Op::Linear(linear) => {
                let range = width::accumulator(linear, &model.weights[&index], &inputs);
                linear.accumulator_bits = range.width().max(2);
            }
            Op::Winograd(layer) => {
                let weights = &model.weights[&index];
                let sums = width::winograd::products(layer, weights, &inputs[0]);
                products.insert(index, sums.width().max(2));
                let range = width::winograd::accumulator(layer, weights, &inputs);
                layer.accumulator_bits = range.width().max(2);
            }
            Op::Sum { multipliers, accumulator_bits, shift } => {
                let range = width::sum_accumulator(*multipliers, *shift, &inputs);
                *accumulator_bits = range.width().max(2);
            }
            Op::MatMul(matmul) => {
                let range = width::product_accumulator(matmul, inner, &inputs);
                matmul.accumulator_bits = range.width().max(2);
            }
            Op::Softmax { bits, .. } => {
                let span = inputs[0].high - inputs[0].low;
                // A quarter more leaves room for what differences are clipped to.
                *bits = (129 - (span + span / 4).leading_zeros()).max(5);
            }
            Op::LayerNorm { bits, least, .. } => {
                let side = inputs[0].high.max(-1 - inputs[0].low).max(0);
                *bits = (130 - side.leading_zeros()).max(5);
                *least = bits.saturating_sub(DEVIATIONS);
            }
            Op::Product { factor_bits } => *factor_bits = [0, 1].map(|i| inputs[i].width()),
            _ => {}
        }
    }
    // Needs travel towards the input, and across the nodes that keep a width
    // both ways, hence more than one sweep when a tensor has several readers. Without
    // extensions they may grow for ever: a tensor beside one that is computed from it.
    loop {
        let before = bits.clone();
        for (index, node) in graph.nodes.iter_mut().enumerate().rev() {
            let out = bits[node.output];
            if let Op::Linear(Linear { accumulator_bits, shift, .. })
            | Op::MatMul(MatMul { accumulator_bits, shift, .. })
            | Op::Winograd(Winograd { accumulator_bits, shift, .. })
            | Op::Sum { accumulator_bits, shift, .. } = &mut node.op
            {
                *accumulator_bits = (*accumulator_bits).max(out + *shift);
            }
            if let Op::Winograd(layer) = &mut node.op {
                transfers::choose_products(layer, products[&index]);
            }
            let keeps = keeps_width(&node.op);
            for input in &node.inputs {
                let own = if keeps { out } else { 1 };
                let signed = graph.tensors[*input].format.signed;
                let need = width::width_for_reader(node, signed, ranges[*input].range).max(own);
                bits[*input] = bits[*input].max(need);
            }
            if keeps {
                let widest = node.inputs.iter().map(|input| bits[*input]).max();
                bits[node.output] = widest.unwrap_or(out);
            }
            if let Op::Extend = node.op {
                bits[node.output] = out.max(bits[node.inputs[0]] + 1);
            }
        }
        if bits == before || bits.iter().any(|bits| *bits > 2 * WIDEST_LOCAL) {
            break;
        }
    }
    for (tensor, bits) in graph.tensors.iter_mut().zip(bits) {
        tensor.format.bits = bits;
    }
}

/// Widths that the values alone need.
fn values(graph: &Graph, ranges: &[Known]) -> Vec<u32> {
    let width = |(index, known): (usize, &Known)| {
        let writer = graph.nodes.iter().find(|node| node.output == index);
        match writer {
            // Their results have a width of their own.
            Some(Node {
                op:
                    Op::Softmax { .. } | Op::LayerNorm { .. } | Op::Smu { .. } | Op::ReluSoftmax { .. },
                ..
            }) => graph.tensors[index].format.bits,
            _ => width::width_of_values(writer, known.range, index == graph.output),
        }
    };
    ranges.iter().enumerate().map(width).collect()
}

/// Whether inputs and output have one width.
fn keeps_width(op: &Op) -> bool {
    matches!(
        op,
        Op::MaxPool(_)
            | Op::SumPool(_)
            | Op::Reshape
            | Op::Offset
            | Op::Concat
            | Op::View(_)
            | Op::Pad { .. }
    )
}

/// The last tensor whose readers need far wider shares than its values do, and that no
/// protocol widens on the way. An extension is as wide as its readers need already: where
/// that is too much, another one would not help.
fn narrow(model: &Model, by_transfers: bool, worth: usize) -> Option<usize> {
    let graph = &model.graph;
    let ranges = ranges(model);
    let tensors = (0..graph.tensors.len()).rev();
    let mut candidates = tensors.filter(|tensor| {
        let need = readers(graph, *tensor).map(|reader| accumulator(reader).unwrap_or(0)).max();
        // Extended shares have a bit to spare.
        let have = ranges[*tensor].width() + 1;
        let gained = need.unwrap_or(0).saturating_sub(have);
        let wide = origins(graph, *tensor).any(is_too_wide);
        let price = |origin| match by_transfers {
            true => transfers::price(graph, origin),
            false => price(graph, origin),
        };
        let each = origins(graph, *tensor).map(price).sum::<usize>();
        let worth = each.saturating_mul(gained as usize) >= worth;
        let endless = graph.tensors[*tensor].format.bits > WIDEST_LOCAL;
        let extended = graph.nodes.iter().any(|n| n.output == *tensor && n.op == Op::Extend);
        !extended && gained > 0 && (endless || worth || wide)
    });
    candidates.next()
}

/// About how many bits more a node sends for each bit that its output gets wider than an
/// extension of it would: a ReLU none, since it extends its result itself. Behind a product
/// both ciphertexts grow, and so does what wrote its input.
fn price(graph: &Graph, node: &Node) -> usize {
    let results = graph.output_of(node).len();
    match &node.op {
        Op::Linear(_) | Op::Sum { .. } => results + 5 * graph.input_of(node, 0).len(),
        _ => 0,
    }
}

fn readers(graph: &Graph, tensor: usize) -> impl Iterator<Item = &Node> {
    graph.nodes.iter().filter(move |node| node.inputs.contains(&tensor))
}

/// The nodes whose output `tensor` is, seen through those that keep a width.
fn origins(graph: &Graph, tensor: usize) -> impl Iterator<Item = &Node> {
    let mut tensors = vec![tensor];
    std::iter::from_fn(move || {
        loop {
            let tensor = tensors.pop()?;
            let Some(node) = graph.nodes.iter().find(|node| node.output == tensor) else {
                continue;
            };
            if !keeps_width(&node.op) {
                return Some(node);
            }
            tensors.extend(&node.inputs);
        }
    })
}

/// The width at which a node works on shares that it is given and passes on.
fn accumulator(node: &Node) -> Option<u32> {
    match &node.op {
        Op::Linear(Linear { accumulator_bits, .. })
        | Op::MatMul(MatMul { accumulator_bits, .. })
        | Op::Sum { accumulator_bits, .. } => Some(*accumulator_bits),
        Op::Winograd(layer) => Some(layer.product_bits),
        _ => None,
    }
}

/// The widest shares that a node's protocol works on.
fn widest(node: &Node) -> u32 {
    match node.op {
        Op::Linear(_) | Op::Winograd(_) | Op::MatMul(_) => WIDEST,
        _ => WIDEST_LOCAL,
    }
}

fn is_too_wide(node: &Node) -> bool {
    accumulator(node).is_some_and(|bits| bits > widest(node))
}

/// Lets the linear nodes and sums that read `tensor` read an extension of it.
fn extend(model: &mut Model, tensor: usize) {
    let graph = &mut model.graph;
    let writer = graph.nodes.iter().position(|node| node.output == tensor);
    let at = writer.map_or(0, |writer| writer + 1);
    let wide = graph.tensors.len();
    let Tensor { name, shape, format } = graph.tensors[tensor].clone();
    let name = unused(graph, &format!("{name}.extended"));
    graph.tensors.push(Tensor { name: name.clone(), shape, format: Format { bits: 1, ..format } });
    for node in &mut graph.nodes {
        if accumulator(node).is_some() {
            node.inputs.iter_mut().filter(|i| **i == tensor).for_each(|input| *input = wide);
        }
    }
    insert(model, at, Node { name, op: Op::Extend, inputs: vec![tensor], output: wide });
}

/// Inserts a node in front of the one at `at`.
pub(super) fn insert(model: &mut Model, at: usize, node: Node) {
    model.graph.nodes.insert(at, node);
    let weights = std::mem::take(&mut model.weights);
    let moved = weights.into_iter().map(|(index, w)| (index + usize::from(index >= at), w));
    model.weights = moved.collect();
}

/// `base`, with primes until no tensor or node is called so.
pub(super) fn unused(graph: &Graph, base: &str) -> String {
    let mut name = base.to_owned();
    let taken = |name: &str| {
        let tensors = graph.tensors.iter().map(|tensor| &tensor.name);
        tensors.chain(graph.nodes.iter().map(|node| &node.name)).any(|other| other == name)
    };
    while taken(&name) {
        name.push('\'');
    }
    name
}

fn refuse_wide(model: &Model) -> Result<()> {
    for node in &model.graph.nodes {
        let bits = match accumulator(node) {
            Some(bits) => bits,
            None => model.graph.output_of(node).format.bits,
        };
        let widest = widest(node);
        if bits > widest {
            let what = format!("needs a width of {bits} bits, at most {widest} are possible");
            let instead = "use fewer activation or weight bits, or put a ReLU between the layers";
            return Err(Error::unsupported(&node.name, what, instead));
        }
    }
    Ok(())
}
