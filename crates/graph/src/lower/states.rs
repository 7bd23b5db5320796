//! Tensors that are kept from one input of a session to the next.

use super::build::Builder;
use super::options::Options;
use super::scale::Scales;
use crate::error::{Error, Result};
use crate::ir::{Format, Model, Nonlinear, Op, State, Tensor};
use crate::ops::Relu;
use crate::ops::relu::MAX_SATURATE;
use crate::source::Program;
use crate::source::ops::{Clip, Concat};
use crate::source::scaling::{TOLERANCE, levels, side};
use std::collections::BTreeSet;

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

/// Moves what states need in front of all other nodes, so that what an input leaves to the next one is there
/// before the result is.
pub(super) fn first(model: &mut Model) {
    let graph = &mut model.graph;
    let mut needed: BTreeSet<usize> = graph.states.iter().map(|state| state.after).collect();
    for node in graph.nodes.iter().rev() {
        if needed.contains(&node.output) {
            needed.extend(&node.inputs);
        }
    }
    let nodes = std::mem::take(&mut graph.nodes).into_iter().enumerate();
    let (first, rest): (Vec<_>, Vec<_>) =
        nodes.partition(|(_, node)| needed.contains(&node.output));
    let mut weights = std::mem::take(&mut model.weights);
    for (place, (index, node)) in first.into_iter().chain(rest).enumerate() {
        model.graph.nodes.push(node);
        model.weights.extend(weights.remove(&index).map(|its| (place, its)));
    }
}

impl Scales<'_> {
    /// Scale and smallest integer of a state, which has `2 * -low` integers.
    pub(super) fn state(&self, name: &str) -> Result<(f64, i64)> {
        let bits = match self.remembers(name) {
            true => self.activation_bits,
            false => (self.activation_bits + STATE_BITS).min(MAX_SATURATE),
        };
        let scale = side(self.own_range(name)?) / levels(bits - 1);
        Ok((scale, -(1 << (bits - 1))))
    }
}

impl Scales<'_> {
    /// Whether a state only remembers: each value after an input was one before it, or is clipped.
    /// Then no error adds up, and nothing is computed to keep it.
    fn remembers(&self, name: &str) -> bool {
        let state = self.program().source.states.iter().find(|state| state.name == name);
        let mut tensors: Vec<&str> = state.iter().map(|state| state.after.as_str()).collect();
        let (mut seen, mut before) = (BTreeSet::new(), false);
        while let Some(tensor) = tensors.pop() {
            before |= tensor == name;
            if tensor == name || !seen.insert(tensor) {
                continue;
            }
            match self.writer(tensor) {
                Some(node) if node.op.keeps_integers() || node.op.is::<Concat>() => {
                    tensors.extend(node.inputs.iter().map(String::as_str));
                }
                Some(node) if node.op.is::<Clip>() => {}
                _ => return false,
            }
        }
        before
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
            if let Some(range) = self.remembered(self.graph.states[place].before, made) {
                self.graph.states[place].after = made;
                self.graph.states[place].range = range;
                continue;
            }
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

    /// The range of a state that remembers: that of all clips whose results `after` has, beside
    /// values of `before`. `None` where it has others, or in other scales.
    fn remembered(&self, before: usize, after: usize) -> Option<[i64; 2]> {
        let scales = [before, after].map(|tensor| self.format_of(tensor).scale);
        let same = (scales[1] / scales[0] - 1.0).abs() <= TOLERANCE;
        let bounded = self.bounded(after, Some(before)).filter(|_| same)?;
        bounded.found.then_some(bounded.range)
    }
}
