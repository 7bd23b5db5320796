//! Runs prepared before their inputs exist.
//!
//! A session with a store of k prepares k runs first, and after each run one more while
//! there are inputs to come. Each preparation is moved into the run that consumes it.

use std::collections::{BTreeMap, VecDeque};

use mpc::linear::coefficient::{ClientAhead, ServerAhead};
use mpc::{Need, Pads};
use ring::Random;
use wire::{Channel, Error, Phase, Result};

use crate::exchange::{all_linear, encrypted, encrypted_costs};
use crate::execute::{self, Party};
use crate::nonlinear::pad_bytes;
use crate::offline::{Offline, Stock, stretches};
use crate::plan::{Part, Plan, Spent};
use crate::steps::{Action, Step};
use crate::transferred::TransferAhead;

/// Bytes that a party holds in prepared runs.
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
    runs: usize,
    store: usize,
    made: usize,
    done: usize,
}

/// The turns of a session with `runs` runs and a store of `store` of them.
pub(crate) fn turns(runs: usize, store: usize) -> Turns {
    Turns { runs, store, made: 0, done: 0 }
}

impl Turns {
    /// Whether the next turn prepares a run.
    fn prepares(&self) -> bool {
        self.store > 0 && self.made < self.runs.min(self.done.saturating_add(self.store))
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

/// One party's way through the turns of a session, and its store.
pub(crate) struct Course {
    turns: Turns,
    store: VecDeque<Inference>,
}

impl Course {
    /// That of a session with `inputs` inputs.
    pub(crate) fn new(plan: &Plan, inputs: usize) -> Self {
        let turns = turns(plan.runs(inputs), plan.settings().store());
        Self { turns, store: VecDeque::new() }
    }

    /// Runs that are over.
    pub(crate) fn done(&self) -> usize {
        self.turns.done
    }

    /// Whether all runs are over.
    pub(crate) fn is_over(&self) -> bool {
        self.turns.done == self.turns.runs
    }

    /// Whether the next turn prepares a run.
    pub(crate) fn prepares(&self) -> bool {
        self.turns.prepares()
    }

    /// Prepared runs that wait for their inputs.
    pub(crate) fn ready(&self) -> usize {
        self.store.len()
    }

    /// Prepares the next run, unless the next turn is a run itself; says which.
    pub(crate) fn prepare(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        party: &Party<'_>,
        offline: &mut Offline,
        rng: &mut Random,
    ) -> Result<bool> {
        if !self.turns.prepares() {
            return Ok(false);
        }
        self.store.push_back(prepare(channel, plan, party, offline, rng)?);
        self.turns.next();
        Ok(true)
    }

    /// Runs the next inputs, after what is to be prepared before them. The client gets
    /// the opened words, the server nothing.
    ///
    /// # Errors
    /// [`Error::Misuse`] when all runs are over.
    pub(crate) fn run(
        &mut self,
        channel: &mut Channel,
        plan: &Plan,
        party: &mut Party<'_>,
        offline: &mut Offline,
        rng: &mut Random,
    ) -> Result<Vec<u64>> {
        while self.prepare(channel, plan, party, offline, rng)? {}
        if self.is_over() {
            return Err(Error::misuse("all inputs of this session have been run"));
        }
        let words = match self.store.pop_front() {
            Some(inference) => execute::run_prepared(channel, plan, party, inference, rng),
            None => execute::run(channel, plan, party, offline, rng),
        }?;
        self.turns.next();
        Ok(words)
    }
}

/// One prepared run: consumed by [`execute::run_prepared`](crate::execute).
pub(crate) struct Inference {
    pub(crate) pads: Pads,
    pub(crate) layers: BTreeMap<usize, LayerAhead>,
}

/// One prepared linear layer.
pub(crate) enum LayerAhead {
    Client(ClientAhead),
    Server(ServerAhead),
    Transfer(TransferAhead),
}

/// The pads of some steps that are made together: first those of preparations, then those
/// that each step needs `online`.
pub(crate) fn need<'a>(
    steps: impl Iterator<Item = &'a Step> + Clone,
    online: impl Fn(&Step) -> Need,
) -> Need {
    let masks: Need = steps.clone().map(Step::mask_need).sum();
    masks + steps.map(online).sum()
}

/// Prepares the layers by transfers among `steps`, whose pads come first in `pads`: all their
/// choices go together, so that a network takes as many rounds as a layer.
pub(crate) fn transferred<'a>(
    channel: &mut Channel,
    steps: impl Iterator<Item = (usize, &'a Step)> + Clone,
    party: &Party<'_>,
    pads: &mut Pads,
    offline: &mut Offline,
    rng: &mut Random,
) -> Result<BTreeMap<usize, LayerAhead>> {
    let mut asked = BTreeMap::new();
    for (index, step) in steps.clone() {
        if let Some(layer) = step.transfer().filter(|layer| !layer.feeds_itself()) {
            asked.insert(index, layer.ask(channel, (step, index), party, pads)?);
        }
    }
    let mut layers = BTreeMap::new();
    for (index, step) in steps {
        let Some(layer) = step.transfer() else { continue };
        let sources = (asked.remove(&index), &mut *offline);
        let ahead = layer.prepare(channel, (step, index), party, sources, rng)?;
        layers.insert(index, LayerAhead::Transfer(ahead));
    }
    Ok(layers)
}

/// What a step takes before its input exists, in an exchange with other steps.
pub(crate) fn before(step: &Step) -> Spent {
    if let Some(linear) = step.runs_ahead() {
        return Spent { cost: linear.layer.cost(), effort: linear.layer.effort() };
    }
    let Some(layer) = step.transfer() else { return Spent::default() };
    layer.parts().flat_map(|(_, spent)| spent).collect()
}

/// What [`transferred`] costs, part by part, as [`Plan::parts`] has it.
pub(crate) fn transfer_costs<'a>(
    steps: impl Iterator<Item = (usize, &'a Step)> + Clone,
    stock: &mut Stock,
) -> Vec<Part> {
    let mut costs = Vec::new();
    let layers = steps.filter_map(|(index, step)| Some((index, step.transfer()?)));
    for (index, layer) in layers.clone().filter(|(_, layer)| !layer.feeds_itself()) {
        let asked = layer.parts().map(|(_, [asked, _])| asked);
        costs.extend(asked.map(|spent| Part::new(Phase::Offline, Some(index), spent)));
    }
    for (index, layer) in layers {
        for (need, [asked, corrections]) in layer.parts() {
            if layer.feeds_itself() {
                costs.push(Part::new(Phase::Offline, None, stock.prepare(&need)));
                costs.push(Part::new(Phase::Offline, Some(index), asked));
            }
            costs.push(Part::new(Phase::Offline, Some(index), corrections));
        }
    }
    costs
}

/// Prepares one run.
pub(crate) fn prepare(
    channel: &mut Channel,
    plan: &Plan,
    party: &Party<'_>,
    offline: &mut Offline,
    rng: &mut Random,
) -> Result<Inference> {
    offline.set_threads(party.threads());
    let pads = offline.prepare(channel, &plan.steps().iter().map(Step::need).sum())?;
    let mut layers = BTreeMap::new();
    // The pads of masks are not held, and there may be many.
    for stretch in stretches(plan.steps()) {
        let steps = plan.steps().iter().enumerate();
        let steps = steps.skip(stretch.start).take(stretch.len());
        let need: Need = steps.clone().map(|(_, step)| step.mask_need()).sum();
        let mut pads = offline.prepare(channel, &need)?;
        layers.extend(transferred(channel, steps, party, &mut pads, offline, rng)?);
    }
    let linear = all_linear(plan.steps().iter().enumerate());
    layers.extend(encrypted(channel, &linear, party, rng)?);
    Ok(Inference { pads, layers })
}

/// What [`prepare`] costs next, part by part.
pub(crate) fn prepare_costs(plan: &Plan, stock: &mut Stock) -> Vec<Part> {
    let need = plan.steps().iter().map(Step::need).sum();
    let mut costs = vec![Part::new(Phase::Offline, None, stock.prepare(&need))];
    for stretch in stretches(plan.steps()) {
        let steps = plan.steps().iter().enumerate();
        let steps = steps.skip(stretch.start).take(stretch.len());
        let need: Need = steps.clone().map(|(_, step)| step.mask_need()).sum();
        costs.push(Part::new(Phase::Offline, None, stock.prepare(&need)));
        costs.extend(transfer_costs(steps, stock));
    }
    let linear = all_linear(plan.steps().iter().enumerate());
    costs.extend(encrypted_costs(&linear));
    costs
}

/// Bytes that a party holds of a prepared run.
pub(crate) fn run_bytes(steps: &[Step]) -> usize {
    let layer = |step: &Step| match &step.action {
        Action::Linear(linear) => 8 * (linear.layer.inputs() + linear.layer.outputs()),
        Action::Transfer(transfer) => transfer.held_bytes(),
        _ => 0,
    };
    let pads = pad_bytes(&steps.iter().map(Step::need).sum());
    steps.iter().map(layer).fold(pads, usize::saturating_add)
}

/// Whether a store of `store` runs of these steps fits into memory, or the layers that run
/// ahead without one.
///
/// # Errors
/// [`Error::Misuse`] with what it takes.
pub(crate) fn check(steps: &[Step], store: usize) -> Result<()> {
    if store == 0 {
        let linear = steps.iter().filter_map(Step::runs_ahead);
        let values = linear.map(|linear| linear.layer.inputs() + linear.layer.outputs());
        return match values.fold(0, usize::saturating_add) {
            values if values > MOST_BYTES / 8 => {
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
