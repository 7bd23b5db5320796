//! Steps that were planned before: a search tries many plans of one graph, most of whose steps are the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use wire::Result;

use crate::plan::options::StepOptions;
use crate::step::Step;

/// What tells the steps of one graph apart: the node, the inputs of a run, and the node's options.
type Key = (usize, usize, StepOptions);

/// The steps of nodes of one graph, as they were planned.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<HashMap<Key, Arc<Step>>>);

impl Known {
    /// The step of this key, which `plan` makes where it is not known yet.
    ///
    /// # Errors
    /// What `plan` returns.
    pub(super) fn step(&self, key: Key, plan: impl FnOnce() -> Result<Step>) -> Result<Arc<Step>> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(step) = known().get(&key) {
            return Ok(Arc::clone(step));
        }
        let step = Arc::new(plan()?);
        known().insert(key, Arc::clone(&step));
        Ok(step)
    }
}
