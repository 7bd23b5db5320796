//! What a client brings: its input as integers, and randomness.

use graph::Graph;
use ring::Random;
use wire::{Error, Result};

/// Returns a generator seeded by the operating system.
///
/// # Errors
/// [`Error::Transport`] when the system has no entropy.
pub fn random() -> Result<Random> {
    Random::from_os().map_err(|e| Error::transport(format!("no entropy from the system: {e}")))
}

/// Quantises one input or a batch.
///
/// # Errors
/// [`Error::Misuse`] for another shape than the model's, or values that are not
/// finite.
pub fn quantize(graph: &Graph, values: &[f32], shape: &[usize]) -> Result<Vec<Vec<i64>>> {
    let input = graph.tensors.get(graph.input).ok_or_else(|| Error::misuse("no input"))?;
    let own = graph.input_shape();
    let count = match shape.split_first() {
        _ if shape == own => 1,
        Some((count, rest)) if rest == own => *count,
        _ => 0,
    };
    let fits = input.len().checked_mul(count) == Some(values.len());
    if count == 0 || input.is_empty() || !fits {
        return Err(Error::misuse(format!(
            "the model takes one input of shape {own:?}, or N of them with a leading axis; \
             this one has shape {shape:?}"
        )));
    }
    let each = values.chunks_exact(input.len()).map(|values| graph.quantize_input(values));
    each.collect::<graph::Result<_>>().map_err(|e| Error::misuse(e.to_string()))
}
