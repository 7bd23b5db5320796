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
    /// Whether results may be all signed integers of the width that the range needs, so that they have no bit more.
    pub(super) even: bool,
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
        let clipped = if self.even { evened(clipped, self.range.1 / scale) } else { clipped };
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

/// The signed integers of as many bits, where they hold the window up to `top`, which may be rounded.
fn evened(clipped: Clipped, top: f64) -> Clipped {
    let half = 1i64 << (clipped.bits - 1);
    let holds = (-half..0).contains(&clipped.low) && top < half as f64 - 0.5;
    if holds { Clipped { low: -half, ..clipped } } else { clipped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_results_that_may_be_all_integers_have_no_bit_more() {
        let window = |low| Clipped { low, bits: 11 };
        assert_eq!(evened(window(-629), 640.0), window(-1024));
        assert_eq!(evened(window(-1024), 1023.2), window(-1024));
        for (low, top) in [(0, 900.0), (-3, 1500.0), (-1025, 900.0), (-900, 1023.6)] {
            assert_eq!(evened(window(low), top), window(low));
        }
    }
}
