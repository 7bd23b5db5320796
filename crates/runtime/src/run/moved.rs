//! Tensors that are moved before their turn, for steps that run with ones before them.

use std::collections::BTreeSet;
use std::sync::Arc;

use wire::{Result, Role};

use super::tensors::Tensors;
use crate::plan::Plan;
use crate::step::{Action, Party, missing};

/// The steps that have run before their turn: each party moves elements by itself.
#[derive(Debug, Default)]
pub(super) struct Moved(BTreeSet<usize>);

impl Moved {
    /// Makes what the step at `index` reads and local steps behind it write. Returns whether the step is
    /// still to run.
    ///
    /// # Errors
    /// [`wire::Error::Internal`] for a tensor that no local step writes.
    pub(super) fn before(
        &mut self,
        by: (&Party<'_>, Role),
        plan: &Plan,
        tensors: &mut Tensors,
        index: usize,
    ) -> Result<bool> {
        let Some(step) = plan.steps().get(index) else { return Ok(true) };
        if self.0.contains(&index) {
            // What it read is dropped if nothing else reads it.
            tensors.take_inputs(step, index)?;
            return Ok(false);
        }
        for tensor in tensors.awaited(step) {
            self.make(by, plan, tensors, (tensor, index))?;
        }
        tensors.follow(by, plan, step)?;
        Ok(true)
    }

    /// Makes a tensor before the step at `index` runs.
    fn make(
        &mut self,
        by: (&Party<'_>, Role),
        plan: &Plan,
        tensors: &mut Tensors,
        (tensor, index): (usize, usize),
    ) -> Result<()> {
        let behind = plan.steps().iter().map(Arc::as_ref).enumerate().skip(index + 1);
        let writer = behind.clone().find(|(_, step)| step.writes == tensor);
        let (place, step) = writer.ok_or_else(|| missing(tensor))?;
        let Action::Local(local) = &step.action else { return Err(missing(tensor)) };
        for input in tensors.awaited(step) {
            self.make(by, plan, tensors, (input, index))?;
        }
        tensors.follow(by, plan, step)?;
        let inputs = tensors.take_inputs(step, index)?;
        tensors.put(step, local.run(by.1, &inputs, None)?)?;
        self.0.insert(place);
        Ok(())
    }
}
