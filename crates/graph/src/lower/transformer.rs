//! Operators of transformers: their integer nodes.

use super::build::Builder;
use super::demands::{HIDDEN_BITS, NOTHING, SMOOTH_BITS};
use super::scale::{levels, positive};
use crate::error::{Error, Result};
use crate::functions::newton::Newton;
use crate::functions::smu::Smooth;
use crate::functions::{Gelu, Smu};
use crate::ir::{Format, NodeWeights, Op};
use crate::ops::{Embedding, MatMul, Rounding, View};
use crate::source::{Old, SourceNode};

/// Low bits that a table's entries have beyond its results.
const TABLE_SHIFT: u32 = 4;
/// What a shift may be off by for rounding of scales.
const ROUNDED: f64 = 1e-6;
/// Inverse roots of variances, and of denominators: one for each row, so precise ones.
const NORM: Newton = Newton { iterations: 3, ratio: 2, precision: 10 };
/// Bits that parts of a softmax have after the point beyond those of scores, at least and
/// at most.
const PART_BITS: [u32; 2] = [2, 6];
/// Last places of a denominator's epsilon, if there can be so many.
const EPSILON: f64 = 8.0;
/// Widths that are chosen once ranges are known.
const LATER: u32 = 12;

impl Builder<'_> {
    /// Rows of a table, `[length, columns]`.
    pub(super) fn embedding(&mut self, node: &SourceNode, weight: &str) -> Result<()> {
        let scale = self.scales.of(&node.output)?;
        let table = &self.scales.program().floats[weight];
        let unit = scale / f64::from(1u32 << TABLE_SHIFT);
        let entry = |w: &f32| (f64::from(*w) / unit).round();
        let entries: Vec<f64> = table.data.iter().map(entry).collect();
        let largest = entries.iter().fold(0.0f64, |most, entry| most.max(entry.abs()));
        if largest >= f64::from(1u32 << 30) {
            let what = "its table is far too large for the calibrated range";
            return Err(Error::unsupported(&node.name, what, "calibrate with real inputs"));
        }
        let weight = entries.into_iter().map(|entry| entry as i32).collect();
        let [rows, columns] = [table.shape[0], table.shape[1]];
        // One more for the rounding term.
        let weight_bits = ((largest as u32 + (1 << TABLE_SHIFT)).ilog2() + 2).max(TABLE_SHIFT + 2);
        let rounding = self.options.rounding;
        let op = Op::Embedding(Embedding { rows, weight_bits, shift: TABLE_SHIFT, rounding });
        let length = self.shapes[&node.inputs[0]][0];
        let (name, across) = self.before(node, "columns");
        let format = Format { bits: 1, scale, signed: true };
        let across = self.tensor(&across, &[columns, length], format);
        self.weights.insert(self.next(), NodeWeights { weight, bias: vec![] });
        self.push(&name, op, vec![self.index[&node.inputs[0]]], across);
        let view = View { start: 0, strides: vec![1, length] };
        self.write(node, Op::View(view), vec![across], format);
        Ok(())
    }

    /// A product at about the scale that its readers want: shifts are whole.
    pub(super) fn matmul(&mut self, node: &SourceNode) -> Result<()> {
        let mut inputs: Vec<usize> = node.inputs.iter().map(|name| self.index[name]).collect();
        if node.inputs.iter().all(|input| self.scales.is_shared(input)) {
            for (place, (input, name)) in inputs.iter_mut().zip(&node.inputs).enumerate() {
                if !self.scales.is_bounded(name) {
                    let bits = self.activation_bits() + 1;
                    *input = self.within(node, &format!("clip{place}"), *input, (name, bits))?;
                }
            }
        }
        let by_client = self.scales.is_known(&node.inputs[0]);
        // A mask's 1 is the integer 1.
        let scaled = &inputs[usize::from(by_client)..];
        let product: f64 = scaled.iter().map(|input| self.format_of(*input).scale).product();
        let shift = match by_client {
            true => 0.0,
            false => {
                ((self.scales.of(&node.output)? / product).log2() - ROUNDED).ceil().clamp(0.0, 30.0)
            }
        };
        let rounding = if by_client { Rounding::Exact } else { self.options.rounding };
        let op = MatMul { accumulator_bits: 1, shift: shift as u32, rounding };
        let format = Format { bits: 1, scale: product * shift.exp2(), signed: true };
        let nodes = &self.scales.program().source.nodes;
        let mut readers = nodes.iter().filter(|n| n.inputs.contains(&node.output));
        let narrow = readers.all(|n| {
            matches!(n.op.old(), Old::Mask {} | Old::Softmax {} | Old::ReluSoftmax { .. })
        });
        if by_client || narrow {
            self.write(node, Op::MatMul(op), inputs, format);
        } else {
            self.extended(node, Op::MatMul(op), inputs, format);
        }
        Ok(())
    }

    /// `op` with results in narrow shares, and these in wider ones under the node's names.
    fn extended(&mut self, node: &SourceNode, op: Op, inputs: Vec<usize>, format: Format) {
        let shape = self.shapes[&node.output].clone();
        let (name, narrow) = self.before(node, "narrow");
        let narrow = self.tensor(&narrow, &shape, format);
        self.push(&name, op, inputs, narrow);
        self.write(node, Op::Extend, vec![narrow], Format { bits: 1, ..format });
    }

    /// `x`, read by `node`, within a calibrated range of so many bits at its scale.
    fn within(
        &mut self,
        node: &SourceNode,
        step: &str,
        x: usize,
        (tensor, bits): (&str, u32),
    ) -> Result<usize> {
        let (low, high) = self.scales.own_range(tensor)?;
        let scale = self.format_of(x).scale;
        let needed = (positive(high.max(-low)) / scale).log2().ceil().clamp(1.0, 15.0) as u32 + 1;
        let bits = bits.min(needed.max(4));
        let half = f64::from(1u32 << (bits - 1));
        let range = (-half * scale, (half - 1.0) * scale);
        self.clipped(node, step, x, (range, bits))
    }

    /// Scores, higher by more than their range where they count.
    pub(super) fn mask(&mut self, node: &SourceNode) -> Result<()> {
        let nodes = &self.scales.program().source.nodes;
        let mut readers = nodes.iter().filter(|other| other.inputs.contains(&node.output));
        if readers.all(|other| matches!(other.op.old(), Old::ReluSoftmax { .. })) {
            // They take scores and mask apart.
            return Ok(());
        }
        let x = self.index[&node.inputs[0]];
        let x = self.within(node, "clip", x, (&node.inputs[0], self.activation_bits() + 1))?;
        let scale = self.format_of(x).scale;
        let Op::Relu { saturate, .. } = self.graph.nodes[self.next() - 1].op else {
            return Err(Error::internal(&node.name, "reads scores without bounds"));
        };
        let lift = (1i64 << saturate) + (NOTHING / scale).ceil() as i64;
        let op = Op::Sum { multipliers: [1, lift], accumulator_bits: 1, shift: 0 };
        let inputs = vec![x, self.index[&node.inputs[1]]];
        self.write(node, op, inputs, Format { bits: 1, scale, signed: true });
        Ok(())
    }

    pub(super) fn softmax(&mut self, node: &SourceNode) -> Result<()> {
        let input = &node.inputs[0];
        let mut x = self.index[input];
        if self.scales.scores(input) == input {
            x = self.within(node, "clip", x, (input, self.activation_bits() + 1))?;
        }
        let op = Op::Softmax { bits: LATER, scale: self.format_of(x).scale };
        let bits = self.activation_bits();
        let scale = 1.0 / levels(bits - 1);
        self.extended(node, op, vec![x], Format { bits, scale, signed: false });
        Ok(())
    }

    pub(super) fn relu_softmax(
        &mut self,
        node: &SourceNode,
        smoothness: f64,
        epsilon: f64,
    ) -> Result<()> {
        let scores = self.scales.scores(&node.inputs[0]).to_owned();
        let bits = self.activation_bits() + 1;
        let x = self.within(node, "clip", self.index[&scores], (&scores, bits))?;
        let scale = self.format_of(x).scale;
        let [least, most] = PART_BITS;
        let enough = |bits: &u32| epsilon / scale * f64::from(1u32 << bits) >= EPSILON;
        let fraction = (least..most).find(enough).unwrap_or(most);
        let smooth = Smooth { bits: self.clipped_bits(x), scale, slope: 0.0, smoothness, fraction };
        let (newton, _) = least_newton(node, smooth)?;
        let mask = self.scales.program().source.producer(&node.inputs[0]);
        let mask = mask.map(|index| &self.scales.program().source.nodes[index]);
        let mask = mask.filter(|mask| matches!(mask.op.old(), Old::Mask {}));
        let inputs = [x].into_iter().chain(mask.map(|mask| self.index[&mask.inputs[1]])).collect();
        let op = Op::ReluSoftmax { smooth, epsilon, newton, division: NORM };
        let bits = self.activation_bits();
        let scale = 1.0 / levels(bits - 1);
        self.extended(node, op, inputs, Format { bits, scale, signed: false });
        Ok(())
    }

    /// The width of what a clip wrote.
    fn clipped_bits(&self, tensor: usize) -> u32 {
        let writer = self.graph.nodes.iter().find(|node| node.output == tensor);
        match writer.map(|node| &node.op) {
            Some(Op::Relu { saturate, .. }) => *saturate,
            _ => LATER,
        }
    }

    pub(super) fn smu(&mut self, node: &SourceNode, slope: f64, smoothness: f64) -> Result<()> {
        let input = &node.inputs[0];
        let bits = self.activation_bits() + SMOOTH_BITS;
        let x = self.within(node, "clip", self.index[input], (input, bits))?;
        let scale = self.format_of(x).scale;
        let smooth = Smooth { bits: self.clipped_bits(x), scale, slope, smoothness, fraction: 0 };
        let (newton, bits) = least_newton(node, smooth)?;
        // A bit to spare for the extension.
        let format = Format { bits: bits + 1, scale, signed: true };
        self.extended(node, Op::Smu { smooth, newton }, vec![x], format);
        Ok(())
    }

    pub(super) fn gelu(&mut self, node: &SourceNode) -> Result<()> {
        let x = self.index[&node.inputs[0]];
        let scale = self.format_of(x).scale;
        let Some(magnitude) = Gelu::least(scale) else {
            let what = "is a GELU of values that are too small";
            return Err(Error::unsupported(&node.name, what, "calibrate with real inputs"));
        };
        let op = Op::Gelu { magnitude, scale };
        self.write(node, op, vec![x], Format { bits: 1, scale, signed: true });
        Ok(())
    }

    pub(super) fn layer_norm(&mut self, node: &SourceNode) -> Result<()> {
        let input = &node.inputs[0];
        let mut x = self.index[input];
        let origin = self.scales.origin(input).map(|origin| origin.op.old());
        // A table's values are what they are.
        if !matches!(origin, Some(Old::Embedding { .. } | Old::AddConstant { .. })) {
            x = self.within(node, "clip", x, (input, self.activation_bits() + HIDDEN_BITS + 1))?;
        }
        let unit = 1.0 / self.scales.of(&node.output)?;
        let columns = self.shapes[input][0] as f64;
        // A sign, and a bit to spare for the extension.
        let bits = (unit * columns.sqrt() + 2.0).log2().ceil() as u32 + 2;
        let newton = self.options.newton.then_some(NORM);
        let op = Op::LayerNorm { bits: LATER, least: LATER / 3, unit, newton };
        self.extended(node, op, vec![x], Format { bits, scale: 1.0 / unit, signed: true });
        Ok(())
    }

    /// Tensors one after another, each at its own scale.
    pub(super) fn join(&mut self, node: &SourceNode) -> Result<()> {
        let inputs: Vec<usize> = node.inputs.iter().map(|name| self.index[name]).collect();
        let part = |input: &usize| (self.shape_of(*input)[0], self.format_of(*input).scale);
        let parts: Vec<(usize, f64)> = inputs.iter().map(part).collect();
        let scale = parts.iter().fold(0.0f64, |most, (_, scale)| most.max(*scale));
        let signed = inputs.iter().any(|input| self.format_of(*input).signed);
        self.parts.insert(self.graph.tensors.len(), parts);
        self.write(node, Op::Concat, inputs, Format { bits: 1, scale, signed });
        Ok(())
    }
}

fn least_newton(node: &SourceNode, smooth: Smooth) -> Result<(Newton, u32)> {
    Smu::least(smooth).map_err(|why| {
        let instead = "train it with a larger smoothness, or calibrate with real inputs";
        Error::unsupported(&node.name, format!("is {why}"), instead)
    })
}
