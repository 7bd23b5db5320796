//! Corrections of SoftSpoken that have arrived, and correlations that are made of them when they are needed.
//!
//! Correlations of a message follow from all messages before it, so that whoever needs some makes those before
//! them as well, which are held until they are asked for.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ring::Wiped;
use wire::{Channel, Error, Result};

use super::softspoken::{Corrections, GRAIN, Sender};
use super::store::Store;

/// Blocks `q_i` of the sender.
pub(crate) type Blocks = Store<u128>;

/// The sender's trees, and the corrections that they have not been extended by yet.
#[derive(Clone)]
pub(crate) struct Arrived(Arc<Mutex<State>>);

/// A message of corrections, by its place among all.
pub(crate) struct Ticket {
    all: Arrived,
    number: u64,
}

struct State {
    sender: Sender,
    received: u64,
    /// Messages in order, with their grains.
    waiting: VecDeque<(u64, usize, Corrections)>,
    /// Correlations that were made before they were asked for.
    made: BTreeMap<u64, Result<Blocks>>,
    /// Why no more can be made.
    failed: Option<Error>,
}

impl Arrived {
    pub(crate) fn new(sender: Sender) -> Self {
        let (waiting, made) = (VecDeque::new(), BTreeMap::new());
        Self(Arc::new(Mutex::new(State { sender, received: 0, waiting, made, failed: None })))
    }

    /// Receives the corrections for `grains` times 128 correlations.
    pub(crate) fn receive(&self, ch: &mut Channel, grains: usize) -> Result<Ticket> {
        let layout = self.state().sender.corrections_layout(grains);
        // While this party waits it makes correlations, for which the state must be free.
        let corrections = ch.receive(&layout)?;
        let mut state = self.state();
        let number = state.received;
        state.received += 1;
        state.waiting.push_back((number, grains, corrections));
        Ok(Ticket { all: self.clone(), number })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// The correlations, which are made once.
    ///
    /// # Errors
    /// [`Error::Peer`] when the corrections of this or an earlier message are of different choice bits.
    pub(crate) fn make(&self) -> Result<Blocks> {
        let mut state = self.all.state();
        while !state.made.contains_key(&self.number)
            && let Some((number, grains, corrections)) = state.waiting.pop_front()
        {
            let made = state.extend(grains, corrections);
            state.made.insert(number, made);
        }
        let made = state.made.remove(&self.number);
        made.unwrap_or_else(|| Err(Error::internal("correlations are asked for twice")))
    }
}

impl State {
    fn extend(&mut self, grains: usize, corrections: Corrections) -> Result<Blocks> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        // A message makes more than it leaves.
        let mut blocks = Wiped::new(Vec::with_capacity((grains + 1) * GRAIN));
        let done = self.sender.extend(grains, corrections, &mut blocks);
        self.failed = done.clone().err();
        done.map(|()| blocks.into())
    }
}
