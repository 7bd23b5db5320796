//! Scales that suit the operators of transformers.

use super::scale::{Scales, levels, positive};
use crate::error::{Error, Result};
use crate::ops::View;
use crate::ops::arrange::last_viewed;
use crate::source::{Old, SourceNode};
use std::collections::BTreeSet;
use std::ops::Range;

/// `e^-x` is nothing from here on, for every precision that results have.
pub(super) const NOTHING: f64 = 12.0;
/// Bits that hidden states have beyond activations.
pub(super) const HIDDEN_BITS: u32 = 3;
/// Room above what calibration saw before a norm.
const MARGIN: f64 = 1.1;
/// The finest scale of scores: what counts below a maximum has seven bits, and a mask fits
/// beside it.
const FINEST: f64 = NOTHING / 127.0;
/// Where GELU is a ReLU, up to what results of the finest scale show.
const GELU_REACH: f64 = 2.5;
/// Bits that a smooth maximum's argument has beyond activations, with its sign.
pub(super) const SMOOTH_BITS: u32 = 1;

impl Scales<'_> {
    /// The scales that a transformer's `node` asks of tensors that it reads or writes.
    pub(super) fn transformer_demands<'b>(
        &self,
        node: &'b SourceNode,
    ) -> Result<Vec<(&'b str, f64)>> {
        let activation = self.activation_bits;
        let side = |(low, high): (f64, f64)| positive(high.max(-low));
        let (first, output) = (node.inputs.first().map_or("", String::as_str), &node.output);
        Ok(match &node.op.old() {
            Old::LayerNorm { .. } => {
                let input =
                    side(self.own_range(first)?) * MARGIN / levels(activation + HIDDEN_BITS);
                let largest = levels(activation + HIDDEN_BITS) - 1.0;
                let columns = self.program.shapes()?[first][0] as f64;
                vec![(first, input), (output, columns.sqrt() / largest)]
            }
            Old::Softmax {} => {
                let scores = side(self.own_range(self.scores(first))?) / levels(activation);
                vec![(first, scores.max(FINEST)), (output, 1.0 / self.peak())]
            }
            Old::MatMul {} => {
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
            Old::Gelu {} => {
                let finest = GELU_REACH / levels(activation.saturating_sub(2).max(2));
                let scale = side(self.own_range(first)?) / levels(activation + HIDDEN_BITS);
                vec![(first, scale.max(finest))]
            }
            Old::Smu { .. } => {
                let scale = side(self.own_range(first)?) / levels(activation + SMOOTH_BITS - 1);
                vec![(first, scale)]
            }
            Old::ReluSoftmax { .. } => {
                let scores = side(self.own_range(self.scores(first))?) / levels(activation);
                vec![(first, scores), (output, 1.0 / self.peak())]
            }
            _ => vec![],
        })
    }

    /// Rows of the largest table that is looked into: then the input is positions.
    pub(super) fn vocabulary(&self) -> Option<usize> {
        let tables = self.program.source.nodes.iter().filter_map(|node| match &node.op.old() {
            Old::Embedding { weight } => self.program.floats[weight].shape.first().copied(),
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
            let Old::Embedding { weight } = &node.op.old() else { continue };
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
        let read = self.program.source.nodes.iter().filter_map(|node| match &node.op.old() {
            Old::Mask {} => Some(&node.inputs[1]),
            Old::MatMul {} => Some(&node.inputs[0]).filter(|input| self.is_known(input)),
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
        let Old::View { shape, start, strides } = &shown.op.old() else { return None };
        if shown.inputs.first() != Some(&input.name) {
            return None;
        }
        let each = input.shape.iter().skip(1).product::<usize>().max(1);
        let view = View { start: *start, strides: strides.clone() };
        let end = last_viewed(&view, shape).unwrap_or(0);
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
            Some(SourceNode { op, inputs, .. }) if op.is::<crate::source::ops::Mask>() => {
                &inputs[0]
            }
            _ => tensor,
        }
    }

    /// The operator that wrote what `tensor` shows in some order.
    pub(super) fn origin(&self, tensor: &str) -> Option<&SourceNode> {
        let mut name = tensor;
        loop {
            let node = &self.program.source.nodes[self.program.source.producer(name)?];
            match node.op.old() {
                Old::View { .. } | Old::Reshape { .. } => name = &node.inputs[0],
                Old::Scale { factor } if factor > 0.0 => name = &node.inputs[0],
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
        let linear = self.origin(tensor).filter(|node| node.op.linear().is_some());
        let input = linear.and_then(|linear| self.origin(&linear.inputs[0]));
        input.is_some_and(|node| matches!(node.op.old(), Old::LayerNorm { .. }))
    }

    /// Whether a factor of a product may choose its scale.
    pub(super) fn is_shared(&self, tensor: &str) -> bool {
        let softmax = matches!(
            self.origin(tensor).map(|node| node.op.old()),
            Some(Old::Softmax {} | Old::ReluSoftmax { .. })
        );
        let by_client = |node: &&SourceNode| {
            matches!(node.op.old(), Old::MatMul {}) && self.is_known(&node.inputs[0])
        };
        let readers =
            || self.program.source.nodes.iter().filter(|n| n.inputs.iter().any(|i| i == tensor));
        !softmax && !self.is_known(tensor) && !readers().any(|node| by_client(&node))
    }
}
