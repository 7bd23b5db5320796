//! The oracle: the very integers that the protocols compute, in the clear.
//!
//! Sums wrap mod 2^64; graphs that are never rescaled have an interpreter of their own,
//! `unscaled.rs`. In a model that [`crate::verify_model`] accepts nothing ever wraps, because
//! every accumulator fits its width.

mod stochastic;
pub(crate) mod unscaled;

pub use stochastic::interpret_stochastic;

use crate::error::{Error, Result};
use crate::ir::{Graph, Model};
use crate::keys::key;
use crate::model::verify_shapes;
use crate::ops::{Encoding, Kernel};
use crate::tensor::Part;
use rayon::prelude::*;
use ring::Fixed;

/// Returns the output integers for one quantised input.
///
/// # Errors
/// [`Error::Misuse`] when the input has the wrong length or leaves
/// [`Graph::input_range`]; [`Error::Invalid`] for an inconsistent model.
pub fn interpret(model: &Model, input: &[i64]) -> Result<Vec<i64>> {
    let mut tensors = trace(model, input)?;
    Ok(std::mem::take(&mut tensors[model.graph.output]))
}

/// [`interpret`] for many inputs, in parallel on rayon's current pool. Of a model with states they
/// are the inputs of one session, in order.
///
/// # Errors
/// [`Error::Misuse`] and [`Error::Invalid`] as of [`interpret`].
pub fn interpret_batch(model: &Model, inputs: &[Vec<i64>]) -> Result<Vec<Vec<i64>>> {
    verify_shapes(model)?;
    let kernels = kernels(model);
    let one = |input: &Vec<i64>, states: &mut Vec<Vec<i64>>| {
        let mut tensors = run(model, &kernels, input, states)?;
        *states = model.graph.states.iter().map(|state| tensors[state.after].clone()).collect();
        Ok(std::mem::take(&mut tensors[model.graph.output]))
    };
    if model.graph.states.is_empty() {
        return inputs.par_iter().map(|input| one(input, &mut vec![])).collect();
    }
    let mut states = first_states(&model.graph);
    inputs.iter().map(|input| one(input, &mut states)).collect()
}

/// The states before the first input of a session.
fn first_states(graph: &Graph) -> Vec<Vec<i64>> {
    graph.states.iter().map(|state| vec![0; graph.tensors[state.before].len()]).collect()
}

/// Returns the values of every tensor, by its index in the graph, for the first input of a session.
///
/// # Errors
/// [`Error::Misuse`] and [`Error::Invalid`] as of [`interpret`].
pub fn trace(model: &Model, input: &[i64]) -> Result<Vec<Vec<i64>>> {
    verify_shapes(model)?;
    run(model, &kernels(model), input, &first_states(&model.graph))
}

/// Returns the index of the first largest value; 0 for an empty slice.
pub fn argmax(values: &[i64]) -> usize {
    (1..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best })
}

/// The faster forms of the operators that have some, by node.
fn kernels(model: &Model) -> Vec<Option<Kernel<'_>>> {
    let nodes = model.graph.nodes.iter().enumerate();
    nodes.map(|(index, node)| node.op.kernel(model.weights.get(&index))).collect()
}

/// The model's shapes were verified.
fn run(
    model: &Model,
    kernels: &[Option<Kernel<'_>>],
    input: &[i64],
    states: &[Vec<i64>],
) -> Result<Vec<Vec<i64>>> {
    run_rounded(model, kernels, input, states, &mut |_, _| {})
}

/// What is done to the results of each node, by its index.
type Rounded<'a> = &'a mut dyn FnMut(usize, &mut [i64]);

/// [`run`] with the results of each node `rounded`.
fn run_rounded(
    model: &Model,
    kernels: &[Option<Kernel<'_>>],
    input: &[i64],
    states: &[Vec<i64>],
    rounded: Rounded<'_>,
) -> Result<Vec<Vec<i64>>> {
    let graph = &model.graph;
    check_input(graph, input)?;
    if let Some(exact) = &graph.exact {
        return unscaled::run(model, exact, input);
    }
    let mut tensors = vec![Vec::new(); graph.tensors.len()];
    tensors[graph.input] = input.to_vec();
    for (state, values) in graph.states.iter().zip(states) {
        tensors[state.before].clone_from(values);
    }
    for (index, (node, kernel)) in graph.nodes.iter().zip(kernels).enumerate() {
        let inputs: Vec<&[i64]> = node.inputs.iter().map(|i| tensors[*i].as_slice()).collect();
        let fast = kernel.as_ref().and_then(|kernel| kernel(&inputs));
        let mut output = match fast {
            Some(output) => output,
            None => (node.op.interpret(&model.site(index), &inputs))
                .map_err(|why| Error::internal(&node.name, why))?,
        };
        rounded(index, &mut output);
        tensors[node.output] = output;
    }
    Ok(tensors)
}

fn check_input(graph: &Graph, input: &[i64]) -> Result<()> {
    let want = graph.tensors[graph.input].len();
    if input.len() != want {
        return Err(Error::Misuse(format!("input has {} values, needs {want}", input.len())));
    }
    for (v, [low, high]) in input.iter().zip(ranges_of_input(graph)) {
        if !(low..=high).contains(v) {
            return Err(Error::Misuse(format!("input value {v} is outside {low}..={high}")));
        }
    }
    Ok(())
}

/// The range of each value of the input.
fn ranges_of_input(graph: &Graph) -> impl Iterator<Item = [i64; 2]> {
    let rows = match graph.input_rows[..] {
        [] => std::slice::from_ref(&graph.input_range),
        _ => &graph.input_rows,
    };
    let each = graph.tensors[graph.input].len() / rows.len();
    rows.iter().flat_map(move |range| std::iter::repeat_n(*range, each))
}

/// The unit of each element of parts; 1 where there are none.
fn units(parts: &[Part]) -> impl Iterator<Item = f64> {
    let named = parts.iter().flat_map(Part::unit_of_each);
    named.chain(std::iter::repeat(1.0))
}

impl Graph {
    /// Returns the client's integers: nearest, halves away from zero, clipped to
    /// [`Graph::input_range`]; or the keys of all values, where the graph reads keys.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a wrong length and, but for keys, for values that are not finite.
    pub fn quantize_input(&self, values: &[f32]) -> Result<Vec<i64>> {
        let tensor = &self.tensors[self.input];
        if values.len() != tensor.len() {
            let shape = self.input_shape();
            return Err(Error::Misuse(format!(
                "input has {} values, needs {shape:?}",
                values.len()
            )));
        }
        let ranges = ranges_of_input(self);
        if self.encoding() == Encoding::Keys {
            let keys = values.iter().zip(ranges);
            return Ok(keys.map(|(value, [low, high])| key(*value).clamp(low, high)).collect());
        }
        let encode = |(((index, value), range), unit): (((usize, &f32), [i64; 2]), f64)| {
            let fixed = Fixed { scale: tensor.format.scale, range };
            let integer = fixed.encode(f64::from(*value) / unit);
            let why = || Error::Misuse(format!("input value {index} is not a finite number"));
            integer.ok_or_else(why)
        };
        let units = units(&self.inputs);
        values.iter().enumerate().zip(ranges).zip(units).map(encode).collect()
    }

    /// Returns real values of output integers.
    pub fn dequantize_output(&self, values: &[i64]) -> Vec<f64> {
        let scale = self.tensors[self.output].format.scale;
        let units = units(&self.outputs);
        values.iter().zip(units).map(|(v, unit)| *v as f64 * scale * unit).collect()
    }
}
