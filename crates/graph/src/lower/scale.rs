//! Real size of one integer unit of each tensor, from calibrated ranges.

use super::links::Links;
use super::values::Around;
use crate::source::scaling::{levels, positive};
use crate::source::shapes::Shapes;
use crate::source::{Place, Program, Ranges, SourceNode};
use crate::{Error, Result};

/// Bits that a tensor no ReLU follows gets beyond the activations', e.g. logits.
const EXTRA_BITS: u32 = 3;

pub(super) struct Scales<'a> {
    pub(super) program: &'a Program,
    calibration: &'a Ranges,
    pub(super) activation_bits: u32,
    links: Links<'a>,
    pub(super) shapes: Shapes,
}

impl<'a> Scales<'a> {
    pub(super) fn new(
        program: &'a Program,
        calibration: &'a Ranges,
        activation_bits: u32,
    ) -> Result<Self> {
        let (links, shapes) = (Links::new(program, activation_bits), program.shapes()?);
        Ok(Self { program, calibration, activation_bits, links, shapes })
    }

    pub(super) fn program(&self) -> &'a Program {
        self.program
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
        if let Some((fixed, end)) = self.links.fixed(tensor) {
            let scale = match end == self.program.source.input.name {
                true => self.input()?.0,
                false => self.state(end)?.0,
            };
            return Ok(scale * ratio / self.links.root(fixed).1);
        }
        let nodes = || self.program.source.nodes.iter();
        let mut demanded: Option<f64> = None;
        for node in nodes() {
            for (place, scale) in node.op.demands(&self.around(node))? {
                let name = match place {
                    Place::Input(place) => node.inputs.get(place).unwrap_or(&node.output),
                    Place::Output => &node.output,
                };
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
        for node in nodes().filter(|node| node.op.chooses_scale()) {
            let (other, ratio) = self.links.root(&node.output);
            if other == root {
                let (low, high) = self.own_range(&node.output)?;
                let levels = levels(self.activation_bits + EXTRA_BITS);
                coarsest = coarsest.max(positive(high.max(-low)) / levels / ratio);
            }
        }
        Ok(coarsest * ratio)
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
            tensor = if op.lends_range() { output } else { return None };
        }
        Some(tensor)
    }

    /// What the range of a tensor follows from.
    fn derived(&self, tensor: &str) -> Result<Option<(f64, f64)>> {
        let Some(node) = self.writer(tensor) else { return Ok(None) };
        node.op.derived_range(&self.around(node))
    }

    /// Whether the values of `tensor` are clipped to what calibration saw.
    pub(super) fn is_saturated(&self, tensor: &str) -> bool {
        let writer = self.writer(tensor);
        writer.is_none_or(|node| node.op.is_saturated(&self.around(node)))
    }

    /// The node that writes `tensor`, if it is not the graph's input.
    pub(super) fn writer(&self, tensor: &str) -> Option<&'a SourceNode> {
        let source = &self.program.source;
        source.producer(tensor).map(|index| &source.nodes[index])
    }

    /// What a node's operator is told of the tensors around it.
    pub(super) fn around<'b>(&'b self, node: &'b SourceNode) -> Around<'b> {
        Around { scales: self, node }
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
