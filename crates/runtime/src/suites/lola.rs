//! Suite `lola`: the whole network under encryption, one message each way.

use graph::{Conv, Graph, Linear, Node, Packing, Window, ops};
use mpc::linear::lola::{Layer, Network, Plan, Representation};
use wire::{Error, Result};

use super::refusal::at;
use super::suite::Suite;
use crate::linear::lola::EvaluatedNetwork;
use crate::plan::options::OptionsByStep;
use crate::plan::settings::{Reveal, Settings};
use crate::step::{Action, Step};

/// The suite.
pub(super) static SUITE: Suite = Suite {
    name: "lola",
    summary: "the whole network under encryption, one message each way (LoLa)",
    steps,
    never_rescales: true,
    ..Suite::PLAIN
};

/// Signed width of weights of one, in bits.
const ONE: u32 = 2;

fn steps(graph: &Graph, settings: Settings, _: &OptionsByStep) -> Result<Vec<Step>> {
    if settings.reveal != Reveal::Output {
        let why = "suite `lola` shows the client all outputs, since nothing is compared under \
                   encryption; drop --reveal, or use suite auto";
        return Err(Error::misuse(why));
    }
    if settings.store() > 0 {
        let why = "suite `lola` prepares nothing; drop --offline, or use suite auto";
        return Err(Error::misuse(why));
    }
    let (network, nodes) = network(graph)?;
    let network = Network { batch: settings.batch(), ..network };
    let output = graph.tensors.get(graph.output);
    let output = output.ok_or_else(|| Error::misuse("a graph without output"))?;
    let bits = network.output_bits;
    let plan = Plan::new(&network)?;
    if plan.outputs() != output.len() {
        return Err(Error::misuse("layers that do not make the output"));
    }
    let action = Action::linear(EvaluatedNetwork { plan, nodes, bits });
    let reads = vec![graph.input];
    Ok(vec![Step { name: "network".into(), node: None, reads, writes: graph.output, action }])
}

/// The layers, and for each the node that has its weights.
fn network(graph: &Graph) -> Result<(Network, Vec<Option<usize>>)> {
    let exact = graph.exact.as_ref().ok_or_else(|| {
        Error::misuse("this model rescales between layers; compile it with --suite lola")
    })?;
    let (mut layers, mut last) = (Vec::new(), graph.input);
    let mut nodes: Vec<Option<usize>> = Vec::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        if node.inputs.first() != Some(&last) {
            let why = "suite `lola` evaluates layers one after another, without branches";
            return Err(at(&node.name, Error::misuse(why)));
        }
        last = node.output;
        if node.op == ops::Reshape {
            continue;
        }
        let square = match layers.last_mut() {
            Some(Layer::Square { multipliers }) => Some(multipliers),
            _ => None,
        };
        match (square, node.op.get(), nodes.last_mut()) {
            (Some(multipliers), Some(ops::Sum { multipliers: by, .. }), _)
                if *multipliers == [1, 0] && of_square(graph, index) =>
            {
                *multipliers = *by;
            }
            (Some(_), None, Some(weights)) if node.op == ops::Offset && weights.is_none() => {
                *weights = Some(index);
            }
            _ => {
                layers.push(layer(node)?);
                nodes.push(node.op.is::<Linear>().then_some(index));
            }
        }
    }
    let inputs = graph.tensors.get(graph.input).map_or(0, |t| t.len());
    let input = exact.packing.map(|packing| match packing {
        Packing::Dense => Representation::Dense,
        Packing::Convolution => Representation::Convolution,
        Packing::Sparse => Representation::Sparse,
    });
    let output_bits = exact.output_bits;
    Ok((Network { inputs, layers, output_bits, input, batch: 1 }, nodes))
}

/// Whether a sum adds the square that the node before it makes and what that squares.
fn of_square(graph: &Graph, sum: usize) -> bool {
    let [before, sum] =
        [sum.checked_sub(1), Some(sum)].map(|at| at.and_then(|at| graph.nodes.get(at)));
    match (before, sum) {
        (Some(before), Some(sum)) => {
            before.op.is::<ops::Product>()
                && sum.inputs.first() == Some(&before.output)
                && sum.inputs.get(1) == before.inputs.first()
        }
        _ => false,
    }
}

/// What a node computes.
fn layer(node: &Node) -> Result<Layer> {
    Ok(if let Some(Linear { conv, weight_bits, .. }) = node.op.get() {
        Layer::Linear { conv: conv.clone(), weight_bits: *weight_bits }
    } else if let Some(ops::SumPool(window)) = node.op.get() {
        Layer::Linear { conv: ones(window), weight_bits: ONE }
    } else if node.op.is::<ops::Product>() {
        Layer::Square { multipliers: [1, 0] }
    } else {
        let why = "cannot be evaluated under encryption".to_owned();
        return Err(at(&node.name, Error::misuse(why)));
    })
}

/// A pool as a convolution with weights of one.
fn ones(window: &Window) -> Conv {
    Conv {
        in_channels: window.channels,
        in_height: window.height,
        in_width: window.width,
        out_channels: window.channels,
        kernel: window.kernel,
        stride: window.stride,
        padding: window.padding,
        dilation: [1, 1],
        groups: window.channels,
    }
}
