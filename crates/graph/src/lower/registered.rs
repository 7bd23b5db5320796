//! Source operators that were registered: they write their integer operators themselves.

use super::build::Builder;
use crate::error::{Error, Result};
use crate::ir::{Format, Op, Tensor};
use crate::ops::Operator;
use crate::source::{Lowering, SourceNode, SourceOperator};

/// One node that is being lowered.
struct Step<'a, 'b> {
    builder: &'a mut Builder<'b>,
    node: &'a SourceNode,
    inputs: Vec<usize>,
}

impl Builder<'_> {
    pub(super) fn registered(
        &mut self,
        node: &SourceNode,
        operator: &dyn SourceOperator,
    ) -> Result<()> {
        let inputs = node.inputs.iter().map(|name| self.index[name]).collect();
        operator.lower(&mut Step { builder: self, node, inputs })?;
        let written = self.index.contains_key(&node.output);
        let missing = || Error::internal(&node.name, "its operator wrote no output");
        written.then_some(()).ok_or_else(missing)
    }
}

impl Step<'_, '_> {
    fn place(&self, place: usize) -> Result<usize> {
        let missing = || Error::internal(&self.node.name, format!("has no input #{place}"));
        self.inputs.get(place).copied().ok_or_else(missing)
    }
}

impl Lowering for Step<'_, '_> {
    fn input(&self, place: usize) -> Result<&Tensor> {
        Ok(&self.builder.graph.tensors[self.place(place)?])
    }

    fn scale(&self) -> Result<f64> {
        self.builder.scales.of(&self.node.output)
    }

    fn clip(&mut self, place: usize, bits: u32) -> Result<()> {
        let input = self.place(place)?;
        let name = &self.node.inputs[place];
        if !self.builder.scales.is_saturated(name) {
            let range = self.builder.scales.around_zero(name)?;
            let step = format!("clip{place}");
            let clipped = self.builder.clipped(self.node, &step, input, (range, bits))?;
            self.inputs[place] = clipped;
        }
        Ok(())
    }

    fn write(&mut self, operator: Box<dyn Operator>, scale: f64, signed: bool) -> Result<()> {
        if self.builder.index.contains_key(&self.node.output) {
            return Err(Error::internal(&self.node.name, "its operator wrote two outputs"));
        }
        let format = Format { bits: 1, scale, signed };
        self.builder.write(self.node, Op::from(operator), self.inputs.clone(), format);
        Ok(())
    }

    fn refuse(&self, what: &str, instead: &str) -> Error {
        Error::unsupported(&self.node.name, what, instead)
    }
}
