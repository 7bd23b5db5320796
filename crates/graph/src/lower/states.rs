//! Tensors that are kept from one input of a session to the next.

use super::build::Builder;
use super::options::Options;
use super::scale::Scales;
use crate::error::{Error, Result};
use crate::ir::{Format, Nonlinear, Op, State, Tensor};
use crate::ops::Relu;
use crate::ops::relu::MAX_SATURATE;
use crate::source::Program;
use crate::source::scaling::{levels, side};

/// Bits that a state has beyond activations: its errors add up from input to input.
const STATE_BITS: u32 = 6;

/// Refuses states where the protocols keep none.
pub(super) fn check(program: &Program, options: &Options) -> Result<()> {
    let Some(state) = program.source.states.first() else { return Ok(()) };
    if options.exact || options.ot_products || options.nonlinear == Nonlinear::Gc {
        let what = "is kept from one input to the next, which this suite cannot";
        return Err(Error::unsupported(&state.name, what, "compile for suite auto"));
    }
    Ok(())
}

impl Scales<'_> {
    /// Scale and smallest integer of a state, which has `2 * -low` integers.
    pub(super) fn state(&self, name: &str) -> Result<(f64, i64)> {
        let bits = (self.activation_bits + STATE_BITS).min(MAX_SATURATE);
        let scale = side(self.own_range(name)?) / levels(bits - 1);
        Ok((scale, -(1 << (bits - 1))))
    }
}

impl Builder<'_> {
    /// Adds the tensors that nodes read.
    pub(super) fn states_before(&mut self) -> Result<()> {
        for state in &self.scales.program().source.states {
            let (scale, low) = self.scales.state(&state.name)?;
            let format = Format { bits: 1, scale, signed: true };
            let before = self.tensor(&state.name, &state.shape, format);
            self.graph.states.push(State { before, after: before, range: [low, -low - 1] });
        }
        Ok(())
    }

    /// Adds what the states are after an input: rescaled and clipped to what calibration saw.
    pub(super) fn states_after(&mut self) -> Result<()> {
        for (place, state) in self.scales.program().source.states.iter().enumerate() {
            let (scale, low) = self.scales.state(&state.name)?;
            let made = self.index[&state.after];
            let fresh = |step: &str| {
                let base = format!("{}.{step}", state.name);
                self.scales.program().source.fresh(&base)
            };
            let (rescaled, kept) = (fresh("rescaled"), fresh("kept"));
            let sum = self.weighted_sum(&rescaled, &rescaled, [made; 2], [1.0, 0.0], scale)?;
            let Tensor { shape, format, .. } = self.graph.tensors[sum].clone();
            let after = self.tensor(&kept, &shape, Format { scale, signed: true, ..format });
            let saturate = (2 * low.unsigned_abs()).ilog2();
            self.push(&kept, Op::from(Relu { saturate, low }), vec![sum], after);
            self.graph.states[place].after = after;
        }
        Ok(())
    }
}
