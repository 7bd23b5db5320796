//! Real size of one integer unit of each tensor, from calibrated ranges.

use crate::source::{Calibration, Program, SourceNode, SourceOp};
use crate::{Error, Result};

/// Bits that a tensor no ReLU follows gets beyond the activations', e.g. logits.
const EXTRA_BITS: u32 = 3;
/// Relative tolerance between ranges that should agree.
const TOLERANCE: f64 = 1e-6;

pub(super) struct Scales<'a> {
    pub(super) program: &'a Program,
    pub(super) calibration: &'a Calibration,
    pub(super) activation_bits: u32,
}

impl Scales<'_> {
    /// Largest activation, `2^activation_bits - 1`.
    fn levels(&self) -> f64 {
        f64::from((1u32 << self.activation_bits) - 1)
    }

    /// Scale and clip bounds of the graph's input: unsigned when no negative
    /// value was seen, else symmetric.
    pub(super) fn input(&self) -> Result<(f64, [i64; 2])> {
        let (low, high) = self.seen(&self.program.source.input.name)?;
        let levels = (1i64 << self.activation_bits) - 1;
        if low >= 0.0 {
            Ok((positive(high) / levels as f64, [0, levels]))
        } else {
            let side = levels >> 1;
            Ok((positive(high.abs().max(-low)) / side as f64, [-side, side]))
        }
    }

    /// Scale of a linear or sum node's output: that of the next ReLU, else by
    /// the tensor's own range.
    pub(super) fn rescaled(&self, tensor: &str) -> Result<f64> {
        if let Some(scale) = self.demanded(tensor)? {
            return Ok(scale);
        }
        let (low, high) = self.own_range(tensor)?;
        let levels = (1i64 << (self.activation_bits + EXTRA_BITS)) - 1;
        Ok(positive(high.max(-low)) / levels as f64)
    }

    /// The coarsest scale that a ReLU behind `tensor` asks for.
    fn demanded(&self, tensor: &str) -> Result<Option<f64>> {
        let mut coarsest: Option<f64> = None;
        for reader in self.readers(tensor) {
            let asked = match &reader.op {
                SourceOp::Relu { .. } => Some(self.relu_range(reader)? / self.levels()),
                SourceOp::MaxPool { .. } | SourceOp::Reshape { .. } => {
                    self.demanded(&reader.output)?
                }
                SourceOp::AveragePool { kernel, .. } => {
                    let size = (kernel[0] * kernel[1]) as f64;
                    self.demanded(&reader.output)?.map(|scale| scale * size)
                }
                _ => None,
            };
            coarsest = match (coarsest, asked) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            };
        }
        Ok(coarsest)
    }

    /// Bits at which a ReLU on a tensor of this scale saturates.
    pub(super) fn saturate(&self, node: &SourceNode, scale: f64) -> Result<u32> {
        let range = self.relu_range(node)?;
        let top = |bits: u32| f64::from((1u32 << bits) - 1) * scale;
        let mut candidates = self.activation_bits..=crate::verify::MAX_SATURATE;
        let bits = candidates.find(|bits| top(*bits) >= range * (1.0 - TOLERANCE));
        let SourceOp::Relu { maximum } = &node.op else { return Ok(self.activation_bits) };
        match (bits, maximum) {
            (Some(bits), None) => Ok(bits),
            (Some(bits), Some(limit)) if top(bits) <= limit * (1.0 + TOLERANCE) => Ok(bits),
            _ => {
                let what = "clips a tensor whose scale another operator fixes";
                let instead = "put the clip right after a convolution, Gemm or Add of its own";
                Err(Error::unsupported(&node.name, what, instead))
            }
        }
    }

    /// The value at which a ReLU's output saturates: the largest one seen, at
    /// most the maximum.
    fn relu_range(&self, node: &SourceNode) -> Result<f64> {
        let SourceOp::Relu { maximum } = &node.op else { return Ok(1.0) };
        match (self.own_range(&node.output), maximum) {
            (Ok((_, high)), Some(limit)) if high > 0.0 => Ok(positive(high.min(*limit))),
            (_, Some(limit)) => Ok(*limit),
            (range, None) => Ok(positive(range?.1)),
        }
    }

    /// Calibrated range of a tensor. A pass may have made the tensor, in which
    /// case its only reader is a reshape or a ReLU whose range will do.
    fn own_range(&self, tensor: &str) -> Result<(f64, f64)> {
        let mut readers = self.readers(tensor);
        match (readers.next(), readers.next()) {
            (Some(SourceNode { op, output, .. }), None)
                if matches!(op, SourceOp::Reshape { .. } | SourceOp::Relu { .. })
                    && !self.calibration.contains_key(tensor) =>
            {
                self.own_range(output)
            }
            _ => self.seen(tensor),
        }
    }

    fn readers(&self, tensor: &str) -> impl Iterator<Item = &SourceNode> {
        let nodes = self.program.source.nodes.iter();
        nodes.filter(move |node| node.inputs.iter().any(|input| input == tensor))
    }

    fn seen(&self, tensor: &str) -> Result<(f64, f64)> {
        match self.calibration.get(tensor) {
            Some((low, high)) if low.is_finite() && high.is_finite() && low <= high => {
                Ok((*low, *high))
            }
            Some((low, high)) => {
                Err(Error::Misuse(format!("calibrated range of `{tensor}` is {low}..{high}")))
            }
            None => Err(Error::Misuse(format!("calibration has no range for `{tensor}`"))),
        }
    }
}

/// A usable range: 1 for a tensor that was always zero, never so small that
/// dividing by it overflows.
fn positive(range: f64) -> f64 {
    if range > 0.0 { range.max(1e-30) } else { 1.0 }
}
