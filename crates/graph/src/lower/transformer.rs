//! Operators of transformers: scales that suit them, and their integer nodes.

use super::build::Builder;
use super::scale::{Scales, levels, positive};
use crate::functions::newton::Newton;
use crate::functions::smu::Smooth;
use crate::functions::{Gelu, Smu};
use crate::ir::{Embedding, Format, MatMul, NodeWeights, Op, Rounding, View};
use crate::source::{SourceNode, SourceOp};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::ops::Range;

/// Bits that hidden states have beyond activations.
const HIDDEN_BITS: u32 = 3;
/// Room above what calibration saw before a norm.
const MARGIN: f64 = 1.1;
/// `e^-x` is nothing from here on, for every precision that results have.
const NOTHING: f64 = 12.0;
/// The finest scale of scores: what counts below a maximum has seven bits, and a mask fits
/// beside it.
const FINEST: f64 = NOTHING / 127.0;
/// Where GELU is a ReLU, up to what results of the finest scale show.
const GELU_REACH: f64 = 2.5;
/// Low bits that a table's entries have beyond its results.
const TABLE_SHIFT: u32 = 4;
/// What a shift may be off by for rounding of scales.
const ROUNDED: f64 = 1e-6;
/// Inverse roots of variances, and of denominators: one for each row, so precise ones.
const NORM: Newton = Newton { iterations: 3, ratio: 2, precision: 10 };
/// Bits that a smooth maximum's argument has beyond activations, with its sign.
const SMOOTH_BITS: u32 = 1;
/// Bits that parts of a softmax have after the point beyond those of scores, at least and
/// at most.
const PART_BITS: [u32; 2] = [2, 6];
/// Last places of a denominator's epsilon, if there can be so many.
const EPSILON: f64 = 8.0;
/// Widths that are chosen once ranges are known.
const LATER: u32 = 12;

impl Scales<'_> {
    /// The scales that a transformer's `node` asks of tensors that it reads or writes.
    pub(super) fn transformer_demands<'b>(
        &self,
        node: &'b SourceNode,
    ) -> Result<Vec<(&'b str, f64)>> {
        let activation = self.activation_bits;
        let side = |(low, high): (f64, f64)| positive(high.max(-low));
        let (first, output) = (node.inputs.first().map_or("", String::as_str), &node.output);
        Ok(match &node.op {
            SourceOp::LayerNorm { .. } => {
                let input =
                    side(self.own_range(first)?) * MARGIN / levels(activation + HIDDEN_BITS);
                let largest = levels(activation + HIDDEN_BITS) - 1.0;
                let columns = self.program.shapes()?[first][0] as f64;
                vec![(first, input), (output, columns.sqrt() / largest)]
            }
            SourceOp::Softmax {} => {
                let scores = side(self.own_range(self.scores(first))?) / levels(activation);
                vec![(first, scores.max(FINEST)), (output, 1.0 / self.peak())]
            }
            SourceOp::MatMul {} => {
                let inputs = node.inputs.iter().filter(|input| self.is_shared(input));
                let scaled = |input| {
                    Ok((
                        String::as_str(input),
                        side(self.own_range(input)?) / levels(activation - 1),
                    ))
                };
                let mut demands = inputs.map(scaled).collect::<Result<Vec<_>>>()?;
                if !self.is_known(first) {
                    demands.push((output, side(self.own_range(output)?) / levels(activation + 1)));
                }
                demands
            }
            SourceOp::Gelu {} => {
                let finest = GELU_REACH / levels(activation.saturating_sub(2).max(2));
                let scale = side(self.own_range(first)?) / levels(activation + HIDDEN_BITS);
                vec![(first, scale.max(finest))]
            }
            SourceOp::Smu { .. } => {
                let scale = side(self.own_range(first)?) / levels(activation + SMOOTH_BITS - 1);
                vec![(first, scale)]
            }
            SourceOp::ReluSoftmax { .. } => {
                let scores = side(self.own_range(self.scores(first))?) / levels(activation);
                vec![(first, scores), (output, 1.0 / self.peak())]
            }
            _ => vec![],
        })
    }

    /// Rows of the largest table that is looked into: then the input is positions.
    pub(super) fn vocabulary(&self) -> Option<usize> {
        let tables = self.program.source.nodes.iter().filter_map(|node| match &node.op {
            SourceOp::Embedding { weight } => self.program.floats[weight].shape.first().copied(),
            _ => None,
        });
        tables.max()
    }

    /// Ranges of what the input has at each place on its first axis, where some are masks;
    /// the others are positions in tables, or numbers.
    pub(super) fn input_rows(&self) -> Result<Vec<[i64; 2]>> {
        let places = self.program.source.input.shape[0];
        let masks = self.mask_rows();
        if self.vocabulary().is_none() {
            let (_, all) = self.input()?;
            let row = |place| if masks.contains(&place) { [0, 1] } else { all };
            return Ok(if masks.is_empty() { vec![] } else { (0..places).map(row).collect() });
        }
        let mut ranges = vec![[0, 1]; places];
        for node in &self.program.source.nodes {
            let SourceOp::Embedding { weight } = &node.op else { continue };
            let rows = self.program.floats[weight].shape[0] as i64;
            let Some(shown) = self.rows_of_input(&node.inputs[0]) else {
                let why = "looks up at what is not a slice of the input";
                return Err(Error::unsupported(&node.name, why, "give it token ids"));
            };
            let of = |range: &mut [i64; 2]| *range = [0, range[1].max(rows - 1)];
            ranges[shown].iter_mut().for_each(of);
        }
        Ok(ranges)
    }

    /// Scale and clip bounds of an input of hidden states no further than `side` from 0, above
    /// a mask: its 1 is clipped to the integer 1, which no scale above 1 would show.
    pub(super) fn masked_input(&self, side: f64) -> (f64, [i64; 2]) {
        let largest = levels(self.activation_bits + HIDDEN_BITS);
        ((side / largest).min(1.0), [-(largest as i64), largest as i64])
    }

    /// The places on the input's first axis that are read as masks.
    pub(super) fn mask_rows(&self) -> BTreeSet<usize> {
        let read = self.program.source.nodes.iter().filter_map(|node| match &node.op {
            SourceOp::Mask {} => Some(&node.inputs[1]),
            SourceOp::MatMul {} => Some(&node.inputs[0]).filter(|input| self.is_known(input)),
            _ => None,
        });
        read.filter_map(|tensor| self.rows_of_input(tensor)).flatten().collect()
    }

    /// The places on the input's first axis that `tensor` shows, if it shows no more than that.
    fn rows_of_input(&self, tensor: &str) -> Option<Range<usize>> {
        let input = &self.program.source.input;
        let Some(producer) = self.program.source.producer(tensor) else {
            return Some(0..input.shape[0]);
        };
        let shown = &self.program.source.nodes[producer];
        let SourceOp::View { shape, start, strides } = &shown.op else { return None };
        if shown.inputs.first() != Some(&input.name) {
            return None;
        }
        let each = input.shape.iter().skip(1).product::<usize>().max(1);
        let view = View { start: *start, strides: strides.clone() };
        let end = crate::ops::arrange::last_viewed(&view, shape).unwrap_or(0);
        Some(start / each..end / each + 1)
    }

    /// The integer of probability 1.
    fn peak(&self) -> f64 {
        levels(self.activation_bits - 1)
    }

    /// What a softmax of `tensor` is of, before a mask.
    pub(super) fn scores<'b>(&'b self, tensor: &'b str) -> &'b str {
        let producer = self.program.source.producer(tensor);
        match producer.map(|index| &self.program.source.nodes[index]) {
            Some(SourceNode { op: SourceOp::Mask {}, inputs, .. }) => &inputs[0],
            _ => tensor,
        }
    }

    /// The operator that wrote what `tensor` shows in some order.
    pub(super) fn origin(&self, tensor: &str) -> Option<&SourceNode> {
        let mut name = tensor;
        loop {
            let node = &self.program.source.nodes[self.program.source.producer(name)?];
            match node.op {
                SourceOp::View { .. } | SourceOp::Reshape { .. } => name = &node.inputs[0],
                SourceOp::Scale { factor } if factor > 0.0 => name = &node.inputs[0],
                _ => return Some(node),
            }
        }
    }

    /// Whether the client knows the values of `tensor`.
    pub(super) fn is_known(&self, tensor: &str) -> bool {
        self.origin(tensor).is_none()
    }

    /// Whether a dense layer of a norm's result wrote `tensor`: that is never far beyond what
    /// calibration saw.
    pub(super) fn is_bounded(&self, tensor: &str) -> bool {
        let linear = self.origin(tensor).filter(|node| node.op.is_linear());
        let input = linear.and_then(|linear| self.origin(&linear.inputs[0]));
        input.is_some_and(|node| matches!(node.op, SourceOp::LayerNorm { .. }))
    }

    /// Whether a factor of a product may choose its scale.
    pub(super) fn is_shared(&self, tensor: &str) -> bool {
        let softmax = matches!(
            self.origin(tensor),
            Some(SourceNode { op: SourceOp::Softmax {} | SourceOp::ReluSoftmax { .. }, .. })
        );
        let by_client = |node: &&SourceNode| {
            matches!(node.op, SourceOp::MatMul {}) && self.is_known(&node.inputs[0])
        };
        let readers =
            || self.program.source.nodes.iter().filter(|n| n.inputs.iter().any(|i| i == tensor));
        !softmax && !self.is_known(tensor) && !readers().any(|node| by_client(&node))
    }
}

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
            matches!(n.op, SourceOp::Mask {} | SourceOp::Softmax {} | SourceOp::ReluSoftmax { .. })
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
        if readers.all(|other| matches!(other.op, SourceOp::ReluSoftmax { .. })) {
            // They take scores and mask apart.
            return Ok(());
        }
        let x = self.index[&node.inputs[0]];
        let x = self.within(node, "clip", x, (&node.inputs[0], self.activation_bits() + 1))?;
        let scale = self.format_of(x).scale;
        let Op::Relu { saturate, .. } = self.graph.nodes[self.next() - 1].op else {
            return Err(Error::invalid("lower", &node.name, "reads scores without bounds"));
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
        let mask = mask.filter(|mask| matches!(mask.op, SourceOp::Mask {}));
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
        let origin = self.scales.origin(input).map(|origin| origin.op.clone());
        // A table's values are what they are.
        if !matches!(origin, Some(SourceOp::Embedding { .. } | SourceOp::AddConstant { .. })) {
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
