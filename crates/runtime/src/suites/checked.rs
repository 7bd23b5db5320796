//! Suite `checked`: convolutional networks and decision trees against a client that sends anything. Commands call it
//! `--secure-against client`.

use std::collections::BTreeMap;

use graph::ops::trees::KEY_BITS;
use graph::ops::{Paths, Trees};
use graph::{Graph, Linear, Node, Rounding, ops};
use mpc::checked::{Block, Entered, Forest, Network, Operand, Shown};
use mpc::garbled::Clip;
use mpc::linear::coefficient::Layer;
use wire::{Error, Result};

use super::refusal::at;
use super::suite::Suite;
use crate::linear::checked::CheckedNetwork;
use crate::linear::trees::selection;
use crate::plan::batch::repeated;
use crate::plan::options::OptionsByStep;
use crate::plan::settings::{Reveal, Settings};
use crate::step::{Action, Step, windows};

/// The suite.
pub(super) static SUITE: Suite = Suite {
    name: "checked",
    summary: "convolutional networks and decision trees against a client that sends anything, with a check before the result",
    steps,
    rounds_exactly: true,
    secure_against_client: true,
    ..Suite::PLAIN
};

fn steps(graph: &Graph, settings: Settings, _: &OptionsByStep) -> Result<Vec<Step>> {
    settled(settings)?;
    let entered = entered(graph, settings.batch())?;
    let (network, nodes, forest) = match graph.nodes.as_slice() {
        [node] if node.op.is::<Trees>() => trees(graph, node, entered, settings)?,
        _ => layers(graph, entered, settings)?,
    };
    let action = Action::linear(CheckedNetwork::new(network, nodes, forest));
    let reads = vec![graph.input];
    Ok(vec![Step { name: "network".into(), node: None, reads, writes: graph.output, action }])
}

/// A network, the nodes that have the weights of its layers, and the trees at its end.
type Found = (Network, Vec<usize>, Option<Forest>);

/// What the client enters, of so many inputs.
fn entered(graph: &Graph, batch: usize) -> Result<Entered> {
    let [low, high] = graph.input_range;
    let distance = high.checked_sub(low).and_then(|distance| u64::try_from(distance).ok());
    let distance = distance.ok_or_else(|| Error::misuse("an input whose range is empty"))?;
    let input = graph.tensors.get(graph.input).map_or(0, |tensor| tensor.len());
    Ok(Entered { batch, count: input, low, bits: (u64::BITS - distance.leading_zeros()).max(1) })
}

/// A network of layers.
fn layers(graph: &Graph, entered: Entered, settings: Settings) -> Result<Found> {
    let Layers { blocks, nodes, .. } = Layers::new(graph, entered.batch)?;
    let shown = match settings.reveal {
        Reveal::Label => Shown::Largest,
        _ => Shown::Values,
    };
    let network = Network::new(entered, &blocks, shown)?;
    let output = graph.tensors.get(graph.output).map_or(0, |tensor| tensor.len());
    if network.layers().last().map(Layer::outputs) != output.checked_mul(entered.batch) {
        return Err(Error::misuse("layers that do not make the output"));
    }
    Ok((network, nodes, None))
}

/// Trees: a layer selects what their tests compare, and circuits find leaves.
fn trees(graph: &Graph, node: &Node, entered: Entered, settings: Settings) -> Result<Found> {
    let Some(trees) = node.op.get::<Trees>() else { return Err(refused(node, "has no trees")) };
    if settings.reveal != Reveal::Output {
        return Err(Error::misuse(
            "trees that are secure against their client show their scores; take --reveal output, or compile \
             without --secure-against client",
        ));
    }
    if matches!(trees.paths, Paths::Walk(_)) {
        let advice = "trees that are secure against their client have at most 8 levels; train with \
                      max_depth=8, or compile without --secure-against client";
        return Err(at(&node.name, Error::misuse(format!("walks through a pool: {advice}"))));
    }
    let output = graph.output_of(node);
    let forest = Forest {
        trees: trees.trees.saturating_mul(entered.batch),
        paths: trees.paths,
        comparisons: trees.comparisons,
        values: trees.values,
        outputs: output.len(),
        batch: entered.batch,
        bits: output.format.bits,
    };
    let (linear, _) = selection(trees, entered.count, 1);
    let input = Operand::default();
    let block = Block {
        linear: &linear,
        input,
        addend: None,
        out_bits: KEY_BITS,
        windows: None,
        clip: None,
    };
    let network = Network::new(entered, &[block], Shown::Leaves(forest))?;
    Ok((network, vec![0], Some(forest)))
}

/// Refuses what has no form that is checked.
fn settled(settings: Settings) -> Result<()> {
    if !matches!(settings.reveal, Reveal::Output | Reveal::Label) {
        return Err(Error::misuse(
            "a model that is secure against its client shows it all outputs or the best label; take --reveal \
             output or label, or compile without --secure-against client",
        ));
    }
    Ok(())
}

/// The layers of a graph as they are found, and what its tensors are of them.
struct Layers<'a> {
    graph: &'a Graph,
    /// Inputs that are run together.
    batch: usize,
    blocks: Vec<Block<'a>>,
    /// For each layer the node that has its weights.
    nodes: Vec<usize>,
    /// What each tensor is, where it was made.
    tensors: BTreeMap<usize, Operand>,
    /// How many nodes read each tensor.
    readers: BTreeMap<usize, usize>,
}

impl<'a> Layers<'a> {
    fn new(graph: &'a Graph, batch: usize) -> Result<Self> {
        // Who asks for the output reads it as well.
        let mut readers = BTreeMap::from([(graph.output, 1)]);
        for tensor in graph.nodes.iter().flat_map(|node| &node.inputs) {
            *readers.entry(*tensor).or_insert(0) += 1;
        }
        let tensors = BTreeMap::from([(graph.input, Operand::default())]);
        let mut layers =
            Self { graph, batch, blocks: Vec::new(), nodes: Vec::new(), tensors, readers };
        for (index, node) in graph.nodes.iter().enumerate() {
            let made = layers.node(index, node)?;
            layers.tensors.insert(node.output, made);
        }
        let last = Operand { from: layers.blocks.len(), sums: None };
        if layers.tensors.get(&graph.output) != Some(&last) {
            return Err(Error::misuse("a network that does not end with a linear layer"));
        }
        Ok(layers)
    }

    /// What a node makes.
    fn node(&mut self, index: usize, node: &'a Node) -> Result<Operand> {
        if let Some(linear) = node.op.get::<Linear>() {
            return self.linear(index, node, linear);
        }
        let [input] = node.inputs.as_slice() else { return Err(refused(node, "joins branches")) };
        let Operand { from, sums } = self.tensor(*input)?;
        if node.op == ops::Reshape || node.op.is::<ops::Extend>() {
            return Ok(Operand { from, sums });
        }
        let of_all =
            |window| repeated(windows(window), self.graph.input_of(node, 0).len(), self.batch);
        if let Some(ops::SumPool(window)) = node.op.get() {
            let sums = summed(sums, of_all(window)).map_err(|error| at(&node.name, error))?;
            return Ok(Operand { from, sums: Some(sums) });
        }
        // Maxima and clips never turn the order of two values, so they commute. What is clipped or pooled must
        // not be read by anything else, since circuits make one result.
        let alone = sums.is_none() && self.readers.get(input) == Some(&1);
        let block = from.checked_sub(1).filter(|_| alone).and_then(|at| self.blocks.get_mut(at));
        let clip = node.op.get().map(|ops::Relu { saturate, low }| (*saturate, *low));
        let pool = node.op.get().map(|ops::MaxPool(window)| of_all(window));
        match (block, clip, pool) {
            (Some(Block { clip: clip @ None, .. }), Some((saturate, 0)), None) => {
                *clip = Some(Clip { low: 0, saturate });
            }
            (Some(Block { windows: seen @ None, .. }), None, pool @ Some(_)) => *seen = pool,
            _ => return Err(refused(node, "is no linear layer, nor its ReLU or pool")),
        }
        Ok(Operand { from, sums })
    }

    fn linear(&mut self, index: usize, node: &'a Node, linear: &'a Linear) -> Result<Operand> {
        if linear.rounding != Rounding::Exact {
            return Err(refused(node, "does not round exactly"));
        }
        let operands: Vec<Operand> =
            node.inputs.iter().map(|at| self.tensor(*at)).collect::<Result<_>>()?;
        let mut operands = operands.into_iter();
        let (Some(input), addend) = (operands.next(), operands.next()) else {
            return Err(refused(node, "reads nothing"));
        };
        let out_bits = self.graph.output_of(node).format.bits;
        self.blocks.push(Block { linear, input, addend, out_bits, windows: None, clip: None });
        self.nodes.push(index);
        Ok(Operand { from: self.blocks.len(), sums: None })
    }

    fn tensor(&self, at: usize) -> Result<Operand> {
        let found = self.tensors.get(&at).cloned();
        found.ok_or_else(|| Error::misuse("a tensor that no node makes"))
    }
}

/// Most positions that sums of sums add up: a client lists those of a server that it does not trust.
const MOST_SUMMED: usize = 1 << 24;

/// The positions that sums of windows of sums add up.
fn summed(sums: Option<Vec<Vec<usize>>>, windows: Vec<Vec<usize>>) -> Result<Vec<Vec<usize>>> {
    let Some(sums) = sums else { return Ok(windows) };
    let joined = |window: &Vec<usize>| -> Vec<usize> {
        window.iter().filter_map(|at| sums.get(*at)).flatten().copied().collect()
    };
    let counts = windows.iter().flatten().filter_map(|at| sums.get(*at)).map(Vec::len);
    if counts.fold(0, usize::saturating_add) > MOST_SUMMED {
        let why = format!("averages of averages of more than {MOST_SUMMED} values; pool once");
        return Err(Error::misuse(why));
    }
    Ok(windows.iter().map(joined).collect())
}

fn refused(node: &Node, what: &str) -> Error {
    let advice = "models that are secure against their client have only convolutions, fully connected layers, ReLUs, \
                  pools and residual sums, or only decision trees, so far; compile this one without --secure-against client";
    at(&node.name, Error::misuse(format!("{what}: {advice}")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_sums_are_listed_up_to_a_bound() {
        let sums = |of: usize| Some(vec![(0..of).collect(), vec![1]]);
        assert_eq!(summed(sums(3), vec![vec![0, 1]]).unwrap(), [vec![0, 1, 2, 1]]);
        let windows = vec![vec![0; 1 << 12]; 1 << 5];
        assert!(matches!(summed(sums(1 << 8), windows), Err(Error::Misuse(_))));
    }
}
