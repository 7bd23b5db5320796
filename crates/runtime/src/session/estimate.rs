//! What a session costs before it runs, part by part in its order.

use std::collections::BTreeSet;
use std::iter::repeat_n;
use std::ops::Range;

use mpc::Demand;
use pricing::{Unit, Work};
use serde::Deserialize;
use wire::{Cost, Phase};

use super::handshake;
use super::run_costs::{Run, Windows};
use crate::keys;
use crate::plan::Plan;
use crate::plan::kind::Kind;
use crate::preprocess::ahead;
use crate::preprocess::costs::run_costs;
use crate::preprocess::layers::first_asked;
use crate::preprocess::schedule::{self, Turn, turns};
use crate::preprocess::segments::steps_of;
use crate::preprocess::together::{Left, layers_for_several};
use crate::run::demand_of;
use crate::step::Step;
use crate::step::correlations::{Schedules, pad_bytes};
use crate::step::spent::{Part, Peak, Spent};

/// Bytes of a session beside what its plan asks for: stacks, buffers, TLS, correlations that are
/// made in blocks.
const SESSION_BYTES: u64 = 24 << 20;

/// Time of the lattice half of base OTs, in times of a setup without it.
const LATTICE: f64 = 1.2;

/// The inputs of a session whose costs are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Inputs {
    /// All of them.
    pub all: usize,
    /// How many of them come first and are only for what the graph keeps, where the plan has such runs.
    pub remembered: usize,
    /// Whether the others come in passes too, where the plan has these, as long as there are enough of them.
    pub in_passes: bool,
    /// How many inputs the session is opened for, where these are its first ones: what is prepared for several runs
    /// is then for those behind them too. No more than all, which is the default, where it is fewer.
    pub opened: usize,
}

impl Inputs {
    /// So many, of which all results are wanted, one after another.
    pub const fn of(all: usize) -> Self {
        Self { all, remembered: 0, in_passes: false, opened: 0 }
    }
}

impl Plan {
    /// Runs of a session with `inputs` inputs; the last may lack some.
    pub(crate) fn runs(&self, inputs: usize) -> usize {
        inputs.div_ceil(self.settings().batch())
    }

    /// Handshake, keys and base OTs of a client that keeps no keys.
    pub fn setup_cost(&self) -> Cost {
        self.kept_setup_cost(false, false)
    }

    /// Handshake, keys and base OTs of a session that uses those `kept` from an earlier one, and
    /// that `keeps` some for a later one, or does not.
    pub fn kept_setup_cost(&self, kept: bool, keeps: bool) -> Cost {
        let keys = handshake::cost(self).then(keys::cost(self));
        if self.evaluated().is_some() {
            return keys;
        }
        keys.then(ot::kept_setup_cost(self.settings().sourcing(), kept, keeps))
    }

    /// What a session with `inputs` inputs takes, part by part in its order.
    pub(crate) fn parts(&self, inputs: usize) -> Vec<Part> {
        self.parts_of(Inputs::of(inputs))
    }

    /// What a session with these inputs takes, part by part in its order.
    pub(crate) fn parts_of(&self, inputs: Inputs) -> Vec<Part> {
        let sessions = if self.settings().post_quantum { 1.0 + LATTICE } else { 1.0 };
        let work = Work::of(Unit::Session, sessions) + keys::work(self);
        let mut schedules = Schedules::new(self.settings().sourcing());
        let mut cost = handshake::cost(self).then(keys::cost(self));
        let mut last = None;
        if self.evaluated().is_none() {
            let [begin, end] = ot::setup_costs(self.settings().sourcing(), false, false);
            (cost, last) = (cost.then(begin), Some(end));
        }
        let mut parts = vec![Part::new(Phase::Setup, None, Spent { cost, work })];
        if let Some(last) = last {
            parts.extend(ahead::costs(self.begins(), &mut schedules));
            parts.push(Part::new(Phase::Setup, None, Spent::sending(last)));
        }
        let runs = self.kinds(inputs);
        let opened = self.runs(inputs.opened.max(inputs.all));
        self.run_parts((&runs, opened), &mut schedules, &mut parts);
        if let Some(first) = parts.get_mut(1) {
            first.spent.work += Work::of(Unit::Start, 1.0);
        }
        parts
    }

    /// The kinds of the runs of a session with these inputs: those that are only for what the graph keeps go
    /// in passes as long as there are enough of them.
    fn kinds(&self, inputs: Inputs) -> Vec<Kind> {
        let (remembered, all) = (self.runs(inputs.remembered), self.runs(inputs.all));
        let pass = self.pass().map_or(usize::MAX, |pass| pass.settings().batch());
        let whole = all.saturating_sub(remembered);
        let together = if inputs.in_passes { whole / pass } else { 0 };
        let runs = [
            (Kind::StatesPass, remembered / pass),
            (Kind::States, remembered % pass),
            (Kind::WholePass, together),
            (Kind::Whole, whole - together.saturating_mul(pass)),
        ];
        runs.into_iter().flat_map(|(kind, count)| repeat_n(kind, count)).collect()
    }

    /// Parts of runs of these kinds, the first of a session that was opened for so many.
    fn run_parts(
        &self,
        (runs, opened): (&[Kind], usize),
        schedules: &mut Schedules,
        parts: &mut Vec<Part>,
    ) {
        let mut peak = Peak::default();
        if self.evaluated().is_some() {
            let step = self.steps().iter().map(|step| step.spent()).enumerate();
            let run = step.map(|(i, spent)| Part::new(Phase::Online, Some(i), spent));
            let run: Vec<Part> = run.collect();
            parts.extend(repeat_n(run, runs.len()).flatten());
            return;
        }
        if self.settings().store() > 0 {
            let (one, mut ready) = (schedule::run_bytes(self.steps()) as u64, 0);
            let layers = self.steps().iter().map(|step| step.linear_memory()).max().unwrap_or(0);
            let (mut asked, mut kinds) = (true, runs.iter());
            for turn in turns(runs.len(), self.settings().store()) {
                match turn {
                    Turn::Prepare => {
                        ready += 1;
                        let touched = peak.touch(ready * one + layers);
                        let spent = Spent::default().and(touched);
                        parts.push(Part::new(Phase::Preprocess, None, spent));
                        parts.extend(run_costs(self.steps(), schedules, asked));
                        asked = false;
                    }
                    Turn::Run => {
                        ready -= 1;
                        let kind = kinds.next().copied().unwrap_or_default();
                        parts.extend(self.said());
                        let steps =
                            self.steps_of(kind).iter().map(|step| step.prepared()).enumerate();
                        let online = |(i, spent)| Part::new(Phase::Online, Some(i), spent);
                        parts.extend(steps.map(online));
                    }
                }
            }
            return;
        }
        let windows = [Some(self), self.pass()].map(|plan| plan.map(Windows::of));
        let (mut place, mut left) = (0, Left::default());
        let mut missed = BTreeSet::new();
        let inputs = |kind: &Kind| match (kind.is_pass(), self.pass()) {
            (true, Some(pass)) => pass.settings().batch(),
            _ => 1,
        };
        let mut to_come = opened;
        for kind in runs {
            let [alone, pass] = &windows;
            let windows = if kind.is_pass() { pass } else { alone };
            let Some(windows) = windows else { continue };
            parts.extend(self.said());
            if kind.is_pass() {
                missed.extend(left.forget(self.steps()));
            } else {
                parts.extend(left.next(self.steps_of(*kind), to_come, schedules));
            }
            to_come = to_come.saturating_sub(inputs(kind));
            let behind = if kind.is_pass() { BTreeSet::new() } else { std::mem::take(&mut missed) };
            let first = place == 0 && self.begins().is_some();
            let run = Run { kind: *kind, place, first, missed: behind };
            place += windows.parts_of(&run, (schedules, &mut peak), parts);
        }
    }

    /// The message by which the client says what a run is for, where it may.
    fn said(&self) -> Option<Part> {
        self.has_kinds().then(|| Part::new(Phase::Online, None, Spent::sending(Kind::cost())))
    }

    /// Returns the bytes that the server holds for one session at most, about: correlations, what
    /// layers hold while they run, preprocessed runs, and messages under way. Encoded weights,
    /// which all sessions share, are not among them.
    pub fn session_memory(&self) -> u64 {
        let steps = self.steps();
        let layers = self.all_steps().map(Step::linear_memory).max().unwrap_or(0);
        let stored = schedule::run_bytes(steps).saturating_mul(self.settings().store());
        let held = |plan: &Self| plan.pads_held().saturating_add(plan.answers_held());
        let held = held(self).max(self.pass().map_or(0, held));
        let keys = keys::cost(self).client_to_server.saturating_mul(2);
        let together = layers_for_several(steps).into_iter();
        let held = together.fold(held, |held, (.., layer)| held + layer.held_bytes() as u64);
        [layers, stored as u64, held, keys].into_iter().fold(SESSION_BYTES, u64::saturating_add)
    }

    /// Returns the bytes of answers of layers that ask up to two segments ahead, at most.
    fn answers_held(&self) -> u64 {
        let answers = |segment: &Range<usize>| -> u64 {
            first_asked(steps_of(self.steps(), segment))
                .iter()
                .map(|(.., layer)| layer.asked_bytes() as u64)
                .sum()
        };
        let all: Vec<u64> = self.segments().iter().skip(1).map(answers).collect();
        let pairs = all.windows(2).map(|pair| pair.iter().sum());
        pairs.chain(all.last().copied()).max().unwrap_or(0)
    }

    /// Returns the bytes of the pads of a segment and of those of the next that are made meanwhile, at most.
    fn pads_held(&self) -> u64 {
        let demand = |segment: &Range<usize>| demand_of(steps_of(self.steps(), segment));
        let demands: Vec<Demand> = self.segments().iter().map(demand).collect();
        let mut schedules = Schedules::new(self.settings().sourcing());
        let (mut most, mut early) = (0, false);
        for (at, demand) in demands.iter().enumerate() {
            if !early {
                schedules.exchange(demand);
            }
            let next = demands.get(at + 1).filter(|next| schedules.is_early(next));
            if let Some(next) = next {
                schedules.exchange(next);
            }
            early = next.is_some();
            let both = [Some(demand), next].into_iter().flatten().map(pad_bytes).sum::<usize>();
            most = most.max(both as u64);
        }
        most
    }

    /// Everything, for a session with `inputs` inputs.
    pub fn cost(&self, inputs: usize) -> Cost {
        self.parts(inputs).into_iter().map(|part| part.spent.cost).collect()
    }
}
