//! Checks of the private part, and what both parties may say about the public one.

use crate::choice::WeightBits;
use crate::ir::{Graph, Linear, Model, Node, NodeWeights, Op};
use crate::shapes::Check;
use crate::verify::verify;
use crate::width::{self, Known, Range};
use crate::{Error, Result};
use sha2::{Digest, Sha256};

/// Longest JSON that [`Graph::from_json`] reads, in bytes.
const MAX_JSON: usize = 1 << 24;

/// Checks the graph, the weights' shapes, and that no input in range can make
/// any value leave its width.
///
/// # Errors
/// [`Error::Invalid`] with pass `verify`, naming the node or tensor.
pub fn verify_model(model: &Model) -> Result<()> {
    verify_shapes(model)?;
    let graph = &model.graph;
    if graph.exact.is_some() {
        return crate::exact::check(model).map(|_| ());
    }
    let ranges = ranges(model);
    for (index, node) in graph.nodes.iter().enumerate() {
        let inputs: Vec<Known> = node.inputs.iter().map(|i| ranges[*i].clone()).collect();
        check_accumulator(graph, node, model.weights.get(&index), &inputs)
            .and_then(|()| check_readers(graph, node, &inputs))
            .and_then(|()| check_values(graph, node, &inputs))
            .map_err(|why| Error::invalid("verify", &node.name, why))?;
    }
    for (index, tensor) in graph.tensors.iter().enumerate() {
        let writer = graph.nodes.iter().find(|node| node.output == index);
        let need = width::width_of_values(writer, ranges[index].range, index == graph.output);
        if need > tensor.format.bits {
            let why = format!("values need {need} bits, it has {}", tensor.format.bits);
            return Err(Error::invalid("verify", &tensor.name, why));
        }
    }
    Ok(())
}

/// Checks the graph and the weights' shapes.
pub(crate) fn verify_shapes(model: &Model) -> Result<()> {
    verify(&model.graph)?;
    for (index, node) in model.graph.nodes.iter().enumerate() {
        let fits = match (&node.op, model.weights.get(&index)) {
            (Op::Linear(linear), Some(weights)) => check_weights(linear, weights),
            (Op::Winograd(layer), Some(weights)) => {
                let want = layer.conv.out_channels * layer.conv.in_channels * layer.places();
                let counts = (want, layer.conv.out_channels);
                check_counts(counts, weights).and_then(|()| check_chosen(&layer.choice, weights))
            }
            (Op::Offset, Some(weights)) => {
                let want = model.graph.output_of(node).len();
                let fits = weights.weight.is_empty() && weights.bias.len() == want;
                fits.then_some(()).ok_or(format!("needs {want} constants"))
            }
            (Op::Embedding(table), Some(weights)) => {
                let columns = model.graph.output_of(node).shape[0];
                let want = table.rows.saturating_mul(columns);
                let fits = weights.weight.len() == want && weights.bias.is_empty();
                let limit = 1i64 << (table.weight_bits - 1);
                let held = weights.weight.iter().all(|w| i64::from(*w).abs() < limit);
                (fits && held).then_some(()).ok_or(format!("needs {want} entries of its width"))
            }
            (Op::Linear(_) | Op::Winograd(_) | Op::Offset | Op::Embedding(_), None) => {
                Err("has no weights".into())
            }
            (_, Some(_)) => Err("has weights but is not linear".into()),
            (_, None) => Ok(()),
        };
        fits.map_err(|why| Error::invalid("verify", &node.name, why))?;
    }
    match model.weights.keys().next_back() {
        Some(last) if *last >= model.graph.nodes.len() => {
            Err(Error::invalid("verify", "weights", format!("there is no node #{last}")))
        }
        _ => Ok(()),
    }
}

fn check_weights(linear: &Linear, weights: &NodeWeights) -> Check<()> {
    let conv = &linear.conv;
    let want = conv.out_channels * width::taps_per_channel(conv);
    check_counts((want, conv.out_channels), weights)?;
    if let Some(choice) = &linear.choice {
        check_chosen(choice, weights)?;
    }
    let limit = 1i64 << (linear.weight_bits - 1);
    let fits = weights.weight.iter().all(|w| i64::from(*w).abs() < limit);
    fits.then_some(()).ok_or(format!("a weight exceeds {} bits", linear.weight_bits))
}

fn check_counts((count, biases): (usize, usize), weights: &NodeWeights) -> Check<()> {
    let fits = weights.weight.len() == count && weights.bias.len() == biases;
    fits.then_some(()).ok_or(format!("needs {count} weights and {biases} biases"))
}

fn check_chosen(choice: &WeightBits, weights: &NodeWeights) -> Check<()> {
    let bits = choice.choose(&weights.weight);
    bits.map(|_| ()).map_err(|at| format!("weight {at} has no bits"))
}

/// What is known of all tensors of a model whose shapes were verified.
pub(crate) fn ranges(model: &Model) -> Vec<Known> {
    let graph = &model.graph;
    let mut ranges = vec![Known::from(Range::new(0, 0)); graph.tensors.len()];
    ranges[graph.input] = width::input(graph);
    for (index, node) in graph.nodes.iter().enumerate() {
        let inputs: Vec<Known> = node.inputs.iter().map(|i| ranges[*i].clone()).collect();
        ranges[node.output] = width::output(graph, node, model.weights.get(&index), &inputs);
    }
    ranges
}

fn check_accumulator(
    graph: &Graph,
    node: &Node,
    weights: Option<&NodeWeights>,
    inputs: &[Known],
) -> Check<()> {
    let (range, bits) = match (&node.op, weights) {
        (Op::Linear(linear), Some(weights)) => {
            (width::accumulator(linear, weights, inputs), linear.accumulator_bits)
        }
        (Op::Winograd(layer), Some(weights)) => {
            let products = width::winograd::products(layer, weights, &inputs[0]);
            let need = products.width() + u32::from(layer.spare);
            if need > layer.product_bits && layer.product_bits < layer.accumulator_bits {
                return Err(format!("products need {need} bits, have {}", layer.product_bits));
            }
            (width::winograd::accumulator(layer, weights, inputs), layer.accumulator_bits)
        }
        (Op::Embedding(table), Some(weights)) => {
            (width::entries(table, weights), table.weight_bits)
        }
        (Op::MatMul(matmul), _) => {
            let inner = graph.input_of(node, 0).shape.last().copied().unwrap_or(1);
            (width::product_accumulator(matmul, inner, inputs), matmul.accumulator_bits)
        }
        (Op::Sum { multipliers, accumulator_bits, shift }, _) => {
            (width::sum_accumulator(*multipliers, *shift, inputs), *accumulator_bits)
        }
        _ => return Ok(()),
    };
    let need = range.width();
    (need <= bits).then_some(()).ok_or(format!("accumulator needs {need} bits, has {bits}"))
}

fn check_readers(graph: &Graph, node: &Node, inputs: &[Known]) -> Check<()> {
    for (tensor, range) in node.inputs.iter().map(|i| &graph.tensors[*i]).zip(inputs) {
        let (need, have) =
            (width::width_for_reader(node, tensor.format.signed, range.range), tensor.format.bits);
        if need > have {
            return Err(format!("needs `{}` with {need} bits, it has {have}", tensor.name));
        }
    }
    Ok(())
}

/// Values that an operator takes only within bounds of its own.
fn check_values(graph: &Graph, node: &Node, inputs: &[Known]) -> Check<()> {
    match &node.op {
        Op::Product { factor_bits } => {
            let fits = inputs.iter().zip(factor_bits).all(|(range, bits)| range.width() <= *bits);
            fits.then_some(()).ok_or("a factor exceeds its width".into())
        }
        Op::Lookup { low, values } => {
            let table = Range::new((*low).into(), i128::from(*low) + values.len() as i128 - 1);
            let inside = table.low <= inputs[0].low && inputs[0].high <= table.high;
            inside.then_some(()).ok_or("looks up beyond its table".into())
        }
        Op::Embedding(table) => {
            let inside = 0 <= inputs[0].low && inputs[0].high < table.rows as i128;
            inside.then_some(()).ok_or("looks up beyond its table".into())
        }
        Op::Softmax { .. } => {
            let span = i128::from(graph.softmax(node)?.span());
            let inside = inputs[0].high - inputs[0].low <= span;
            inside.then_some(()).ok_or(format!("differences exceed {span}"))
        }
        Op::Smu { smooth, .. } | Op::ReluSoftmax { smooth, .. } => {
            let side = i128::from(smooth.offset());
            let inside = -side <= inputs[0].low && inputs[0].high < side;
            inside.then_some(()).ok_or(format!("values exceed {} bits", smooth.bits))
        }
        Op::LayerNorm { bits, .. } => {
            let side = 1 << (bits - 2);
            let inside = -side <= inputs[0].low && inputs[0].high < side;
            inside.then_some(()).ok_or(format!("values exceed {bits} bits"))
        }
        _ => Ok(()),
    }
}

impl Graph {
    /// Canonical JSON of what the client learns: scales of interior tensors,
    /// which it does not need, are 1.
    pub fn public_json(&self) -> String {
        let mut public = self.clone();
        for (index, tensor) in public.tensors.iter_mut().enumerate() {
            if index != self.input && index != self.output {
                tensor.format.scale = 1.0;
            }
        }
        // A struct of numbers, strings and lists always has a JSON form.
        serde_json::to_string(&public).unwrap_or_default()
    }

    /// Reads and verifies a graph from outside.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for text that is not a graph, [`Error::Invalid`] with
    /// pass `load` for a graph that breaks an invariant.
    pub fn from_json(text: &str) -> Result<Self> {
        if text.len() > MAX_JSON {
            return Err(Error::Corrupt(format!("graph: longer than {MAX_JSON} bytes")));
        }
        let graph: Self = serde_json::from_str(text)
            .map_err(|e| Error::Corrupt(format!("graph: {}", printable(&e.to_string()))))?;
        verify(&graph).map_err(|error| error.in_pass("load"))?;
        Ok(graph)
    }
}

/// The start of a text from outside, fit for a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().take(256).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// SHA-256 of [`Graph::public_json`]: what both parties compare in the handshake.
pub fn digest(graph: &Graph) -> [u8; 32] {
    Sha256::digest(graph.public_json().as_bytes()).into()
}
