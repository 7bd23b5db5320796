//! The schedule of runs that are preprocessed before their inputs exist.
//!
//! A session with a store of k prepares k runs first, and after each run one more while
//! there are inputs to come. Each preparation is moved into the run that consumes it.

use std::sync::Arc;

use wire::{Error, Result};

use super::layers::layers_of;
use super::together::layers_for_several;
use crate::step::Step;
use crate::step::correlations::pad_bytes;
use crate::step::linear::{Exchange, LinearProtocol};

/// Bytes that a party holds in preprocessed runs.
const MOST_BYTES: usize = 1 << 30;

/// What a session does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Prepares one run.
    Prepare,
    /// Runs the next inputs.
    Run,
}

/// The turns of a session, in order: each prepares a run or is one.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    pub(crate) runs: usize,
    store: usize,
    made: usize,
    pub(crate) done: usize,
}

/// The turns of a session with `runs` runs and a store of `store` of them.
pub(crate) fn turns(runs: usize, store: usize) -> Turns {
    Turns { runs, store, made: 0, done: 0 }
}

impl Turns {
    /// Whether the next turn prepares a run.
    pub(crate) fn prepares(&self) -> bool {
        self.store > 0 && self.made < self.runs.min(self.done.saturating_add(self.store))
    }

    /// Counts the inputs of a run of several, of a session without a store.
    pub(crate) fn pass(&mut self, inputs: usize) {
        self.done = self.done.saturating_add(inputs).min(self.runs);
    }
}

impl Iterator for Turns {
    type Item = Turn;

    fn next(&mut self) -> Option<Turn> {
        if self.prepares() {
            self.made += 1;
            Some(Turn::Prepare)
        } else {
            let left = self.done < self.runs;
            self.done += usize::from(left);
            left.then_some(Turn::Run)
        }
    }
}

/// Bytes that a party holds of one preprocessed run.
pub(crate) fn run_bytes(steps: &[Arc<Step>]) -> usize {
    let layer = |step: &Step| {
        let layer = step.linear().and_then(LinearProtocol::preprocess);
        layer.map_or(0, |layer| layer.held_bytes())
    };
    let pads = pad_bytes(&steps.iter().map(|step| step.demand()).sum());
    steps.iter().map(|step| layer(step)).fold(pads, usize::saturating_add)
}

/// Whether a store of `store` runs of these steps fits into memory, or without a
/// store the layers that are preprocessed within a run.
///
/// # Errors
/// [`Error::Misuse`] with what it takes.
pub(crate) fn check(steps: &[Arc<Step>], store: usize) -> Result<()> {
    if store == 0 {
        let (all, steps) = (steps, steps.iter().map(Arc::as_ref).enumerate());
        let layers = layers_of(steps, Exchange::Encryption, false).into_iter();
        let together = layers_for_several(all).into_iter();
        let held = layers.chain(together).map(|(.., layer)| layer.held_bytes());
        return match held.fold(0, usize::saturating_add) {
            held if held > MOST_BYTES => {
                Err(Error::misuse("more layers that run ahead than fit into memory"))
            }
            _ => Ok(()),
        };
    }
    let bytes = run_bytes(steps).saturating_mul(store);
    if bytes > MOST_BYTES {
        let (have, want) = (MOST_BYTES >> 20, bytes >> 20);
        return Err(Error::misuse(format!(
            "{store} prepared runs take {want} MB, more than {have}; prepare fewer"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_filled_first_and_after_each_run() {
        use Turn::{Prepare, Run};
        let all = |runs, store| turns(runs, store).collect::<Vec<_>>();
        assert_eq!(all(2, 0), [Run, Run]);
        assert_eq!(all(2, 5), [Prepare, Prepare, Run, Run]);
        assert_eq!(all(3, 1), [Prepare, Run, Prepare, Run, Prepare, Run]);
        assert_eq!(all(4, 2), [Prepare, Prepare, Run, Prepare, Run, Prepare, Run, Run]);
    }
}
