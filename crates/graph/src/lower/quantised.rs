//! Layers whose weights have few bits: a product by the bits of the weights, then a
//! multiplier for each channel, which brings the result to the scale of the output.
//!
//! Weights of few bits leave no room for the channels' scales, which is why these are
//! multiplied afterwards; there the residual is added, in the accumulator and without a
//! conversion of the main branch (UFO, Fig. 12b).

use super::build::{Builder, multiplier};
use crate::choice::WeightBits;
use crate::ir::{Conv, Format, Linear, NodeWeights, Op};
use crate::source::{SourceNode, SourceOp};
use crate::winograd::Winograd;
use crate::{Error, Result};

/// Signed bits of a channel's multiplier.
const MULTIPLIER_BITS: u32 = 8;
/// Bits that are dropped after it, at most.
const SHIFT_LIMIT: u32 = 30;
const BIAS_LIMIT: f64 = (1u64 << 50) as f64;

impl Builder<'_> {
    /// Adds the nodes of a [`SourceOp::QuantisedConv`], which `skip` is added to.
    pub(super) fn quantised(
        &mut self,
        node: &SourceNode,
        skip: Option<&String>,
        output: &str,
    ) -> Result<()> {
        let products = self.products(node)?;
        let scale = self.scales.of(output)?;
        let input_scale = self.format_of(products).scale;
        let channels = self.channels(node, input_scale / scale, scale)?;
        let conv = self.per_channel(node)?;
        let addend = skip.map(|name| self.index[name]);
        let factor = f64::from(channels.shift).exp2() / scale;
        let ratio = |tensor: usize| self.format_of(tensor).scale * factor;
        let addend = addend.map(|tensor| Ok((tensor, multiplier(ratio(tensor), &node.name)?)));
        let addend = addend.transpose()?;
        let shape = self.shapes[output].clone();
        let output = self.tensor(output, &shape, Format { bits: 1, scale, signed: true });
        let op = Op::Linear(Linear {
            conv,
            accumulator_bits: 0,
            weight_bits: MULTIPLIER_BITS + 1,
            shift: channels.shift,
            rounding: self.options.rounding,
            addend: addend.map(|(_, factor)| factor),
            choice: Some(WeightBits::twos_complement(MULTIPLIER_BITS)),
        });
        self.weights.insert(self.next(), channels.weights);
        let inputs = [products].into_iter().chain(addend.map(|(tensor, _)| tensor)).collect();
        self.push(&node.name, op, inputs, output);
        Ok(())
    }

    /// Adds the products themselves and gives their tensor, in units of the input times one.
    fn products(&mut self, node: &SourceNode) -> Result<usize> {
        let SourceOp::QuantisedConv { weight, winograd, importance, offset, .. } = &node.op else {
            return Err(Error::invalid("lower", &node.name, "has no integer weights"));
        };
        let conv = self.conv(node)?;
        let choice = WeightBits { importance: importance.clone(), offset: *offset };
        let weight = whole(&self.scales.program().floats[weight].data);
        let weight = weight.ok_or_else(|| {
            Error::Misuse(format!("weights of `{}` are not whole numbers", node.name))
        })?;
        let bias = vec![0; conv.out_channels];
        let format = self.format(&node.inputs[0]);
        let rounding = self.options.rounding;
        let op = if *winograd {
            Op::Winograd(Winograd {
                conv,
                tile: 2,
                product_bits: 0,
                spare: false,
                stage_bits: None,
                accumulator_bits: 0,
                choice,
                shift: 0,
                rounding,
                addend: None,
            })
        } else {
            let most = choice.range().into_iter().map(i64::unsigned_abs).max().unwrap_or(0);
            Op::Linear(Linear {
                conv,
                accumulator_bits: 0,
                weight_bits: (65 - most.leading_zeros()).max(2),
                shift: 0,
                rounding,
                addend: None,
                choice: Some(choice),
            })
        };
        let (name, output) = self.before(node, "products");
        let shape = self.shapes[&node.output].clone();
        let output = self.tensor(&output, &shape, Format { bits: 1, signed: true, ..format });
        self.weights.insert(self.next(), NodeWeights { weight, bias });
        self.push(&name, op, vec![self.index[&node.inputs[0]]], output);
        Ok(output)
    }

    /// A 1x1 convolution of each channel by itself.
    fn per_channel(&self, node: &SourceNode) -> Result<Conv> {
        let conv = self.conv(node)?;
        let channels = conv.out_channels;
        Ok(Conv {
            in_height: conv.out_height(),
            in_width: conv.out_width(),
            groups: channels,
            ..Conv::fully_connected(channels, channels)
        })
    }

    /// Multipliers that bring sums to an output of `scale`; `ratio` is the scale of the sums,
    /// channels' own aside, in that.
    fn channels(&self, node: &SourceNode, ratio: f64, scale: f64) -> Result<Channels> {
        let SourceOp::QuantisedConv { scale: scales, bias, .. } = &node.op else {
            return Err(Error::invalid("lower", &node.name, "has no scales"));
        };
        let floats =
            |name: &String| self.scales.program().floats[name].data.iter().map(|v| f64::from(*v));
        let most = f64::from((1u32 << (MULTIPLIER_BITS - 1)) - 1);
        let largest = floats(scales).map(|s| (s * ratio).abs()).fold(0.0, f64::max);
        let fits = |shift: &u32| (largest * f64::from(*shift).exp2()).round() <= most;
        let far = "its scales are far too large for the calibrated range of its output";
        let refused =
            |what| Error::unsupported(&node.name, what, "calibrate with inputs like the real ones");
        let shift = (0..=SHIFT_LIMIT).rev().find(fits).ok_or_else(|| refused(far))?;
        let factor = f64::from(shift).exp2();
        let weight = floats(scales).map(|s| (s * ratio * factor).round() as i32).collect();
        let bias = floats(bias).map(|b| (b / scale * factor).round());
        let bias: Option<Vec<i64>> =
            bias.map(|b| (b.abs() <= BIAS_LIMIT).then_some(b as i64)).collect();
        let far = "its bias is far too large for the calibrated range of its output";
        let bias = bias.ok_or_else(|| refused(far))?;
        Ok(Channels { weights: NodeWeights { weight, bias }, shift })
    }

    /// Drops low bits of values that are not negative.
    pub(super) fn requantize(&mut self, node: &SourceNode) -> Result<()> {
        let Some(drop) = self.scales.dropped(node) else {
            let what = "reads a tensor that may be negative, or has fewer bits";
            return Err(Error::unsupported(&node.name, what, "put a ReLU in front of it"));
        };
        let input = self.index[&node.inputs[0]];
        let format = self.format_of(input);
        let scale = format.scale * f64::from(drop).exp2();
        self.write(node, Op::Requantize { drop }, vec![input], Format { bits: 1, scale, ..format });
        Ok(())
    }
}

/// The integers of one channel each.
struct Channels {
    weights: NodeWeights,
    shift: u32,
}

/// The integers that floats are, if all are.
fn whole(values: &[f32]) -> Option<Vec<i32>> {
    let each = |v: &f32| (v.fract() == 0.0 && v.abs() < 1e6).then_some(*v as i32);
    values.iter().map(each).collect()
}
