//! Checks of the private part, and what both parties may say about the public one.

use crate::error::{Check, Error, Result};
use crate::interpret::unscaled;
use crate::ir::{Graph, Model, Node};
use crate::ops::{Known, Part, Range};
use crate::verify::verify;

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
        return unscaled::check(model).map(|_| ());
    }
    let ranges = ranges(model);
    for (index, node) in graph.nodes.iter().enumerate() {
        let inputs: Vec<Known> = node.inputs.iter().map(|i| ranges[*i].clone()).collect();
        (node.op.fits(&model.site(index), &inputs))
            .and_then(|()| check_readers(graph, node, &inputs))
            .map_err(|why| Error::invalid("verify", &node.name, why))?;
    }
    for state in &graph.states {
        if !of(&state.range).holds(ranges[state.after].range) {
            let why = "leaves its range from one input to the next";
            return Err(Error::invalid("verify", &graph.tensors[state.before].name, why));
        }
    }
    for (index, tensor) in graph.tensors.iter().enumerate() {
        let need = width_of_values(graph, index, ranges[index].range);
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
        let fits = match (node.op.weighted(), model.weights.get(&index)) {
            (Some(weighted), Some(weights)) => weighted.check(model.graph.output_of(node), weights),
            (Some(_), None) => Err("has no weights".into()),
            (None, Some(_)) => Err("has weights but is not linear".into()),
            (None, None) => Ok(()),
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

/// Width that a tensor needs for its values alone: an output's are compared with each other.
pub(crate) fn width_of_values(graph: &Graph, tensor: usize, range: Range) -> u32 {
    let writer = graph.nodes.iter().find(|node| node.output == tensor);
    match writer {
        _ if tensor == graph.output => range.difference_width(),
        Some(node) => node.op.writes(range),
        None => range.width(),
    }
}

/// What is known of all tensors of a model whose shapes were verified.
pub(crate) fn ranges(model: &Model) -> Vec<Known> {
    let graph = &model.graph;
    let mut ranges = vec![Known::from(Range::ZERO); graph.tensors.len()];
    ranges[graph.input] = input(graph);
    for state in &graph.states {
        ranges[state.before] = of(&state.range).into();
    }
    for (index, node) in graph.nodes.iter().enumerate() {
        let inputs: Vec<Known> = node.inputs.iter().map(|i| ranges[*i].clone()).collect();
        ranges[node.output] = node.op.output(&model.site(index), &inputs);
    }
    ranges
}

fn of([low, high]: &[i64; 2]) -> Range {
    Range::new((*low).into(), (*high).into())
}

/// The facts that are known about the values of the graph's input.
fn input(graph: &Graph) -> Known {
    let part = |range: &[i64; 2]| Part { length: 1, range: of(range), norm: None };
    let parts = graph.input_rows.iter().map(part).collect();
    Known::in_parts(of(&graph.input_range), parts)
}

fn check_readers(graph: &Graph, node: &Node, inputs: &[Known]) -> Check<()> {
    for (tensor, range) in node.inputs.iter().map(|i| &graph.tensors[*i]).zip(inputs) {
        let need = node.op.reads(tensor.format.signed, range.range);
        let have = tensor.format.bits;
        if need > have {
            return Err(format!("needs `{}` with {need} bits, it has {have}", tensor.name));
        }
    }
    Ok(())
}

impl Graph {
    /// Returns canonical JSON of what the client learns: scales of interior tensors, which it does
    /// not need, are 1.
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
