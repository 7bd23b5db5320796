//! Networks for products by oblivious transfer: linear layers with weights of few bits,
//! convolutions with inputs of few bits, residuals of eight.
//!
//! UFO: dense 3x3 convolutions go to the Winograd domain before their weights are rounded
//! (section IV-A); activations are requantised in front of a convolution, what is added
//! later keeps eight bits (Fig. 10). Float layers are rounded here; layers of networks that
//! were trained with few bits stay what they are.

use super::options::{Options, Switch};
use super::{build, float_layers};
use crate::ir::Model;
use crate::ops::choice::WeightBits;
use crate::source::ops::{Add, QuantisedConv, Relu, Requantize};
use crate::source::{Calibration, Program, SourceNode};
use crate::{Error, Result};

/// Bits of residuals, of the input and of everything else that no convolution multiplies.
const RESIDUAL_BITS: u32 = 8;

/// Lowers a network after its passes.
pub(super) fn build(
    mut program: Program,
    calibration: &Calibration,
    options: &Options,
) -> Result<Model> {
    check_trained(&program, options)?;
    let trained = is_trained(&program);
    float_layers::round(&mut program, calibration, options)?;
    say_bits(&mut program, options.activation_bits, trained);
    if !trained {
        requantise(&mut program, options.activation_bits);
    }
    program.shapes().map_err(|error| error.in_pass("few-bits"))?;
    let activation_bits = options.activation_bits;
    let rest = Options { activation_bits: RESIDUAL_BITS, ..options.clone() };
    let mut model = build::build(&program, calibration, &rest)?;
    model.graph.activation_bits = activation_bits;
    Ok(model)
}

/// Whether the network has chosen its bits itself.
fn is_trained(program: &Program) -> bool {
    program.source.nodes.iter().any(|node| node.op.has_few_bits())
}

/// Refuses layers that only products by oblivious transfer can run.
pub(super) fn refuse(program: &Program) -> Result<()> {
    program.source.nodes.iter().find(|node| node.op.has_few_bits()).map_or(Ok(()), |node| {
        let what = "was trained with few bits, in which other suites do not compute";
        Err(Error::unsupported(&node.name, what, "compile for suite ufo"))
    })
}

/// What was trained in is not to be left out.
fn check_trained(program: &Program, options: &Options) -> Result<()> {
    for node in &program.source.nodes {
        let Some(QuantisedConv { winograd, importance, .. }) = node.op.get() else { continue };
        let plain = WeightBits::twos_complement(importance.len() as u32).importance;
        let (pass, what) = if *winograd && options.disabled.contains(&Switch::Winograd) {
            ("winograd", "was trained in the Winograd domain")
        } else if *importance != plain && options.disabled.contains(&Switch::Reweighting) {
            ("reweighting", "was trained with these importances of bits")
        } else {
            continue;
        };
        let instead = format!("do without --disable-pass {pass}, or train a network without it");
        return Err(Error::unsupported(&node.name, what, &instead));
    }
    Ok(())
}

/// Gives every ReLU its bits: few, where a convolution reads it and nothing else does, or
/// where the network was trained so.
fn say_bits(program: &mut Program, activation_bits: u32, trained: bool) {
    let source = &program.source;
    let wide = |node: &SourceNode| {
        let few = only_multiplied(program, &node.output);
        if few { activation_bits } else { RESIDUAL_BITS.max(activation_bits) }
    };
    let bits: Vec<u32> =
        source.nodes.iter().map(|n| if trained { activation_bits } else { wide(n) }).collect();
    for (node, chosen) in program.source.nodes.iter_mut().zip(bits) {
        if let Some(Relu { bits: bits @ None, .. }) = node.op.get_mut() {
            *bits = Some(chosen);
        }
    }
}

/// Whether all that reads a tensor, rearranged or pooled or not, multiplies few bits.
fn only_multiplied(program: &Program, tensor: &str) -> bool {
    let mut readers = readers(program, tensor).peekable();
    program.source.output != tensor
        && readers.peek().is_some()
        && readers.all(|node| {
            takes_few(program, node)
                || node.op.keeps_integers() && only_multiplied(program, &node.output)
        })
}

/// Whether a linear layer multiplies activations of few bits: all but a projection of a
/// residual.
fn takes_few(program: &Program, node: &SourceNode) -> bool {
    let small = node.op.get().is_some_and(QuantisedConv::is_1x1);
    let added = readers(program, &node.output).all(|n| n.op.is::<Add>());
    node.op.is_product() && !(small && added && program.source.output != node.output)
}

fn readers<'a>(program: &'a Program, tensor: &'a str) -> impl Iterator<Item = &'a SourceNode> {
    program.source.nodes.iter().filter(move |node| node.inputs.iter().any(|i| i == tensor))
}

/// Lets linear layers read activations of few bits where these have more.
fn requantise(program: &mut Program, activation_bits: u32) {
    let mut index = 0;
    while index < program.source.nodes.len() {
        let node = &program.source.nodes[index];
        let bits = program.source.unsigned_bits(&node.output, activation_bits);
        let multiplied = readers(program, &node.output).any(|n| takes_few(program, n));
        if bits.is_some_and(|bits| bits > activation_bits) && multiplied {
            insert(program, index, activation_bits);
        }
        index += 1;
    }
}

/// Requantises what a node writes, for the linear layers that read it.
fn insert(program: &mut Program, index: usize, bits: u32) {
    let tensor = program.source.nodes[index].output.clone();
    let output = program.source.fresh(&format!("{tensor}.few"));
    let few: Vec<bool> = program.source.nodes.iter().map(|n| takes_few(program, n)).collect();
    let readers = program.source.nodes.iter_mut().zip(few).filter(|(_, few)| *few);
    for (node, _) in readers {
        node.inputs.iter_mut().filter(|i| **i == tensor).for_each(|i| i.clone_from(&output));
    }
    let (name, inputs, op) = (output.clone(), vec![tensor], Requantize { bits }.into());
    program.source.nodes.insert(index + 1, SourceNode { name, inputs, output, op });
}
