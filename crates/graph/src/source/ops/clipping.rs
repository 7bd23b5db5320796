//! What ReLUs and clips have in common.

use crate::error::Result;
use crate::ops::Relu;
use crate::source::lowering::Lowering;
use crate::source::operator::Place;
use crate::source::scaling::{Clipped, levels, window};

/// Where an operator stops, in real numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clipping {
    /// The smallest and the largest result: what calibration saw, within the operator's bounds.
    pub(super) range: (f64, f64),
    /// Bits of the results, over that range.
    pub(super) bits: u32,
    /// What no result may exceed, if there is such a bound.
    pub(super) limit: Option<Limit>,
}

/// An upper bound, and by how much integers may miss it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) value: f64,
    /// As a part of the bound.
    pub(super) relative: f64,
    /// In units of the scale.
    pub(super) units: f64,
}

impl Clipping {
    /// The scale that gives the results their bits.
    pub(super) fn scale(&self) -> f64 {
        (self.range.1 - self.range.0) / levels(self.bits)
    }

    /// The scale that the operator asks of its input.
    pub(super) fn demands(&self) -> Vec<(Place, f64)> {
        vec![(Place::Input(0), self.scale())]
    }

    /// Where the operator stops on a tensor of this scale; `None` when the bounds that
    /// it must keep are not integers of that scale.
    pub(super) fn at(&self, scale: f64) -> Option<Clipped> {
        let clipped = window(self.range, self.bits, scale)?;
        let top = (clipped.low as f64 + levels(clipped.bits)) * scale;
        let most = |limit: Limit| limit.value * (1.0 + limit.relative) + scale * limit.units;
        self.limit.is_none_or(|limit| top <= most(limit)).then_some(clipped)
    }

    /// Writes the integer operator; where the bounds are no integers, of a tensor rescaled for
    /// it.
    pub(super) fn lower(&self, step: &mut dyn Lowering) -> Result<()> {
        let mut scale = step.input(0)?.format.scale;
        let mut clipped = self.at(scale);
        if clipped.is_none() {
            scale = self.scale();
            step.rescale(0, "rescaled", scale)?;
            clipped = self.at(scale);
        }
        let Some(Clipped { low, bits }) = clipped else {
            return Err(step.refuse("clips far from zero", "subtract a constant before it"));
        };
        step.write(Box::new(Relu { saturate: bits, low }), scale, low < 0)
    }
}
