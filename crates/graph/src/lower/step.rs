//! One source node that is being lowered: its operator writes integer nodes here.

use super::build::{Builder, multiplier};
use super::clipped::Bounded;
use super::options::Switch;
use crate::error::{Error, Result};
use crate::ir::{Format, Op, Tensor};
use crate::ops::{Concat, Operator, Relu, Rounding};
use crate::source::scaling::{Clipped, around_zero, window};
use crate::source::{Floats, IntegerNode, Lowering, SourceNode, Values};

/// The largest number that a part of what a layer reads is multiplied by: it makes the part that
/// much wider.
const MOST_BALANCE: f64 = 1024.0;

/// One node that is being lowered.
struct Step<'a, 'b> {
    builder: &'a mut Builder<'b>,
    node: &'a SourceNode,
    /// The tensor that is written: the node's output, or a sum's that the node takes over.
    output: &'a str,
    /// The tensors at the places: inputs, as they are or clipped, and what was written. A mask
    /// that was left out has none.
    places: Vec<Option<usize>>,
    /// The place of what the sum adds.
    addend: Option<usize>,
    skipped: bool,
}

impl Builder<'_> {
    /// Lowers a node that writes `output`, which `addend` is part of.
    pub(super) fn lower(
        &mut self,
        node: &SourceNode,
        addend: Option<&String>,
        output: &str,
    ) -> Result<()> {
        let inputs = node.inputs.iter().chain(addend);
        let places = inputs.map(|name| self.index.get(name).copied()).collect();
        let addend = addend.map(|_| node.inputs.len());
        let mut step = Step { builder: self, node, output, places, addend, skipped: false };
        node.op.lower(&mut step)?;
        let done = step.skipped || step.builder.index.contains_key(output);
        let missing = || Error::internal(&node.name, "its operator wrote no output");
        done.then_some(()).ok_or_else(missing)
    }
}

impl Step<'_, '_> {
    fn place(&self, place: usize) -> Result<usize> {
        let missing = || Error::internal(&self.node.name, format!("has no input #{place}"));
        self.places.get(place).copied().flatten().ok_or_else(missing)
    }

    /// Adds a node under a name that writes a tensor under another.
    fn add(&mut self, (name, output): (&str, &str), node: IntegerNode) -> Result<usize> {
        let IntegerNode { operator, weights, reads, shape, format } = node;
        let inputs = reads.into_iter().map(|place| self.place(place)).collect::<Result<_>>()?;
        let shape = shape.unwrap_or_else(|| self.shape().to_vec());
        let output = self.builder.tensor(output, &shape, format);
        if let Some(weights) = weights {
            self.builder.weights.insert(self.builder.next(), weights);
        }
        self.builder.push(name, Op::from(operator), inputs, output);
        Ok(output)
    }

    /// Multiplies inputs by powers of two, so that weights of the layer that reads them all are of
    /// like sizes in integers.
    fn balance(&mut self) -> Result<()> {
        let peaks = self.builder.peaks_of_parts(self.node);
        let scales = (0..peaks.len()).map(|place| Ok(self.input(place)?.format.scale));
        let scales = scales.collect::<Result<Vec<f64>>>()?;
        let sizes: Vec<f64> = peaks.iter().zip(&scales).map(|(peak, scale)| peak * scale).collect();
        let least = sizes.iter().copied().filter(|size| *size > 0.0).fold(f64::MAX, f64::min);
        for (place, (size, scale)) in sizes.iter().zip(&scales).enumerate() {
            let factor = (size / least).log2().round().exp2().clamp(1.0, MOST_BALANCE);
            if factor > 1.0 {
                self.rescale(place, &format!("balanced{place}"), scale / factor)?;
            }
        }
        Ok(())
    }

    fn check_unwritten(&self) -> Result<()> {
        match self.builder.index.contains_key(self.output) {
            true => Err(self.defect("its operator wrote two outputs")),
            false => Ok(()),
        }
    }
}

impl Lowering for Step<'_, '_> {
    fn name(&self) -> &str {
        &self.node.name
    }

    fn values(&self) -> Box<dyn Values + '_> {
        Box::new(self.builder.scales.around(self.node))
    }

    fn floats(&self) -> &Floats {
        &self.builder.scales.program().floats
    }

    fn rounding(&self) -> Rounding {
        self.builder.options.rounding
    }

    fn newton(&self) -> bool {
        self.builder.options.newton
    }

    fn adds_apart(&self) -> bool {
        self.builder.options.disabled.contains(&Switch::Residual)
    }

    fn input(&self, place: usize) -> Result<&Tensor> {
        Ok(&self.builder.graph.tensors[self.place(place)?])
    }

    fn shape(&self) -> &[usize] {
        &self.builder.scales.shapes[self.output]
    }

    fn addend(&self) -> Option<usize> {
        self.addend
    }

    fn scale(&self) -> Result<f64> {
        self.builder.scales.of(self.output)
    }

    fn multiplier(&self, place: usize, scale: f64) -> Result<i64> {
        multiplier(self.input(place)?.format.scale / scale, &self.node.name)
    }

    fn clip(&mut self, place: usize, bits: u32) -> Result<()> {
        self.place(place)?;
        let Some(name) = self.node.inputs.get(place) else {
            return Err(self.defect("clips what is not an input"));
        };
        let earlier = self.node.inputs.iter().position(|other| other == name);
        if let Some(earlier) = earlier.filter(|earlier| *earlier < place) {
            self.places[place] = self.places[earlier];
        } else if !self.values().is_saturated(place) {
            let range = around_zero(self.values().range(place)?);
            self.clip_to(place, &format!("clip{place}"), range, bits)?;
        }
        Ok(())
    }

    fn clip_to(&mut self, place: usize, step: &str, range: (f64, f64), bits: u32) -> Result<u32> {
        let Tensor { shape, format: Format { scale, .. }, .. } = self.input(place)?.clone();
        let Some(Clipped { low, bits }) = window(range, bits, scale) else {
            let what = "reads a tensor whose scale another operator makes too fine";
            return Err(self.refuse(what, "give it a tensor of its own"));
        };
        let relu = IntegerNode::new(Relu { saturate: bits, low }, &[place], scale, low < 0);
        let (name, output) = self.builder.before(self.node, step);
        let node = IntegerNode { shape: Some(shape), ..relu };
        self.places[place] = Some(self.add((&name, &output), node)?);
        Ok(bits)
    }

    fn is_within(&self, place: usize, bits: u32) -> bool {
        let half = 1i64 << (bits - 1);
        let bounded = self.place(place).ok().and_then(|tensor| self.builder.bounded(tensor, None));
        bounded.is_some_and(|Bounded { range: [low, high], .. }| low >= -half && high < half)
    }

    fn rescale(&mut self, place: usize, step: &str, scale: f64) -> Result<()> {
        let tensor = self.place(place)?;
        let (name, output) = self.builder.before(self.node, step);
        let sum = self.builder.weighted_sum(&name, &output, [tensor; 2], [1.0, 0.0], scale)?;
        self.places[place] = Some(sum);
        Ok(())
    }

    fn unmask(&mut self) {
        if let Some(mask) = self.builder.scales.mask_before(self.node) {
            let index = &self.builder.index;
            self.places = mask.inputs.iter().map(|name| index.get(name).copied()).collect();
        }
    }

    fn before(&mut self, step: &str, node: IntegerNode) -> Result<usize> {
        let (name, output) = self.builder.before(self.node, step);
        let tensor = self.add((&name, &output), node)?;
        self.places.push(Some(tensor));
        Ok(self.places.len() - 1)
    }

    fn finish(&mut self, node: IntegerNode) -> Result<()> {
        self.check_unwritten()?;
        self.add((&self.node.name, self.output), node).map(drop)
    }

    fn write(&mut self, operator: Box<dyn Operator>, scale: f64, signed: bool) -> Result<()> {
        let format = Format { bits: 1, scale, signed };
        let reads = (0..self.node.inputs.len()).collect();
        self.finish(IntegerNode { operator, weights: None, reads, shape: None, format })
    }

    fn sum(&mut self, places: [usize; 2], factors: [f64; 2], scale: f64) -> Result<()> {
        self.check_unwritten()?;
        let inputs = [self.place(places[0])?, self.place(places[1])?];
        let (name, output) = (&self.node.name, self.output);
        self.builder.weighted_sum(name, output, inputs, factors, scale).map(drop)
    }

    fn linear(&mut self, place: usize) -> Result<()> {
        self.check_unwritten()?;
        let addend = self.addend.map(|place| self.place(place)).transpose()?;
        let inputs = (self.place(place)?, addend);
        self.builder.linear(self.node, inputs, self.output)
    }

    fn join(&mut self, balanced: bool) -> Result<()> {
        if balanced {
            self.balance()?;
        }
        let inputs = 0..self.node.inputs.len();
        let tensors = inputs.map(|place| self.input(place)).collect::<Result<Vec<_>>>()?;
        let parts: Vec<(usize, f64)> =
            tensors.iter().map(|tensor| (tensor.shape[0], tensor.format.scale)).collect();
        let scale = parts.iter().fold(0.0f64, |most, (_, scale)| most.max(*scale));
        let signed = tensors.iter().any(|tensor| tensor.format.signed);
        self.builder.parts.insert(self.builder.graph.tensors.len(), parts);
        self.write(Box::new(Concat), scale, signed)
    }

    fn skip(&mut self) {
        self.skipped = true;
    }

    fn refuse(&self, what: &str, instead: &str) -> Error {
        Error::unsupported(&self.node.name, what, instead)
    }

    fn defect(&self, why: &str) -> Error {
        Error::internal(&self.node.name, why)
    }
}
