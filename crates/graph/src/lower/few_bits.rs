//! Networks for products by oblivious transfer: linear layers with weights of few bits,
//! convolutions with inputs of few bits, residuals of eight.
//!
//! UFO: dense 3x3 convolutions go to the Winograd domain before their weights are rounded
//! (section IV-A); activations are requantised in front of a convolution, what is added
//! later keeps eight bits (Fig. 10). Float layers are rounded here; layers of networks that
//! were trained with few bits stay what they are.

use super::rounding::{self, FewBits, Rows};
use super::{Options, Switch, build};
use crate::choice::WeightBits;
use crate::ir::Model;
use crate::source::{Calibration, FloatTensor, Program, SourceNode, SourceOp};
use crate::winograd::transformed_kernel;
use crate::{Error, Result};

/// Bits of residuals, of the input and of everything else that no convolution multiplies.
const RESIDUAL_BITS: u32 = 8;
/// Bits of the weights of the first and the last layer.
const OUTER_BITS: u32 = 8;
/// Rows and columns of the output that one tile makes.
const TILE: usize = 2;

/// Lowers a network after its passes.
pub(super) fn build(
    mut program: Program,
    calibration: &Calibration,
    options: &Options,
) -> Result<Model> {
    check_trained(&program, options)?;
    let trained = is_trained(&program);
    round_layers(&mut program, calibration, options)?;
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

fn has_few_bits(node: &&SourceNode) -> bool {
    matches!(node.op, SourceOp::QuantisedConv { .. } | SourceOp::Requantize { .. })
}

/// Whether the network has chosen its bits itself.
fn is_trained(program: &Program) -> bool {
    program.source.nodes.iter().any(|node| has_few_bits(&node))
}

/// Refuses layers that only products by transfers can run.
pub(super) fn refuse(program: &Program) -> Result<()> {
    program.source.nodes.iter().find(has_few_bits).map_or(Ok(()), |node| {
        let what = "was trained with few bits, in which other suites do not compute";
        Err(Error::unsupported(&node.name, what, "compile for suite ufo"))
    })
}

/// What was trained in is not to be left out.
fn check_trained(program: &Program, options: &Options) -> Result<()> {
    for node in &program.source.nodes {
        let SourceOp::QuantisedConv { winograd, importance, .. } = &node.op else { continue };
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

/// Replaces float layers by layers of few bits.
fn round_layers(program: &mut Program, calibration: &Calibration, options: &Options) -> Result<()> {
    let nodes = program.source.nodes.iter().enumerate();
    let layers: Vec<usize> =
        nodes.filter(|(_, node)| node.op.is_product()).map(|(index, _)| index).collect();
    let given = options.layer_bits.len();
    if given != 0 && given != layers.len() {
        let count = layers.len();
        return Err(Error::Misuse(format!("{given} layer_bits for {count} linear layers")));
    }
    for (place, index) in layers.iter().enumerate() {
        let outer = place == 0 || place + 1 == layers.len();
        let bits = match options.layer_bits.get(place) {
            Some(bits) => *bits,
            None if outer => options.weight_bits.max(OUTER_BITS),
            None => options.weight_bits,
        };
        if program.source.nodes[*index].op.is_linear() {
            round_layer(program, *index, bits, calibration, options)?;
        }
    }
    Ok(())
}

/// A float layer, as a convolution.
struct Float {
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 4],
    dilation: [usize; 2],
    groups: usize,
    weight: FloatTensor,
    bias: Option<Vec<f32>>,
}

impl Float {
    fn of(program: &Program, op: &SourceOp) -> Option<Self> {
        let floats = |name: &String| program.floats[name].clone();
        let bias = |name: &Option<String>| name.as_ref().map(|name| floats(name).data.clone());
        Some(match op {
            SourceOp::Conv { kernel, stride, padding, dilation, groups, weight, bias: name } => {
                Self {
                    kernel: *kernel,
                    stride: *stride,
                    padding: *padding,
                    dilation: *dilation,
                    groups: *groups,
                    weight: floats(weight),
                    bias: bias(name),
                }
            }
            SourceOp::Gemm { weight, bias: name } => {
                let mut weight = floats(weight);
                weight.shape = [&weight.shape[..], &[1, 1]].concat();
                let (kernel, stride, dilation) = ([1, 1], [1, 1], [1, 1]);
                let (padding, groups, bias) = ([0; 4], 1, bias(name));
                Self { kernel, stride, padding, dilation, groups, weight, bias }
            }
            _ => return None,
        })
    }

    /// Whether Winograd's algorithm computes it with fewer products.
    fn suits_winograd(&self) -> bool {
        (self.kernel, self.stride, self.dilation, self.groups) == ([3, 3], [1, 1], [1, 1], 1)
    }

    fn channels(&self) -> usize {
        self.weight.shape[0]
    }
}

fn round_layer(
    program: &mut Program,
    index: usize,
    bits: u32,
    calibration: &Calibration,
    options: &Options,
) -> Result<()> {
    let SourceNode { name, inputs, op, .. } = program.source.nodes[index].clone();
    let Some(float) = Float::of(program, &op) else {
        return Err(Error::invalid("few-bits", &name, "is not linear"));
    };
    let winograd = float.suits_winograd() && !options.disabled.contains(&Switch::Winograd);
    let reweighting = !options.disabled.contains(&Switch::Reweighting);
    let few = rounded(&float, bits, winograd, reweighting);
    let means = calibration.means.get(&inputs[0]);
    let moved = moved_means(&float, &few, winograd, means.map(Vec::as_slice));
    let bias = |channel: usize| float.bias.as_ref().map_or(0.0, |bias| f64::from(bias[channel]));
    let bias = moved.iter().enumerate().map(|(channel, moved)| (bias(channel) - moved) as f32);
    let bias = FloatTensor::vector(bias.collect());
    let scale = FloatTensor::vector(few.scale.iter().map(|s| *s as f32).collect());
    let side = if winograd { [TILE + 2; 2] } else { float.kernel };
    let shape = [&float.weight.shape[..2], &side].concat();
    let data = few.weight.iter().map(|w| *w as f32).collect();
    let weight = program.store(&format!("{name}.integers"), FloatTensor { shape, data });
    let scale = program.store(&format!("{name}.scales"), scale);
    let bias = program.store(&format!("{name}.biases"), bias);
    let Float { kernel, stride, padding, dilation, groups, .. } = float;
    let WeightBits { importance, offset } = few.choice;
    program.source.nodes[index].op = SourceOp::QuantisedConv {
        kernel,
        stride,
        padding,
        dilation,
        groups,
        winograd,
        weight,
        importance,
        offset,
        scale,
        bias,
    };
    Ok(())
}

fn rounded(float: &Float, bits: u32, winograd: bool, reweighting: bool) -> FewBits {
    let data: Vec<f64> = float.weight.data.iter().map(|w| f64::from(*w)).collect();
    let channels = float.channels();
    if winograd {
        let kernels = data.chunks_exact(9);
        let weight: Vec<f64> =
            kernels.flat_map(|kernel| transformed_kernel(TILE, kernel)).collect();
        let places = rounding::place_weights(TILE);
        let rows = Rows { weight: &weight, channels, places: &places };
        rounding::round(&rows, bits, reweighting)
    } else {
        rounding::round(&Rows { weight: &data, channels, places: &[1.0] }, bits, reweighting)
    }
}

/// How far rounding moves the mean of each output, where the means of the inputs are known
/// (Nagel et al., ICCV 2019, section 4.2); padding counts as the rest of the input.
fn moved_means(float: &Float, few: &FewBits, winograd: bool, means: Option<&[f64]>) -> Vec<f64> {
    let channels = float.channels();
    let Some(means) = means.filter(|means| means.len() == float.weight.shape[1] * float.groups)
    else {
        return vec![0.0; channels];
    };
    let inputs = float.weight.shape[1];
    let taps = (float.kernel[0] * float.kernel[1]).max(1);
    let places = if winograd { (TILE + 2) * (TILE + 2) } else { taps };
    let moved = |channel: usize| {
        let group = channel / (channels / float.groups.max(1)).max(1);
        let of_input = |input: usize| {
            let row = channel * inputs + input;
            let floats = float.weight.data[row * taps..][..taps].iter();
            let ints = &few.weight[row * places..][..places];
            // Of a constant image only one place is not zero, and shows its fourfold.
            let sum = match winograd {
                true => 4.0 * f64::from(ints[TILE + 3]),
                false => ints.iter().map(|w| f64::from(*w)).sum(),
            };
            sum * few.scale[channel] - floats.map(|w| f64::from(*w)).sum::<f64>()
        };
        (0..inputs).map(|input| of_input(input) * means[group * inputs + input]).sum()
    };
    (0..channels).map(moved).collect()
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
        if let SourceOp::Relu { bits: bits @ None, .. } = &mut node.op {
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
                || rearranges(&node.op) && only_multiplied(program, &node.output)
        })
}

/// Whether a linear layer multiplies activations of few bits: all but a projection of a
/// residual.
fn takes_few(program: &Program, node: &SourceNode) -> bool {
    let small = matches!(node.op, SourceOp::QuantisedConv { kernel: [1, 1], .. });
    let added = readers(program, &node.output).all(|n| matches!(n.op, SourceOp::Add {}));
    node.op.is_product() && !(small && added && program.source.output != node.output)
}

fn readers<'a>(program: &'a Program, tensor: &'a str) -> impl Iterator<Item = &'a SourceNode> {
    program.source.nodes.iter().filter(move |node| node.inputs.iter().any(|i| i == tensor))
}

fn rearranges(op: &SourceOp) -> bool {
    matches!(
        op,
        SourceOp::MaxPool { .. }
            | SourceOp::Reshape { .. }
            | SourceOp::View { .. }
            | SourceOp::Pad { .. }
    )
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
    let (name, inputs, op) = (output.clone(), vec![tensor], SourceOp::Requantize { bits });
    program.source.nodes.insert(index + 1, SourceNode { name, inputs, output, op });
}
