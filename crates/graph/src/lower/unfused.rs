//! Graphs without an optimisation, to measure what it is worth. All compute the same integers.
//!
//! Fused graphs write every tensor at the width that its reader needs (UFO, propositions 1
//! to 3 and Fig. 10d). Here each conversion of Fig. 10(b) and (c) is one of its own: what
//! is multiplied is extended for the feature transform by lemma 1, then for the sums of
//! products; these are extended in two steps before the output transform, whose results
//! are extended for the multiplier.

use super::options::Switch;
use super::widths::insert;
use crate::ir::{Conv, Format, Linear, Model, Node, Op, Tensor};
use crate::model::ranges;
use crate::ops::winograd::{feature_rows, output_rows};
use crate::ops::{Extend, Known, Relu, Requantize, Sum, Winograd};
use std::collections::BTreeSet;

/// Takes what is `disabled` out of a graph whose widths are assigned.
pub(super) fn apply(model: &mut Model, disabled: &BTreeSet<Switch>) {
    if disabled.contains(&Switch::Fusion) {
        separate_results(model);
        separate_inputs(model);
    }
    if disabled.contains(&Switch::Residual) {
        widen_sums(model);
    }
    if disabled.contains(&Switch::Sign) {
        forget_signs(model);
    }
}

/// Aligned branches have a bit more than the wider of them, so that no sum of two such can
/// overflow, whatever the weights.
fn widen_sums(model: &mut Model) {
    let graph = &mut model.graph;
    let written = |nodes: &[Node], tensor: usize| {
        let writer = nodes.iter().find(|node| node.output == tensor)?;
        (writer.op == Requantize { drop: 0 }).then(|| writer.inputs[0])
    };
    for index in 0..graph.nodes.len() {
        let Some(Sum { accumulator_bits, .. }) = graph.nodes[index].op.get() else { continue };
        let own = *accumulator_bits;
        let inputs = graph.nodes[index].inputs.clone();
        let branches: Option<Vec<usize>> =
            inputs.iter().map(|input| written(&graph.nodes, *input)).collect();
        let Some(branches) = branches else { continue };
        let widest = branches.iter().map(|branch| graph.tensors[*branch].format.bits + 1).max();
        let width = own.max(widest.unwrap_or(0));
        if let Some(Sum { accumulator_bits, .. }) = graph.nodes[index].op.get_mut() {
            *accumulator_bits = width;
        }
        inputs.iter().for_each(|input| graph.tensors[*input].format.bits = width);
    }
}

/// Treats all values but the input's as if they might be negative.
fn forget_signs(model: &mut Model) {
    let graph = &mut model.graph;
    for node in &mut graph.nodes {
        // An extension of a signed tensor would take a bit to spare.
        if node.op == Extend && !graph.tensors[node.inputs[0]].format.signed {
            node.op = Requantize { drop: 0 }.into();
        }
    }
    let input = graph.input;
    let known = graph.known();
    for (index, tensor) in graph.tensors.iter_mut().enumerate() {
        tensor.format.signed |= index != input && !known[index];
    }
}

/// The width of what a product by weight bits makes, in its own node, and of the sums of its
/// products, if they differ.
fn own_widths(model: &Model, index: usize, known: &[Known]) -> Option<(u32, u32)> {
    let node = &model.graph.nodes[index];
    let inputs: Vec<Known> = node.inputs.iter().map(|input| known[*input].clone()).collect();
    let weights = model.weights.get(&index)?;
    // What others read includes what rounding may add.
    let least = known[node.output].range.width().max(2);
    let results = || Some(node.op.sums(&model.site(index), &inputs)?.width().max(least));
    if let Some(layer) = node.op.get::<Winograd>() {
        let products = layer.product_range(weights, &inputs[0]).width();
        return Some((results()?, products.max(2)));
    }
    let linear: &Linear = node.op.get()?;
    let sums = linear.shift == 0 && sums_up(linear);
    let results = if sums { results()? } else { return None };
    Some((results, results))
}

/// Whether it multiplies by weights of few bits, not by channels' multipliers.
fn sums_up(linear: &Linear) -> bool {
    let Conv { groups, in_channels, kernel, .. } = linear.conv;
    linear.choice.is_some() && (groups < in_channels || kernel != [1, 1] || in_channels == 1)
}

/// Results of products at their own width, with an extension of their own behind them.
fn separate_results(model: &mut Model) {
    let mut known = ranges(model);
    let mut index = 0;
    while index < model.graph.nodes.len() {
        if let Some((results, products)) = own_widths(model, index, &known) {
            let output = model.graph.nodes[index].output;
            let wide = model.graph.tensors[output].format.bits;
            let results = match model.graph.nodes[index].op.get::<Winograd>() {
                Some(layer) => {
                    let grown = products + lemma_1(output_rows(layer.tile));
                    grown.min(wide).max(results)
                }
                None => results,
            };
            narrow_products(&mut model.graph.nodes[index].op, results, products);
            model.graph.tensors[output].format.bits = results;
            let extension = following_extension(model, output);
            if let Some(extension) = extension {
                model.graph.nodes[extension].op = Requantize { drop: 0 }.into();
            } else if results < wide {
                convert_for_readers(model, index + 1, output, wide);
                known = ranges(model);
            }
        }
        index += 1;
    }
}

/// Sums of products at their own width, extended in two steps where they have to be.
fn narrow_products(op: &mut Op, results: u32, products: u32) {
    if let Some(layer) = op.get_mut::<Winograd>() {
        layer.accumulator_bits = results;
        layer.product_bits = products.min(results);
        layer.headroom = false;
        let stage = (layer.product_bits + results) / 2;
        layer.stage_bits = Some(stage).filter(|stage| layer.product_bits < *stage);
    } else if let Some(linear) = op.get_mut::<Linear>() {
        linear.accumulator_bits = results;
    }
}

/// The extension that is all that reads a tensor.
fn following_extension(model: &Model, tensor: usize) -> Option<usize> {
    let nodes = model.graph.nodes.iter().enumerate();
    let mut readers = nodes.filter(|(_, node)| node.inputs.contains(&tensor));
    match (readers.next(), readers.next()) {
        (Some((index, node)), None) if node.op == Extend => Some(index),
        _ => None,
    }
}

/// Lets all that reads a tensor read one of `bits`, made of it by a node of its own.
fn convert_for_readers(model: &mut Model, at: usize, tensor: usize, bits: u32) -> usize {
    let made = converted(model, tensor, bits);
    for node in &mut model.graph.nodes {
        node.inputs.iter_mut().filter(|i| **i == tensor).for_each(|input| *input = made);
    }
    let name = model.graph.tensors[made].name.clone();
    let op = Requantize { drop: 0 }.into();
    let node = Node { name, op, inputs: vec![tensor], output: made };
    insert(model, at, node);
    made
}

/// A new tensor for the values of another.
fn converted(model: &mut Model, tensor: usize, bits: u32) -> usize {
    let Tensor { name, shape, format } = model.graph.tensors[tensor].clone();
    let name = super::widths::unused(&model.graph, &format!("{name}.{bits}"));
    model.graph.tensors.push(Tensor { name, shape, format: Format { bits, ..format } });
    model.graph.tensors.len() - 1
}

/// What products multiply at its own width, with extensions of their own in front of them.
fn separate_inputs(model: &mut Model) {
    let mut known = ranges(model);
    let mut index = 0;
    while index < model.graph.nodes.len() {
        let node = &model.graph.nodes[index];
        let tensor = node.output;
        let wide = model.graph.tensors[tensor].format.bits;
        let drops = node.op.get().is_some_and(|Requantize { drop }| *drop > 0);
        let own = match node.op.is::<Relu>() || drops {
            true => node.op.writes(known[tensor].range),
            false => wide,
        };
        if let Some(stages) = stages(model, tensor, own).filter(|_| own < wide) {
            model.graph.tensors[tensor].format.bits = own;
            let mut last = tensor;
            for (step, bits) in stages.into_iter().enumerate() {
                last = convert_for_readers(model, index + 1 + step, last, bits);
            }
            known = ranges(model);
        }
        index += 1;
    }
}

/// Widths above `own` at which a tensor is extended for the layers that read it; nothing if
/// others read it, too.
fn stages(model: &Model, tensor: usize, own: u32) -> Option<BTreeSet<u32>> {
    let (mut widths, mut most) = (BTreeSet::new(), own);
    for node in model.graph.nodes.iter().filter(|node| node.inputs.contains(&tensor)) {
        let need = if let Some(layer) = node.op.get::<Winograd>() {
            widths.insert(own + lemma_1(feature_rows(layer.tile)));
            layer.product_bits
        } else {
            node.op.get::<Linear>().filter(|linear| sums_up(linear))?.accumulator_bits
        };
        widths.insert(need);
        most = most.max(need);
        if node.inputs[1..].contains(&tensor) {
            return None;
        }
    }
    Some(widths.into_iter().filter(|bits| own < *bits && *bits <= most).collect())
}

/// Bits that a transform adds: on both sides the norm of a row of its matrix.
fn lemma_1(rows: &[&[i64]]) -> u32 {
    let norm = |row: &&[i64]| row.iter().map(|b| b.unsigned_abs()).sum::<u64>();
    2 * rows.iter().map(norm).max().unwrap_or(1).next_power_of_two().ilog2()
}
