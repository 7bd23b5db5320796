//! Float layers as layers with weights of few bits: those of dense 3x3 convolutions are
//! rounded in the Winograd domain (UFO, section IV-A).

use super::options::{Options, Switch};
use super::rounding::{self, FewBits, Rows};
use crate::ops::Conv;
use crate::ops::choice::WeightBits;
use crate::ops::winograd::transformed_kernel;
use crate::source::ops::QuantisedConv;
use crate::source::{Calibration, FloatTensor, Program, SourceNode, SourceOp};
use crate::{Error, Result};

/// Bits of the weights of the first and the last layer.
const OUTER_BITS: u32 = 8;
/// Rows and columns of the output that one tile makes.
const TILE: usize = 2;

/// Replaces float layers by layers of few bits.
pub(super) fn round(
    program: &mut Program,
    calibration: &Calibration,
    options: &Options,
) -> Result<()> {
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
        if program.source.nodes[*index].op.linear().is_some() {
            round_layer(program, *index, bits, calibration, options)?;
        }
    }
    Ok(())
}

/// A float layer, as a convolution.
struct Float {
    conv: Conv,
    weight: FloatTensor,
    bias: Option<Vec<f32>>,
}

impl Float {
    fn of(program: &Program, node: &SourceNode) -> Result<Self> {
        let refused = |why: String| Error::invalid("few-bits", &node.name, why);
        let linear = node.op.linear().ok_or_else(|| refused("is not linear".into()))?;
        let shapes = program.shapes()?;
        let conv = linear.geometry(&shapes[&node.inputs[0]], &program.floats).map_err(refused)?;
        let mut weight = program.floats[linear.weight()].clone();
        weight.shape = [&[conv.out_channels, conv.group_channels()][..], &conv.kernel].concat();
        let bias = linear.bias().map(|name| program.floats[name].data.clone());
        Ok(Self { conv, weight, bias })
    }

    /// Whether Winograd's algorithm computes it with fewer products.
    fn suits_winograd(&self) -> bool {
        let Conv { kernel, stride, dilation, groups, .. } = self.conv;
        (kernel, stride, dilation, groups) == ([3, 3], [1, 1], [1, 1], 1)
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
    let node = program.source.nodes[index].clone();
    let float = Float::of(program, &node)?;
    let SourceNode { name, inputs, .. } = node;
    let winograd = float.suits_winograd() && !options.disabled.contains(&Switch::Winograd);
    let reweighting = !options.disabled.contains(&Switch::Reweighting);
    let few = rounded(&float, bits, winograd, reweighting);
    let means = calibration.means.get(&inputs[0]);
    let moved = moved_means(&float, &few, winograd, means.map(Vec::as_slice));
    let bias = |channel: usize| float.bias.as_ref().map_or(0.0, |bias| f64::from(bias[channel]));
    let bias = moved.iter().enumerate().map(|(channel, moved)| (bias(channel) - moved) as f32);
    let bias = FloatTensor::vector(bias.collect());
    program.source.nodes[index].op = stored(program, &name, (float, few, bias), winograd);
    Ok(())
}

/// The layer as an operator, with its arrays among those of the program.
fn stored(
    program: &mut Program,
    name: &str,
    (float, few, bias): (Float, FewBits, FloatTensor),
    winograd: bool,
) -> SourceOp {
    let side = if winograd { [TILE + 2; 2] } else { float.conv.kernel };
    let shape = [&float.weight.shape[..2], &side].concat();
    let data = few.weight.iter().map(|w| *w as f32).collect();
    let scale = FloatTensor::vector(few.scale.iter().map(|s| *s as f32).collect());
    let Conv { kernel, stride, padding, dilation, groups, .. } = float.conv;
    let WeightBits { importance, offset } = few.choice;
    SourceOp::from(QuantisedConv {
        kernel,
        stride,
        padding,
        dilation,
        groups,
        winograd,
        weight: program.store(&format!("{name}.integers"), FloatTensor { shape, data }),
        importance,
        offset,
        scale: program.store(&format!("{name}.scales"), scale),
        bias: program.store(&format!("{name}.biases"), bias),
    })
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
    let Some(means) =
        means.filter(|means| means.len() == float.weight.shape[1] * float.conv.groups)
    else {
        return vec![0.0; channels];
    };
    let inputs = float.weight.shape[1];
    let taps = (float.conv.kernel[0] * float.conv.kernel[1]).max(1);
    let places = if winograd { (TILE + 2) * (TILE + 2) } else { taps };
    let moved = |channel: usize| {
        let group = channel / (channels / float.conv.groups.max(1)).max(1);
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
