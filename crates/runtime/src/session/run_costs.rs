//! What a run costs that is not preprocessed as a whole, segment by segment.

use std::collections::BTreeSet;
use std::ops::Range;

use mpc::Demand;
use mpc::garbled::prepare_aside_costs;
use pricing::{Unit, Work};
use wire::Phase;

use crate::plan::Plan;
use crate::plan::kind::Kind;
use crate::preprocess::costs::{early_costs, layer_costs};
use crate::preprocess::layers::{early_asks, first_asked, layers_of};
use crate::preprocess::segments::steps_of;
use crate::run::{demand_of, sooner};
use crate::step::Step;
use crate::step::correlations::{Schedules, pad_bytes};
use crate::step::linear::{Exchange, LinearProtocol};
use crate::step::spent::{Part, Peak, Spent};

/// Work that is done with its messages.
const SOFT: [Unit; 3] = [Unit::SoftSpoken2, Unit::SoftSpoken4, Unit::SoftSpoken8];
/// Work of which messages say what has to be known.
const SILENT: [Unit; 5] =
    [Unit::Ferret15, Unit::Ferret16, Unit::Ferret17, Unit::Ferret18, Unit::Ferret19];
/// The work of making the correlations of Ferret that goes into their messages, of the time that the rest takes.
const SAID: f64 = 0.15;

/// The segments of the steps of a plan, and the correlations of each.
pub(super) struct Windows<'a> {
    plan: &'a Plan,
    segments: Vec<Range<usize>>,
    demands: Vec<Demand>,
}

/// A run whose costs are asked for.
pub(super) struct Run {
    pub(super) kind: Kind,
    /// Segments of all runs before it.
    pub(super) place: usize,
    /// Whether what it asks for first was sent ahead of the last flight of the setup.
    pub(super) first: bool,
    /// The steps of layers that went without earlier runs.
    pub(super) missed: BTreeSet<usize>,
}

impl<'a> Windows<'a> {
    pub(super) fn of(plan: &'a Plan) -> Self {
        let segments = plan.segments().to_vec();
        let steps = |segment: &Range<usize>| steps_of(plan.steps(), segment);
        let demands = segments.iter().map(|some| demand_of(steps(some))).collect();
        Self { plan, segments, demands }
    }

    /// Adds the parts of a run; returns how many segments it has.
    pub(super) fn parts_of(
        &self,
        run: &Run,
        (schedules, peak): (&mut Schedules, &mut Peak),
        parts: &mut Vec<Part>,
    ) -> usize {
        let count = self.plan.segments_of(run.kind).len();
        let of = |segment: &Range<usize>| steps_of(self.plan.steps(), segment);
        let first = sooner::of(self.plan).map(|(index, _, layer)| (index, layer.parts()));
        parts.extend(first.map(|(index, [asks, _])| Part::new(Phase::Online, Some(index), asks)));
        let mut early = false;
        for (at, (segment, demand)) in
            self.segments.iter().zip(&self.demands).enumerate().take(count)
        {
            let place = run.place + at;
            let steps = of(segment);
            let held = pad_bytes(demand) as u64;
            let mut made = match early {
                true => Part::new(Phase::Preprocess, None, Spent::default()),
                false => exchanged(schedules, place, demand),
            };
            let [circuits, _] = prepare_aside_costs(&demand.circuits);
            made.spent = made.spent.then(Spent::sending(circuits)).and(peak.touch(held));
            parts.push(Part { begins: Some(place), ..made });
            parts.extend(steps.clone().filter_map(|(index, step)| tables(index, step)));
            let ask = |range: Range<usize>| -> Vec<Part> {
                let asking = self.segments.iter().enumerate();
                let asking = asking.take(range.end.min(count)).skip(range.start);
                let asks = |(to, next)| early_costs(&first_asked(of(next)), place + to - at - 1);
                asking.flat_map(asks).collect()
            };
            let [sooner, later] = early_asks(at);
            parts.extend(ask(sooner));
            let next = self.demands.get(at + 1).filter(|_| at + 1 < count);
            let next = next.filter(|next| schedules.is_early(next));
            parts.extend(next.map(|next| exchanged(schedules, place + 1, next)));
            early = next.is_some();
            parts.extend(ask(later));
            for exchange in [Exchange::ObliviousTransfer, Exchange::Encryption] {
                let some = layers_of(steps.clone(), exchange, false);
                let asked = (run.first || at > 0) && exchange == Exchange::Encryption;
                parts.extend(layer_costs(&some, exchange, schedules, asked));
            }
            for (index, step) in steps {
                let mut touched = peak.touch(held + step.linear_memory());
                if step.correlated() > 0 {
                    let made = schedules.correlated(step.correlated());
                    parts.push(Part::new(Phase::Preprocess, None, made));
                }
                let layer = step.linear().filter(|_| run.missed.contains(&index));
                let mut missed =
                    layer.and_then(LinearProtocol::preprocess).and_then(|l| l.missed());
                let mut answers =
                    first.filter(|(at, _)| *at == index).map(|(_, [_, answers])| answers);
                for (demand, spent) in step.parts() {
                    if step.feeds_itself() {
                        let made =
                            schedules.prepare(&demand).and(peak.touch(pad_bytes(&demand) as u64));
                        parts.push(Part::new(Phase::Preprocess, None, made));
                    }
                    let cost = missed.take().unwrap_or(spent.cost);
                    let spent = answers.take().unwrap_or(Spent { cost, ..spent });
                    let spent = spent.and(std::mem::take(&mut touched));
                    parts.push(Part::new(Phase::Online, Some(index), spent));
                }
            }
        }
        count
    }
}

/// The garbled tables of a step.
fn tables(index: usize, step: &Step) -> Option<Part> {
    let [_, tables] = prepare_aside_costs(&step.demand_before_run().circuits);
    let part = Part::new(Phase::Preprocess, None, Spent::sending(tables));
    (tables.bytes() > 0).then_some(Part { aside: Some(index), ..part })
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
