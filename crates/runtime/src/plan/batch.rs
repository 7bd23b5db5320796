//! Several inputs in one run: they share rounds and ciphertexts. Every share of a run
//! holds its inputs' tensors one after another.

use graph::{Graph, ops};
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::settings::Settings;

/// Most inputs in one run.
pub(crate) const MOST_INPUTS: usize = 64;
/// Most inputs in one run of a model that takes rows of numbers.
const MOST_ROWS: usize = 1024;
/// Most inputs in one run of a network under encryption: slots of a message.
const MOST_SLOTS: usize = 16384;
/// Elements of all tensors of a run together, with tests and leaves of trees: as many as the graph
/// of one input may have.
const MOST_VALUES: usize = 1 << 28;
/// Positions read by all pooling windows of a run, each of which a plan lists.
const MOST_POOLED: usize = 1 << 24;
/// Products of a run with more than one input, each counted as often as there are inputs: a
/// client looks for the packing of every layer.
const MOST_PRODUCTS: usize = 1 << 15;

/// Whether runs of a batch of inputs of a verified graph, or of several that follow each other, stay within
/// bounds: a client checks the plan of a server that it does not trust.
///
/// # Errors
/// [`Error::Misuse`] that says which bound, and to use a smaller batch.
pub(crate) fn check(graph: &Graph, settings: Settings) -> Result<()> {
    let batch = settings.batch();
    if graph.exact.is_some() {
        return match batch {
            0..=MOST_SLOTS => Ok(()),
            _ => Err(Error::misuse(format!("a batch of {batch} inputs; at most {MOST_SLOTS}"))),
        };
    }
    if batch > 1 && !graph.states.is_empty() && !settings.passing {
        return Err(Error::misuse(
            "a batch of inputs of a model that keeps a state from one input to the next; serve \
             it without --batch",
        ));
    }
    let most = most(graph);
    if batch > most {
        return Err(Error::misuse(format!("a batch of {batch} inputs; use at most {most}")));
    }
    let tensors = graph.tensors.iter().map(graph::Tensor::len);
    let values = tensors.chain(graph.nodes.iter().map(hidden)).fold(0, usize::saturating_add);
    let pooled = graph.nodes.iter().fold(0usize, |sum, node| sum.saturating_add(taps(graph, node)));
    let multiplies =
        |node: &&graph::Node| node.op.is::<ops::MatMul>() || node.op.weighted().is_some();
    let products = if batch == 1 { 0 } else { graph.nodes.iter().filter(multiplies).count() };
    for (what, each, most) in [
        ("values", values, MOST_VALUES),
        ("positions in windows", pooled, MOST_POOLED),
        ("products", products, MOST_PRODUCTS),
    ] {
        if each.saturating_mul(batch) > most {
            return Err(Error::misuse(format!(
                "a batch of {batch} inputs has more than {most} {what}; use a smaller batch"
            )));
        }
    }
    Ok(())
}

/// Most inputs in one run of a graph. Rows of numbers are small, and so are the networks that take them.
pub(crate) fn most(graph: &Graph) -> usize {
    let input = graph.tensors.get(graph.input);
    match input.is_some_and(|input| input.shape.len() == 1) && graph.states.is_empty() {
        true => MOST_ROWS,
        false => MOST_INPUTS,
    }
}

/// Values that a node shares beside its tensors: of trees the tests and the leaves.
fn hidden(node: &graph::Node) -> usize {
    let trees: Option<&ops::Trees> = node.op.get();
    trees.map_or(0, |trees| trees.tests().saturating_add(trees.leaf_values()))
}

/// Positions that the windows of a node read.
fn taps(graph: &Graph, node: &graph::Node) -> usize {
    let window = match (node.op.get(), node.op.get()) {
        (Some(ops::MaxPool(window)), _) | (_, Some(ops::SumPool(window))) => window,
        _ => return 0,
    };
    let taps = window.kernel[0].saturating_mul(window.kernel[1]);
    graph.output_of(node).len().saturating_mul(taps)
}

/// Windows over one input's `values` values as windows over those of `batch` inputs.
pub(crate) fn repeated(windows: Vec<Vec<usize>>, values: usize, batch: usize) -> Vec<Vec<usize>> {
    if batch == 1 {
        return windows;
    }
    let moved = |window: &Vec<usize>, image: usize| {
        window.iter().map(|position| image * values + position).collect()
    };
    let images =
        (0..batch).flat_map(|image| windows.iter().map(move |window| moved(window, image)));
    images.collect()
}

/// The quantised `inputs` of a run, one after another, zeros in place of those that are
/// missing.
pub(crate) fn joined(inputs: &[Vec<i64>], values: usize, batch: usize) -> Zeroizing<Vec<i64>> {
    let mut all = Zeroizing::new(vec![0; values * batch]);
    let filled = all.iter_mut().zip(inputs.iter().flatten());
    filled.for_each(|(to, from)| *to = *from);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_repeat_for_each_input() {
        let windows = vec![vec![0, 2], vec![1]];
        assert_eq!(repeated(windows.clone(), 3, 1), windows);
        assert_eq!(repeated(windows, 3, 2), [vec![0, 2], vec![1], vec![3, 5], vec![4]]);
    }

    #[test]
    fn missing_inputs_are_zeros() {
        assert_eq!(*joined(&[vec![1, -2], vec![3, 4]], 2, 3), [1, -2, 3, 4, 0, 0]);
    }
}
