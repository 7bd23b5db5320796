//! Suite `checked`: convolutional networks against a client that sends anything. Commands call it
//! `--secure-against client`.

use graph::{Graph, Linear, Node, Rounding, ops};
use mpc::checked::{Block, Entered, Network, Shown};
use mpc::garbled::Clip;
use mpc::linear::coefficient::Layer;
use wire::{Error, Result};

use super::refusal::at;
use super::suite::Suite;
use crate::linear::checked::CheckedNetwork;
use crate::plan::options::OptionsByStep;
use crate::plan::settings::{Reveal, Settings};
use crate::step::{Action, Step, windows};

/// The suite.
pub(super) static SUITE: Suite = Suite {
    name: "checked",
    summary: "convolutional networks against a client that sends anything, with a check before the result",
    steps,
    rounds_exactly: true,
    secure_against_client: true,
    ..Suite::PLAIN
};

fn steps(graph: &Graph, settings: Settings, _: &OptionsByStep) -> Result<Vec<Step>> {
    settled(settings)?;
    let (blocks, nodes) = layers(graph)?;
    let [low, high] = graph.input_range;
    let distance = high.checked_sub(low).and_then(|distance| u64::try_from(distance).ok());
    let distance = distance.ok_or_else(|| Error::misuse("an input whose range is empty"))?;
    let input = graph.tensors.get(graph.input).map_or(0, |tensor| tensor.len());
    let bits = (u64::BITS - distance.leading_zeros()).max(1);
    let shown = match settings.reveal {
        Reveal::Label => Shown::Largest,
        _ => Shown::Values,
    };
    let network = Network::new(Entered { count: input, low, bits }, &blocks, shown)?;
    let output = graph.tensors.get(graph.output).map_or(0, |tensor| tensor.len());
    if network.layers().last().map(Layer::outputs) != Some(output) {
        return Err(Error::misuse("layers that do not make the output"));
    }
    let action = Action::linear(CheckedNetwork::new(network, nodes));
    let reads = vec![graph.input];
    Ok(vec![Step { name: "network".into(), node: None, reads, writes: graph.output, action }])
}

/// Refuses what has no form that is checked.
fn settled(settings: Settings) -> Result<()> {
    if !matches!(settings.reveal, Reveal::Output | Reveal::Label) {
        return Err(Error::misuse(
            "a model that is secure against its client shows it all outputs or the best label; take --reveal \
             output or label, or compile without --secure-against client",
        ));
    }
    if settings.store() > 0 || settings.batch() > 1 {
        return Err(Error::misuse(
            "a model that is secure against its client runs inputs one by one, unprepared; drop --batch and \
             --offline, or compile without --secure-against client",
        ));
    }
    Ok(())
}

/// The layers, and for each the node that has its weights.
fn layers(graph: &Graph) -> Result<(Vec<Block<'_>>, Vec<usize>)> {
    let (mut layers, mut nodes, mut last) = (Vec::<Block<'_>>::new(), Vec::new(), graph.input);
    for (index, node) in graph.nodes.iter().enumerate() {
        if node.inputs.as_slice() != [last] {
            return Err(refused(node, "joins branches"));
        }
        last = node.output;
        if node.op == ops::Reshape || node.op.is::<ops::Extend>() {
            continue;
        }
        if let Some(linear) = node.op.get::<Linear>() {
            if linear.addend.is_some() || linear.rounding != Rounding::Exact {
                return Err(refused(node, "adds a branch or does not round exactly"));
            }
            let out_bits = graph.output_of(node).format.bits;
            layers.push(Block { linear, out_bits, windows: None, clip: None });
            nodes.push(index);
            continue;
        }
        // Maxima and clips never turn the order of two values, so they commute.
        let clip = node.op.get().map(|ops::Relu { saturate, low }| (*saturate, *low));
        let pool = node.op.get().map(|ops::MaxPool(window)| windows(window));
        match (layers.last_mut(), clip, pool) {
            (Some(Block { clip: clip @ None, .. }), Some((saturate, 0)), None) => {
                *clip = Some(Clip { low: 0, saturate });
            }
            (Some(Block { windows: seen @ None, .. }), None, pool @ Some(_)) => *seen = pool,
            _ => return Err(refused(node, "is no linear layer, nor its ReLU or maximum pool")),
        }
    }
    if last != graph.output {
        return Err(Error::misuse("nodes behind the output"));
    }
    Ok((layers, nodes))
}

fn refused(node: &Node, what: &str) -> Error {
    let advice = "models that are secure against their client have only convolutions, fully connected layers, ReLUs \
                  and maximum pools so far; compile this one without --secure-against client";
    at(&node.name, Error::misuse(format!("{what}: {advice}")))
}
