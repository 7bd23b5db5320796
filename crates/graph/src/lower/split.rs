//! Readers that read a tensor rescaled, so that what they ask for makes nothing else coarse.

use super::scale::Scales;
use crate::error::Result;
use crate::source::ops::Rescale;
use crate::source::scaling::{TOLERANCE, levels, side};
use crate::source::{Calibration, Program, SourceNode};
use std::collections::BTreeSet;

const ENDING: &str = "rescaled";

/// A tensor that may be too coarse, and the readers that make it so.
pub(super) struct Split<'a> {
    /// The tensor.
    pub(super) coarse: &'a str,
    /// It is too coarse where its range has fewer steps than that of so many bits.
    pub(super) bits: u32,
    /// The tensor that the readers read.
    pub(super) read: &'a str,
    /// Names of readers that read it as it is all the same.
    pub(super) kept: &'a BTreeSet<String>,
}

impl Split<'_> {
    /// Lets the readers read the tensor rescaled, where the other one is too coarse and that helps.
    ///
    /// # Errors
    /// [`crate::Error::Misuse`] where calibration has no range for a tensor.
    pub(super) fn apart(
        &self,
        program: Program,
        calibration: &Calibration,
        activation_bits: u32,
    ) -> Result<Program> {
        let scales = Scales::new(&program, &calibration.ranges, activation_bits)?;
        let found = scales.of(self.coarse).and_then(|s| Ok((s, scales.own_range(self.coarse)?)));
        let Ok((scale, range)) = found else { return Ok(program) };
        if scale <= side(range) / levels(self.bits) * (1.0 + TOLERANCE) {
            return Ok(program);
        }
        let changed = rescaled(&program, self.read, self.kept);
        let after = Scales::new(&changed, &calibration.ranges, activation_bits)?;
        let helps = after.of(self.coarse)? < scale * (1.0 - TOLERANCE);
        Ok(if helps { changed } else { program })
    }
}

/// The program in which nodes beside `kept` read `tensor` rescaled.
fn rescaled(program: &Program, tensor: &str, kept: &BTreeSet<String>) -> Program {
    let mut changed = program.clone();
    let output = program.source.fresh(&format!("{tensor}.{ENDING}"));
    let nodes = &mut changed.source.nodes;
    let others = nodes.iter_mut().filter(|node| !kept.contains(&node.name));
    for input in others.flat_map(|node| &mut node.inputs).filter(|input| *input == tensor) {
        input.clone_from(&output);
    }
    if let Some(first) = nodes.iter().position(|node| node.inputs.contains(&output)) {
        let (name, inputs) = (output.clone(), vec![tensor.to_owned()]);
        nodes.insert(first, SourceNode { name, inputs, output, op: Rescale {}.into() });
    }
    changed
}
