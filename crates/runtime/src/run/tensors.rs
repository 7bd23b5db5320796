//! What a run has computed and still needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use mpc::Share;
use wire::{Error, Result, Role};

use crate::plan::Plan;
use crate::plan::pass;
use crate::step::{Party, Step, missing};

/// Shares of the tensors that are still needed, each of all inputs of the run.
pub(crate) struct Tensors {
    shares: BTreeMap<usize, Share>,
    /// The step after which each tensor is dropped.
    last_use: BTreeMap<usize, usize>,
    /// What the last step wrote is never dropped.
    last: Option<usize>,
    /// What the client was shown.
    opened: Vec<u64>,
    /// States of a run of several inputs that follow each other, of which only that before the first is there.
    first: BTreeMap<usize, Share>,
}

impl Tensors {
    /// The tensors that exist before the first step, from this party's `shares` of them.
    pub(crate) fn new(plan: &Plan, shares: Vec<(usize, Share)>) -> Self {
        let mut last_use = BTreeMap::new();
        for (index, step) in plan.steps().iter().map(Arc::as_ref).enumerate() {
            last_use.extend(step.reads.iter().map(|tensor| (*tensor, index)));
        }
        last_use.extend(plan.graph().states.iter().map(|state| (state.after, usize::MAX)));
        let (first, shares) = shares.into_iter().partition(|(tensor, _)| plan.chain().has(*tensor));
        Self { shares, last_use, last: None, opened: Vec::new(), first }
    }

    /// Follows the states that a step is the first to read, of a run of several inputs.
    ///
    /// # Errors
    /// [`Error::Internal`] where what they follow from is not there yet.
    pub(crate) fn follow(
        &mut self,
        (party, role): (&Party<'_>, Role),
        plan: &Plan,
        step: &Step,
    ) -> Result<()> {
        for tensor in &step.reads {
            let Some(first) = self.first.remove(tensor) else { continue };
            let state = (*tensor, first, plan.settings().batch());
            let all = plan.chain().follow((party, role), plan.steps(), state, &self.shares)?;
            self.shares.insert(*tensor, all);
        }
        Ok(())
    }

    /// A copy of this party's share of a tensor.
    ///
    /// # Errors
    /// [`Error::Internal`] for one that is not there.
    pub(crate) fn share(&self, tensor: usize) -> Result<Share> {
        self.shares.get(&tensor).cloned().ok_or_else(|| missing(tensor))
    }

    /// This party's shares of what a step reads.
    ///
    /// # Errors
    /// [`Error::Internal`] for a tensor that nothing wrote.
    pub(crate) fn take_inputs(&mut self, step: &Step, index: usize) -> Result<Vec<Share>> {
        let mut inputs = Vec::with_capacity(step.reads.len());
        for (position, id) in step.reads.iter().enumerate() {
            let done = self.last_use.get(id).is_none_or(|last| *last <= index);
            let again = step.reads.iter().skip(position + 1).any(|later| later == id);
            let share =
                if done && !again { self.shares.remove(id) } else { self.shares.get(id).cloned() };
            inputs.push(share.ok_or_else(|| missing(*id))?);
        }
        Ok(inputs)
    }

    /// The tensors among those that a step reads which nothing has written yet.
    pub(crate) fn awaited(&self, step: &Step) -> Vec<usize> {
        let is_there = |id: &usize| self.shares.contains_key(id) || self.first.contains_key(id);
        step.reads.iter().filter(|id| !is_there(id)).copied().collect()
    }

    /// Adds integers to this party's share of a tensor.
    ///
    /// # Errors
    /// [`Error::Internal`] for a tensor that is not there.
    pub(crate) fn add(&mut self, tensor: usize, added: &[i64]) -> Result<()> {
        let share = self.shares.get_mut(&tensor).ok_or_else(|| missing(tensor))?;
        let sums = share.words().iter().zip(added);
        let sums = sums.map(|(word, added)| word.wrapping_add(*added as u64));
        *share = Share::new(sums.collect(), share.bits());
        Ok(())
    }

    /// Keeps what a step wrote.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a share that is narrower than its tensor.
    pub(crate) fn put(&mut self, step: &Step, share: Share) -> Result<()> {
        if step.reveals().is_some() {
            self.opened = share.words().to_vec();
        }
        let also = step.composed().map(|composed| composed.also.as_slice()).unwrap_or_default();
        if also.is_empty() {
            self.shares.insert(step.writes, share);
        } else {
            let own = share.len().saturating_sub(also.iter().map(|also| also.len).sum());
            let bits = step.composed().and_then(|composed| composed.out_bits);
            let bits = bits.unwrap_or_else(|| share.bits());
            self.shares.insert(step.writes, share.gather(0..own).narrow(bits)?);
            let mut start = own;
            for also in also {
                let part = share.gather(start..start + also.len).narrow(also.bits)?;
                self.shares.insert(also.tensor, part);
                start += also.len;
            }
        }
        self.last = Some(step.writes);
        Ok(())
    }

    /// This party's shares of what the graph keeps for the next run, in the order of its states: those
    /// behind the last input.
    ///
    /// # Errors
    /// [`Error::Internal`] for one that no step wrote.
    pub(crate) fn states(&self, plan: &Plan) -> Result<Vec<Share>> {
        let inputs = if plan.settings().passing { plan.settings().batch() } else { 1 };
        let kept = plan.graph().states.iter().map(|state| {
            let share = self.shares.get(&state.after).ok_or_else(|| missing(state.after))?;
            Ok(pass::one_of(share, (inputs - 1, inputs)))
        });
        kept.collect()
    }

    /// What the client was shown.
    pub(crate) fn into_opened(self) -> Vec<u64> {
        self.opened
    }

    /// What the last step wrote.
    ///
    /// # Errors
    /// [`Error::Internal`] when none has run.
    pub(crate) fn into_last(mut self) -> Result<Share> {
        let last = self.last.and_then(|id| self.shares.remove(&id));
        last.ok_or_else(|| Error::Internal("a plan without steps; please report it".into()))
    }
}
