//! Convolutions whose weights have few bits: a product by the bits of the weights, then a
//! multiplier for each channel, which brings the result to the scale of the output.
//!
//! Weights of few bits leave no room for the channels' scales, which is why these are
//! multiplied afterwards; there the residual is added, in the accumulator and without a
//! conversion of the main branch (UFO, Fig. 12b).

use super::checks::{expect, one};
use crate::error::{Check, Error, Result};
use crate::ops::choice::WeightBits;
use crate::ops::geometry::{Conv as Geometry, check_conv};
use crate::ops::{Linear, Requantize, Sum, Winograd};
use crate::source::floats::Floats;
use crate::source::lowering::{IntegerNode, Lowering};
use crate::source::operator::SourceOperator;
use crate::tensor::NodeWeights;
use serde::{Deserialize, Serialize};

/// Signed bits of a channel's multiplier.
const MULTIPLIER_BITS: u32 = 8;
/// Bits that are dropped after it, at most.
const SHIFT_LIMIT: u32 = 30;
/// Relative difference up to which the scales of channels are one.
const SAME: f64 = 1e-6;
const BIAS_LIMIT: f64 = (1u64 << 50) as f64;

/// Convolution of weights that are integers already, of few bits each:
/// `scale * (W*x) + bias`, per output channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuantisedConv {
    /// Size of the kernel in rows and columns.
    pub kernel: [usize; 2],
    /// Distance of neighbouring windows in rows and columns.
    pub stride: [usize; 2],
    /// Padding at the top, left, bottom and right, in rows and columns.
    pub padding: [usize; 4],
    /// Distance of neighbouring taps of the kernel in rows and columns.
    pub dilation: [usize; 2],
    /// Number of groups.
    pub groups: usize,
    /// Whether the weights stand in the Winograd domain, for tiles of two.
    pub winograd: bool,
    /// Integers `[out, in / groups, rows, columns]`, or `[out, in, 4, 4]`.
    pub weight: String,
    /// What each bit of a weight adds to it, see [`WeightBits`].
    pub importance: Vec<i64>,
    /// The weight of which no bit is set.
    pub offset: i64,
    /// Name of the factors, of shape `[out]`, none of them zero.
    pub scale: String,
    /// Name of the constants, of shape `[out]`.
    pub bias: String,
}

impl SourceOperator for QuantisedConv {
    fn kind(&self) -> &'static str {
        "QuantisedConv"
    }

    fn floats(&self) -> Vec<&str> {
        vec![&self.weight, &self.scale, &self.bias]
    }

    fn is_product(&self) -> bool {
        true
    }

    fn has_few_bits(&self) -> bool {
        true
    }

    fn shape(&self, inputs: &[&[usize]], floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        let conv = self.geometry(input, floats)?;
        let side = if self.winograd { [4, 4] } else { conv.kernel };
        let expected = [&[conv.out_channels, conv.group_channels()][..], &side].concat();
        expect(floats, &self.weight, &expected)?;
        for name in [&self.scale, &self.bias] {
            expect(floats, name, &[conv.out_channels])?;
        }
        self.weight_bits().check()?;
        if self.winograd && !is_dense(&conv) {
            return Err("has weights in the Winograd domain, but is no dense 3x3 kernel of \
                        stride 1"
                .into());
        }
        Ok(match input {
            [_] => vec![conv.out_channels],
            _ => vec![conv.out_channels, conv.out_height(), conv.out_width()],
        })
    }

    fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        if let Some(scale) = self.bare(step) {
            let products = self.products(step, scale)?;
            return step.finish(products);
        }
        let products = self.products(step, 1.0)?;
        let products = step.before("products", products)?;
        let scale = step.scale()?;
        let input_scale = step.input(products)?.format.scale;
        let channels = self.channels(step, input_scale / scale, scale)?;
        let layer = Linear {
            conv: per_channel(step.shape()),
            accumulator_bits: 0,
            weight_bits: MULTIPLIER_BITS + 1,
            shift: channels.shift,
            rounding: step.rounding(),
            addend: None,
            choice: Some(WeightBits::twos_complement(MULTIPLIER_BITS)),
            square_bits: None,
        };
        let fine = scale / f64::from(channels.shift).exp2();
        let Some(addend) = step.addend() else {
            return step.finish(channels.node(layer, &[products], scale));
        };
        let factor = step.multiplier(addend, fine)?;
        if !step.adds_apart() {
            let layer = Linear { addend: Some(factor), ..layer };
            return step.finish(channels.node(layer, &[products, addend], scale));
        }
        let shift = channels.shift;
        let main = channels.node(Linear { shift: 0, ..layer }, &[products], fine);
        let main = step.before("scaled", main)?;
        add_apart(step, [main, addend], (factor, shift), scale)
    }
}

impl QuantisedConv {
    /// What the bits of a weight stand for.
    pub(crate) fn weight_bits(&self) -> WeightBits {
        WeightBits { importance: self.importance.clone(), offset: self.offset }
    }

    /// Whether each position is multiplied by one matrix for each group.
    pub(crate) fn is_1x1(&self) -> bool {
        self.kernel == [1, 1]
    }

    /// The scale of all channels, if it is one, nothing is added and only sums read the
    /// result: these multiply it anyway, as those of residuals do.
    fn bare(&self, step: &dyn Lowering) -> Option<f64> {
        let [scales, biases] = [&self.scale, &self.bias].map(|name| &step.floats()[name].data);
        let first = f64::from(*scales.first()?);
        let near = |v: f32, to: f64| (f64::from(v) - to).abs() < SAME * first;
        let plain = scales.iter().all(|s| near(*s, first)) && biases.iter().all(|b| near(*b, 0.0));
        let alone = step.addend().is_none() && step.values().is_only_summed();
        (plain && alone).then_some(first)
    }

    /// The products themselves, in units of the input times `scale`.
    fn products(&self, step: &dyn Lowering, scale: f64) -> Result<IntegerNode> {
        let input = step.input(0)?;
        let conv = self.geometry(&input.shape, step.floats());
        let conv = conv.map_err(|why| step.defect(&why))?;
        let choice = self.weight_bits();
        let weight = whole(&step.floats()[&self.weight].data);
        let weight = weight.ok_or_else(|| {
            Error::Misuse(format!("weights of `{}` are not whole numbers", step.name()))
        })?;
        let weights = Some(NodeWeights { weight, bias: vec![0; conv.out_channels] });
        let (rounding, scale) = (step.rounding(), input.format.scale * scale);
        let node = if self.winograd {
            let layer = Winograd {
                conv,
                tile: 2,
                product_bits: 0,
                headroom: false,
                stage_bits: None,
                accumulator_bits: 0,
                choice,
                shift: 0,
                rounding,
                addend: None,
            };
            IntegerNode::new(layer, &[0], scale, true)
        } else {
            let most = choice.range().into_iter().map(i64::unsigned_abs).max().unwrap_or(0);
            let layer = Linear {
                conv,
                accumulator_bits: 0,
                weight_bits: (65 - most.leading_zeros()).max(2),
                shift: 0,
                rounding,
                addend: None,
                choice: Some(choice),
                square_bits: None,
            };
            IntegerNode::new(layer, &[0], scale, true)
        };
        Ok(IntegerNode { weights, ..node })
    }

    /// Multipliers that bring sums to an output of `scale`; `ratio` is the scale of the sums,
    /// channels' own aside, in that.
    fn channels(&self, step: &dyn Lowering, ratio: f64, scale: f64) -> Result<Channels> {
        let floats = |name: &String| step.floats()[name].data.iter().map(|v| f64::from(*v));
        let most = f64::from((1u32 << (MULTIPLIER_BITS - 1)) - 1);
        let largest = floats(&self.scale).map(|s| (s * ratio).abs()).fold(0.0, f64::max);
        let fits = |shift: &u32| (largest * f64::from(*shift).exp2()).round() <= most;
        let refused = |what: &str| {
            let what = format!("{what} far too large for the calibrated range of its output");
            step.refuse(&what, "calibrate with inputs like the real ones")
        };
        let shift = (0..=SHIFT_LIMIT).rev().find(fits);
        let shift = shift.ok_or_else(|| refused("its scales are"))?;
        let factor = f64::from(shift).exp2();
        let weight = floats(&self.scale).map(|s| (s * ratio * factor).round() as i32).collect();
        let bias = floats(&self.bias).map(|b| (b / scale * factor).round());
        let bias: Option<Vec<i64>> =
            bias.map(|b| (b.abs() <= BIAS_LIMIT).then_some(b as i64)).collect();
        let bias = bias.ok_or_else(|| refused("its bias is"))?;
        Ok(Channels { weights: NodeWeights { weight, bias }, shift })
    }

    /// The geometry on an input of that shape.
    pub(crate) fn geometry(&self, input: &[usize], floats: &Floats) -> Check<Geometry> {
        let Self { kernel, stride, padding, dilation, groups, .. } = *self;
        let out_channels = *floats[&self.weight].shape.first().unwrap_or(&0);
        let conv = match *input {
            [length] if (kernel, stride, padding, groups) == ([1, 1], [1, 1], [0; 4], 1) => {
                Geometry::fully_connected(length, out_channels)
            }
            [in_channels, in_height, in_width] => Geometry {
                in_channels,
                in_height,
                in_width,
                out_channels,
                kernel,
                stride,
                padding,
                dilation,
                groups,
            },
            _ => return Err(format!("Conv needs [channels, height, width], got {input:?}")),
        };
        check_conv(&conv)?;
        Ok(conv)
    }
}

/// Whether Winograd's algorithm computes the convolution.
fn is_dense(conv: &Geometry) -> bool {
    (conv.kernel, conv.stride, conv.dilation, conv.groups) == ([3, 3], [1, 1], [1, 1], 1)
}

/// The integers of one channel each.
struct Channels {
    weights: NodeWeights,
    shift: u32,
}

impl Channels {
    /// The layer that multiplies each channel by its integer.
    fn node(self, layer: Linear, reads: &[usize], scale: f64) -> IntegerNode {
        let weights = Some(self.weights);
        IntegerNode { weights, ..IntegerNode::new(layer, reads, scale, true) }
    }
}

/// A 1x1 convolution of each channel by itself.
fn per_channel(shape: &[usize]) -> Geometry {
    let side = |axis: usize| shape.get(axis).copied().unwrap_or(1);
    Geometry {
        in_height: side(1),
        in_width: side(2),
        groups: side(0),
        ..Geometry::fully_connected(side(0), side(0))
    }
}

/// A sum of its own behind conversions of both branches (UFO, Fig. 12a).
fn add_apart(
    step: &mut dyn Lowering,
    [main, skip]: [usize; 2],
    (factor, shift): (i64, u32),
    scale: f64,
) -> Result<()> {
    let mut aligned = vec![];
    for (name, place) in [("main", main), ("skip", skip)] {
        let format = step.input(place)?.format;
        let wide = IntegerNode::new(Requantize { drop: 0 }, &[place], format.scale, true);
        aligned.push(step.before(name, IntegerNode { format, ..wide })?);
    }
    let sum = Sum { multipliers: [1, factor], accumulator_bits: 0, shift };
    step.finish(IntegerNode::new(sum, &aligned, scale, true))
}

/// The integers that floats are, if all are.
fn whole(values: &[f32]) -> Option<Vec<i32>> {
    let each = |v: &f32| (v.fract() == 0.0 && v.abs() < 1e6).then_some(*v as i32);
    values.iter().map(each).collect()
}
