//! Real size of one integer unit of each tensor, from calibrated ranges.

use super::links::Links;
use crate::source::{Old, Program, Ranges, SourceNode};
use crate::{Error, Result};

/// Bits that a tensor no ReLU follows gets beyond the activations', e.g. logits.
const EXTRA_BITS: u32 = 3;
/// Relative tolerance between ranges that should agree.
const TOLERANCE: f64 = 1e-6;
/// Most bits of a table's argument.
const TABLE_BITS: u32 = 8;

pub(super) struct Scales<'a> {
    pub(super) program: &'a Program,
    calibration: &'a Ranges,
    pub(super) activation_bits: u32,
    links: Links<'a>,
}

/// Where a clipping operator stops: the smallest integer and the bits above it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Clipped {
    pub(super) low: i64,
    pub(super) bits: u32,
}

impl<'a> Scales<'a> {
    pub(super) fn new(program: &'a Program, calibration: &'a Ranges, activation_bits: u32) -> Self {
        Self { program, calibration, activation_bits, links: Links::new(program, activation_bits) }
    }

    pub(super) fn program(&self) -> &'a Program {
        self.program
    }

    /// Largest activation, `2^activation_bits - 1`.
    fn levels(&self) -> f64 {
        levels(self.activation_bits)
    }

    /// Bits of a table's argument.
    pub(super) fn table_bits(&self) -> u32 {
        self.activation_bits.min(TABLE_BITS)
    }

    /// Scale and clip bounds of the graph's input: unsigned when no negative
    /// value was seen, else symmetric.
    pub(super) fn input(&self) -> Result<(f64, [i64; 2])> {
        if let Some(rows) = self.vocabulary() {
            return Ok((1.0, [0, rows as i64 - 1]));
        }
        let (low, high) = self.seen(&self.program.source.input.name)?;
        if !self.mask_rows().is_empty() {
            return Ok(self.masked_input(positive(high.max(-low))));
        }
        let levels = (1i64 << self.activation_bits) - 1;
        if low >= 0.0 {
            Ok((positive(high) / levels as f64, [0, levels]))
        } else {
            let side = levels >> 1;
            Ok((positive(high.abs().max(-low)) / side as f64, [-side, side]))
        }
    }

    /// The scale that suits all tensors tied to `tensor`: the graph's input's, else the
    /// coarsest that a ReLU or another operator of limited range asks for, else by
    /// the ranges of what linear nodes and sums compute.
    pub(super) fn of(&self, tensor: &str) -> Result<f64> {
        let (root, ratio) = self.links.root(tensor);
        if self.links.is_fixed(tensor) {
            let input = &self.program.source.input.name;
            return Ok(self.input()?.0 * ratio / self.links.root(input).1);
        }
        let nodes = || self.program.source.nodes.iter();
        let mut demanded: Option<f64> = None;
        for node in nodes() {
            for (name, scale) in self.demands(node)? {
                let (other, ratio) = self.links.root(name);
                if other == root {
                    demanded = Some(demanded.unwrap_or(0.0).max(scale / ratio));
                }
            }
        }
        if let Some(scale) = demanded {
            return Ok(scale * ratio);
        }
        let mut coarsest = 0f64;
        for node in nodes().filter(|node| computes(&node.op.old())) {
            let (other, ratio) = self.links.root(&node.output);
            if other == root {
                let (low, high) = self.own_range(&node.output)?;
                let levels = levels(self.activation_bits + EXTRA_BITS);
                coarsest = coarsest.max(positive(high.max(-low)) / levels / ratio);
            }
        }
        Ok(coarsest * ratio)
    }

    /// The scales that `node` asks of tensors that it reads or writes.
    fn demands<'b>(&self, node: &'b SourceNode) -> Result<Vec<(&'b str, f64)>> {
        let levels = self.levels();
        Ok(match &node.op.old() {
            Old::Relu { .. } | Old::Clip { .. } => {
                let (low, high) = self.clip_range(node)?;
                let levels = self::levels(self.bits_of(node));
                vec![(&node.inputs[0], (high - low) / levels)]
            }
            Old::Table { .. } => {
                let (low, high) = self.around_zero(&node.inputs[0])?;
                let (from, to) = self.own_range(&node.output)?;
                let side = if from < 0.0 { levels / 2.0 } else { levels };
                let inputs = (1u32 << self.table_bits()) - 1;
                vec![
                    (&node.inputs[0], positive(high - low) / f64::from(inputs)),
                    (&node.output, positive(to.max(-from)) / side),
                ]
            }
            Old::Multiply {} => {
                let unsaturated = node.inputs.iter().filter(|input| !self.is_saturated(input));
                let ranges = unsaturated.map(|input| Ok((input, self.around_zero(input)?)));
                let ranges: Vec<_> = ranges.collect::<Result<_>>()?;
                let scale = |(low, high): (f64, f64)| positive(high - low) / levels;
                ranges.into_iter().map(|(input, range)| (input.as_str(), scale(range))).collect()
            }
            _ => self.transformer_demands(node)?,
        })
    }

    /// Bits that a [`Old::Requantize`] drops, if its input has more and is not negative.
    pub(super) fn dropped(&self, node: &SourceNode) -> Option<u32> {
        super::links::dropped(self.program, node, self.activation_bits)
    }

    /// Bits of a ReLU's or clip's result.
    pub(super) fn bits_of(&self, node: &SourceNode) -> u32 {
        match &node.op.old() {
            Old::Relu { bits: Some(bits), .. } => *bits,
            _ => self.activation_bits,
        }
    }

    /// Whether the values of `tensor` are clipped to what calibration saw.
    pub(super) fn is_saturated(&self, tensor: &str) -> bool {
        let Some(producer) = self.program.source.producer(tensor) else { return true };
        let node = &self.program.source.nodes[producer];
        match &node.op.old() {
            Old::Relu { .. }
            | Old::Clip { .. }
            | Old::Table { .. }
            | Old::Softmax {}
            | Old::Smu { .. }
            | Old::ReluSoftmax { .. }
            | Old::LayerNorm { .. } => true,
            Old::MaxPool { .. }
            | Old::AveragePool { .. }
            | Old::Requantize { .. }
            | Old::Reshape { .. }
            | Old::View { .. }
            | Old::Pad { .. }
            | Old::Scale { .. }
            | Old::Concat {} => node.inputs.iter().all(|input| self.is_saturated(input)),
            _ => false,
        }
    }

    /// Where a ReLU or clip on a tensor of this scale stops; `None` when the bounds that
    /// it must keep are not integers of that scale.
    pub(super) fn clip(&self, node: &SourceNode, scale: f64) -> Result<Option<Clipped>> {
        let (from, to) = self.clip_range(node)?;
        let clipped = self.window((from, to), self.bits_of(node), scale);
        let Some(Clipped { low, bits }) = clipped else { return Ok(None) };
        let top = (low as f64 + levels(bits)) * scale;
        Ok(match &node.op.old() {
            Old::Relu { maximum: Some(limit), .. } => top <= limit * (1.0 + TOLERANCE),
            Old::Clip { maximum: Some(limit), .. } => top <= limit + scale * 0.51,
            _ => true,
        }
        .then_some(Clipped { low, bits }))
    }

    /// The shortest window of at least `least` bits around a range.
    pub(super) fn window(&self, (from, to): (f64, f64), least: u32, scale: f64) -> Option<Clipped> {
        let low = (from / scale).round();
        // Half a unit less may be rounding of the lower end.
        let slack = if from == 0.0 { 0.0 } else { scale / 2.0 };
        let holds = |bits: &u32| {
            (low + levels(*bits)) * scale >= to * (1.0 - TOLERANCE) - slack * (1.0 + TOLERANCE)
        };
        let bits = (least..=crate::ops::relu::MAX_SATURATE).find(holds)?;
        (low.abs() <= f64::from(1u32 << (bits + crate::ops::relu::FAR_BITS)))
            .then_some(Clipped { low: low as i64, bits })
    }

    /// The values at which a ReLU or clip stops: those seen, within its bounds.
    pub(super) fn clip_range(&self, node: &SourceNode) -> Result<(f64, f64)> {
        let seen = self.own_range(&node.output);
        match &node.op.old() {
            Old::Clip { minimum, maximum } => {
                let (low, high) = seen?;
                // Zero is inside where the bounds allow it, so that windows begin near it.
                let low = low.min(0.0).max(minimum.unwrap_or(f64::MIN));
                let high = high.max(0.0).min(maximum.unwrap_or(f64::MAX));
                Ok((low, if high > low { high } else { low + 1.0 }))
            }
            Old::Relu { maximum, .. } => Ok((
                0.0,
                match (seen, maximum) {
                    (Ok((_, high)), Some(limit)) if high > 0.0 => positive(high.min(*limit)),
                    (_, Some(limit)) => *limit,
                    (range, None) => positive(range?.1),
                },
            )),
            _ => Err(Error::internal(&node.name, "does not clip")),
        }
    }

    /// The range of a tensor with zero in it, so that windows begin near it.
    pub(super) fn around_zero(&self, tensor: &str) -> Result<(f64, f64)> {
        let (low, high) = self.own_range(tensor)?;
        Ok((low.min(0.0), high.max(0.0)))
    }

    /// Calibrated range of a tensor. A pass may have made the tensor: then it has that
    /// of its only reader, reshapes or a ReLU, or what its producer makes of a range.
    pub(super) fn own_range(&self, tensor: &str) -> Result<(f64, f64)> {
        if self.calibration.contains_key(tensor) {
            return self.seen(tensor);
        }
        if let Some(shown) = self.shown_by(tensor) {
            return self.seen(shown);
        }
        match self.derived(tensor)? {
            Some(range) => Ok(range),
            None => self.seen(tensor),
        }
    }

    /// The calibrated tensor that only readers of `tensor` alone make of it.
    fn shown_by<'b>(&'b self, tensor: &'b str) -> Option<&'b str> {
        let mut tensor = tensor;
        while !self.calibration.contains_key(tensor) {
            let mut readers = self.readers(tensor);
            let (Some(SourceNode { op, output, .. }), None) = (readers.next(), readers.next())
            else {
                return None;
            };
            let shows =
                matches!(op.old(), Old::Reshape { .. } | Old::View { .. } | Old::Relu { .. });
            tensor = if shows { output } else { return None };
        }
        Some(tensor)
    }

    /// What the range of a tensor follows from.
    fn derived(&self, tensor: &str) -> Result<Option<(f64, f64)>> {
        let Some(index) = self.program.source.producer(tensor) else { return Ok(None) };
        let node = &self.program.source.nodes[index];
        let mut inputs = node.inputs.iter();
        let mut of = |node: &SourceNode| match inputs.next() {
            Some(input) => self.own_range(input),
            None => Err(Error::internal(&node.name, "reads nothing")),
        };
        Ok(match &node.op.old() {
            Old::Relu { maximum, .. } => {
                let high = of(node)?.1.max(0.0);
                Some((0.0, maximum.map_or(high, |maximum| high.min(maximum))))
            }
            Old::Clip { minimum, maximum } => {
                let (low, high) = of(node)?;
                let minimum = minimum.unwrap_or(f64::NEG_INFINITY);
                let maximum = maximum.unwrap_or(f64::INFINITY);
                Some((low.clamp(minimum, maximum), high.clamp(minimum, maximum)))
            }
            Old::Scale { factor } => {
                let (low, high) = of(node)?;
                let ends = [low * factor, high * factor];
                Some((ends[0].min(ends[1]), ends[0].max(ends[1])))
            }
            Old::Pad { .. } | Old::AveragePool { .. } => {
                let (low, high) = of(node)?;
                Some((low.min(0.0), high.max(0.0)))
            }
            Old::MaxPool { .. }
            | Old::Requantize { .. }
            | Old::Reshape { .. }
            | Old::View { .. } => Some(of(node)?),
            Old::Concat {} => {
                let ranges = node.inputs.iter().map(|input| self.own_range(input));
                let join = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
                ranges.collect::<Result<Vec<_>>>()?.into_iter().reduce(join)
            }
            _ => None,
        })
    }

    pub(super) fn readers(&self, tensor: &str) -> impl Iterator<Item = &SourceNode> {
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

/// Whether an operator chooses the scale of what it computes.
fn computes(op: &Old) -> bool {
    use Old::{Add, Embedding, MatMul, Multiply, Table};
    let others = matches!(op, Add {} | Multiply {} | Table { .. } | Embedding { .. } | MatMul {});
    let registered = match op {
        Old::Registered(op) => op.ratio().is_none(),
        _ => false,
    };
    others
        || registered
        || matches!(op, Old::Conv { .. } | Old::Gemm { .. } | Old::QuantisedConv { .. })
}

/// The largest integer of so many bits.
pub(super) fn levels(bits: u32) -> f64 {
    f64::from((1u32 << bits) - 1)
}

/// A usable range: 1 for a tensor that was always zero, never so small that
/// dividing by it overflows.
pub(super) fn positive(range: f64) -> f64 {
    if range > 0.0 { range.max(1e-30) } else { 1.0 }
}
