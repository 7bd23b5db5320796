//! What a session costs before it runs, part by part in its order.

use std::iter::repeat_n;
use std::ops::Range;

use mpc::Demand;
use pricing::{Unit, Work};
use wire::{Cost, Phase};

use super::handshake;
use crate::keys;
use crate::plan::Plan;
use crate::plan::kind::Kind;
use crate::preprocess::ahead;
use crate::preprocess::costs::{early_costs, layer_costs, run_costs};
use crate::preprocess::layers::{early_asks, first_asked, layers_of};
use crate::preprocess::schedule::{self, Turn, turns};
use crate::preprocess::together::{Left, layers_for_several};
use crate::run::demand_of;
use crate::step::Step;
use crate::step::correlations::{Schedules, pad_bytes};
use crate::step::linear::Exchange;
use crate::step::spent::{Part, Peak, Spent};

/// Bytes of a session beside what its plan asks for: stacks, buffers, TLS, correlations that are
/// made in blocks.
const SESSION_BYTES: u64 = 24 << 20;

/// Work that is done with its messages.
const SOFT: [Unit; 3] = [Unit::SoftSpoken2, Unit::SoftSpoken4, Unit::SoftSpoken8];
/// Work of which messages say what has to be known.
const SILENT: [Unit; 5] =
    [Unit::Ferret15, Unit::Ferret16, Unit::Ferret17, Unit::Ferret18, Unit::Ferret19];
/// The work of making the correlations of Ferret that goes into their messages, of the time that the rest takes.
const SAID: f64 = 0.15;

/// Time of the lattice half of base OTs, in times of a setup without it.
const LATTICE: f64 = 1.2;

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
        self.parts_behind(0, inputs)
    }

    /// What a session takes whose first `remembered` inputs of `inputs` are only for what the graph
    /// keeps, part by part in its order.
    pub(crate) fn parts_behind(&self, remembered: usize, inputs: usize) -> Vec<Part> {
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
        let kinds = |run| if run < self.runs(remembered) { Kind::States } else { Kind::Whole };
        let runs: Vec<Kind> = (0..self.runs(inputs)).map(kinds).collect();
        self.run_parts(&runs, &mut schedules, &mut parts);
        if let Some(first) = parts.get_mut(1) {
            first.spent.work += Work::of(Unit::Start, 1.0);
        }
        parts
    }

    /// Parts of runs of these kinds.
    fn run_parts(&self, runs: &[Kind], schedules: &mut Schedules, parts: &mut Vec<Part>) {
        let mut peak = Peak::default();
        if self.evaluated().is_some() {
            let step = self.steps().iter().map(Step::spent).enumerate();
            let run = step.map(|(i, spent)| Part::new(Phase::Online, Some(i), spent));
            let run: Vec<Part> = run.collect();
            parts.extend(repeat_n(run, runs.len()).flatten());
            return;
        }
        if self.settings().store() > 0 {
            let (one, mut ready) = (schedule::run_bytes(self.steps()) as u64, 0);
            let layers = self.steps().iter().map(Step::linear_memory).max().unwrap_or(0);
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
                        let steps = self.steps_of(kind).iter().map(Step::prepared).enumerate();
                        let online = |(i, spent)| Part::new(Phase::Online, Some(i), spent);
                        parts.extend(steps.map(online));
                    }
                }
            }
            return;
        }
        let segments = self.segments();
        let of = |segment: &Range<usize>| {
            self.steps().iter().enumerate().skip(segment.start).take(segment.len())
        };
        let demands: Vec<Demand> = segments.iter().map(|some| demand_of(of(some))).collect();
        let shorter = self.segments_of(Kind::States).len();
        let counts = runs.iter().map(|kind| match kind {
            Kind::Whole => (*kind, segments.len()),
            Kind::States => (*kind, shorter),
        });
        let all = segments.iter().zip(&demands).enumerate();
        let windows = counts
            .flat_map(|(kind, count)| all.clone().take(count).map(move |one| ((kind, count), one)));
        let (mut early, mut left) = (false, Left::default());
        for (place, ((kind, count), (at, (segment, demand)))) in windows.enumerate() {
            if at == 0 {
                parts.extend(self.said());
                parts.extend(left.next(self.steps_of(kind), schedules));
            }
            let steps = of(segment);
            let held = pad_bytes(demand) as u64;
            let mut made = match early {
                true => Part::new(Phase::Preprocess, None, Spent::default()),
                false => exchanged(schedules, place, demand),
            };
            let circuits = Spent::sending(mpc::garbled::prepare_cost(&demand.circuits));
            made.spent = made.spent.then(circuits).and(peak.touch(held));
            parts.push(Part { begins: Some(place), ..made });
            let ask = |range: Range<usize>| -> Vec<Part> {
                let asking =
                    segments.iter().enumerate().take(range.end.min(count)).skip(range.start);
                let asks = |(to, next)| early_costs(&first_asked(of(next)), place + to - at - 1);
                asking.flat_map(asks).collect()
            };
            let [sooner, later] = early_asks(at);
            parts.extend(ask(sooner));
            let next =
                demands.get(at + 1).filter(|next| at + 1 < count && schedules.is_early(next));
            parts.extend(next.map(|next| exchanged(schedules, place + 1, next)));
            early = next.is_some();
            parts.extend(ask(later));
            for exchange in [Exchange::ObliviousTransfer, Exchange::Encryption] {
                let some = layers_of(steps.clone(), exchange, false);
                let asked = (place == 0 || at > 0) && exchange == Exchange::Encryption;
                parts.extend(layer_costs(&some, exchange, schedules, asked));
            }
            for (index, step) in steps {
                let mut touched = peak.touch(held + step.linear_memory());
                if step.correlated() > 0 {
                    let made = schedules.correlated(step.correlated());
                    parts.push(Part::new(Phase::Preprocess, None, made));
                }
                for (demand, spent) in step.parts() {
                    if step.feeds_itself() {
                        let made =
                            schedules.prepare(&demand).and(peak.touch(pad_bytes(&demand) as u64));
                        parts.push(Part::new(Phase::Preprocess, None, made));
                    }
                    let spent = spent.and(std::mem::take(&mut touched));
                    parts.push(Part::new(Phase::Online, Some(index), spent));
                }
            }
        }
    }

    /// The message by which the client says what a run is for, where it may.
    fn said(&self) -> Option<Part> {
        self.states_end().map(|_| Part::new(Phase::Online, None, Spent::sending(Kind::cost())))
    }

    /// Returns the bytes that the server holds for one session at most, about: correlations, what
    /// layers hold while they run, preprocessed runs, and messages under way. Encoded weights,
    /// which all sessions share, are not among them.
    pub fn session_memory(&self) -> u64 {
        let steps = self.steps();
        let layers = steps.iter().map(Step::linear_memory).max().unwrap_or(0);
        let stored = schedule::run_bytes(steps).saturating_mul(self.settings().store());
        let held = self.pads_held().saturating_add(self.answers_held());
        let keys = keys::cost(self).client_to_server.saturating_mul(2);
        let together = layers_for_several(steps).into_iter();
        let held = together.fold(held, |held, (.., layer)| held + layer.held_bytes() as u64);
        [layers, stored as u64, held, keys].into_iter().fold(SESSION_BYTES, u64::saturating_add)
    }

    /// Returns the bytes of answers of layers that ask up to two segments ahead, at most.
    fn answers_held(&self) -> u64 {
        let answers = |segment: &Range<usize>| -> u64 {
            let steps = self.steps().iter().enumerate().skip(segment.start).take(segment.len());
            first_asked(steps).iter().map(|(.., layer)| layer.asked_bytes() as u64).sum()
        };
        let all: Vec<u64> = self.segments().iter().skip(1).map(answers).collect();
        let pairs = all.windows(2).map(|pair| pair.iter().sum());
        pairs.chain(all.last().copied()).max().unwrap_or(0)
    }

    /// Returns the bytes of the pads of a segment and of those of the next that are made meanwhile, at most.
    fn pads_held(&self) -> u64 {
        let demands: Vec<Demand> = self
            .segments()
            .into_iter()
            .map(|some| {
                demand_of(self.steps().iter().enumerate().skip(some.start).take(some.len()))
            })
            .collect();
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

/// The exchange for the OTs of the window of steps of this number, whose correlations may be made later.
fn exchanged(schedules: &mut Schedules, window: usize, demand: &Demand) -> Part {
    let is_later = schedules.is_early(demand);
    let all = schedules.exchange(demand);
    let part = Part::new(Phase::Preprocess, None, all);
    if !is_later {
        return part;
    }
    let share = |sign: f64| -> Work {
        let soft = SOFT.iter().map(|unit| Work::of(*unit, sign * all.work.units(*unit)));
        let said = |unit: &Unit| Work::of(*unit, sign * SAID * all.work.units(*unit));
        soft.chain(SILENT.iter().map(said)).sum()
    };
    let later = Some((window, all.work + share(-1.0)));
    Part { spent: Spent { work: share(1.0), ..all }, later, ..part }
}
