//! Layers whose weights have few bits: a product by the bits of the weights, then a
//! multiplier for each channel, which brings the result to the scale of the output.
//!
//! Weights of few bits leave no room for the channels' scales, which is why these are
//! multiplied afterwards; there the residual is added, in the accumulator and without a
//! conversion of the main branch (UFO, Fig. 12b).

use super::build::{Builder, multiplier};
use super::options::Switch;
use crate::ir::{Conv, Format, Linear, NodeWeights, Op};
use crate::ops::choice::WeightBits;
use crate::ops::winograd::Winograd;
use crate::source::{Old, SourceNode};
use crate::{Error, Result};

/// Signed bits of a channel's multiplier.
const MULTIPLIER_BITS: u32 = 8;
/// Bits that are dropped after it, at most.
const SHIFT_LIMIT: u32 = 30;
/// Relative difference up to which the scales of channels are one.
const SAME: f64 = 1e-6;
const BIAS_LIMIT: f64 = (1u64 << 50) as f64;

impl Builder<'_> {
    /// Adds the nodes of a [`Old::QuantisedConv`], which `skip` is added to.
    pub(super) fn quantised(
        &mut self,
        node: &SourceNode,
        skip: Option<&String>,
        output: &str,
    ) -> Result<()> {
        if let Some(scale) = self.bare(node).filter(|_| skip.is_none()) {
            return self.products(node, (&node.name, output), scale).map(drop);
        }
        let (name, step) = self.before(node, "products");
        let products = self.products(node, (&name, &step), 1.0)?;
        let scale = self.scales.of(output)?;
        let input_scale = self.format_of(products).scale;
        let channels = self.channels(node, input_scale / scale, scale)?;
        let conv = self.per_channel(node)?;
        let fine = scale / f64::from(channels.shift).exp2();
        let addend = skip.map(|skip| self.addend(node, self.index[skip], fine)).transpose()?;
        let apart = self.options.disabled.contains(&Switch::Residual);
        let layer = Linear {
            conv,
            accumulator_bits: 0,
            weight_bits: MULTIPLIER_BITS + 1,
            shift: channels.shift,
            rounding: self.options.rounding,
            addend: addend.map(|(_, factor)| factor),
            choice: Some(WeightBits::twos_complement(MULTIPLIER_BITS)),
        };
        if let Some(addend) = addend.filter(|_| apart) {
            return self.aligned(node, (layer, channels), products, addend, (output, scale));
        }
        let shape = self.shapes[output].clone();
        let output = self.tensor(output, &shape, Format { bits: 1, scale, signed: true });
        self.weights.insert(self.next(), channels.weights);
        let inputs = [products].into_iter().chain(addend.map(|(tensor, _)| tensor)).collect();
        self.push(&node.name, Op::Linear(layer), inputs, output);
        Ok(())
    }

    /// A tensor and what multiplies it in an accumulator of a `scale`.
    fn addend(&self, node: &SourceNode, tensor: usize, scale: f64) -> Result<(usize, i64)> {
        Ok((tensor, multiplier(self.format_of(tensor).scale / scale, &node.name)?))
    }

    /// The same with a sum of its own behind conversions of both branches (UFO, Fig. 12a).
    fn aligned(
        &mut self,
        node: &SourceNode,
        (layer, channels): (Linear, Channels),
        products: usize,
        (skip, factor): (usize, i64),
        (output, scale): (&str, f64),
    ) -> Result<()> {
        let shift = channels.shift;
        let shape = self.shapes[output].clone();
        let fine = Format { bits: 1, scale: scale / f64::from(shift).exp2(), signed: true };
        let (name, step) = self.before(node, "scaled");
        let scaled = self.tensor(&step, &shape, fine);
        self.weights.insert(self.next(), channels.weights);
        let layer = Linear { shift: 0, addend: None, ..layer };
        self.push(&name, Op::Linear(layer), vec![products], scaled);
        let mut aligned = vec![];
        for (step, tensor) in [("main", scaled), ("skip", skip)] {
            let (name, wide) = self.before(node, step);
            let wide = self.tensor(&wide, &shape, self.format_of(tensor));
            self.push(&name, Op::Requantize { drop: 0 }, vec![tensor], wide);
            aligned.push(wide);
        }
        let output = self.tensor(output, &shape, Format { bits: 1, scale, signed: true });
        let op = Op::Sum { multipliers: [1, factor], accumulator_bits: 0, shift };
        self.push(&node.name, op, aligned, output);
        Ok(())
    }

    /// The scale of all channels, if it is one, there is no bias and only sums read the
    /// result: these multiply it anyway, as those of residuals do.
    fn bare(&self, node: &SourceNode) -> Option<f64> {
        let Old::QuantisedConv { scale, bias, .. } = &node.op.old() else { return None };
        let program = self.scales.program();
        let [scales, biases] = [scale, bias].map(|name| &program.floats[name].data);
        let first = f64::from(*scales.first()?);
        let near = |v: f32, to: f64| (f64::from(v) - to).abs() < SAME * first;
        let plain = scales.iter().all(|s| near(*s, first)) && biases.iter().all(|b| near(*b, 0.0));
        let mut readers = self.scales.readers(&node.output);
        let added = readers.all(|reader| matches!(reader.op.old(), Old::Add {}));
        (plain && added && program.source.output != node.output).then_some(first)
    }

    /// Adds the products themselves and gives their tensor, in units of the input times
    /// `scale`.
    fn products(
        &mut self,
        node: &SourceNode,
        (name, output): (&str, &str),
        scale: f64,
    ) -> Result<usize> {
        let Old::QuantisedConv { weight, winograd, importance, offset, .. } = &node.op.old() else {
            return Err(Error::internal(&node.name, "has no integer weights"));
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
        let shape = self.shapes[&node.output].clone();
        let format = Format { bits: 1, scale: format.scale * scale, signed: true };
        let output = self.tensor(output, &shape, format);
        self.weights.insert(self.next(), NodeWeights { weight, bias });
        self.push(name, op, vec![self.index[&node.inputs[0]]], output);
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
        let Old::QuantisedConv { scale: scales, bias, .. } = &node.op.old() else {
            return Err(Error::internal(&node.name, "has no scales"));
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
