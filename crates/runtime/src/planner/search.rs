//! The plan of least predicted time.
//!
//! Bytes, rounds and work of a step follow from its protocol alone; what the steps share is
//! who sent last before them, which decides whether their first message opens a new round, and
//! the correlations, which come from one source at one marginal price. For each source and
//! price the best protocols of all steps together are found by dynamic programming over the
//! steps and who sent last, and the few plans that result are priced whole, start of the
//! sources included. Linear layers that run before their input exists do so in one exchange,
//! which is paid once, and so are that in which circuits are garbled and keys for unfolding: plans
//! with and without are found apart.

use std::collections::BTreeMap;

use graph::Graph;
use mpc::Demand;
use serde::Serialize;
use wire::{Cost, Result, Role};

use super::best::{Best, LONGER};
use super::priced::{Priced, Shared};
use super::rates::Conditions;
use super::shared::{asked, highest};
use super::sources::{name, sourcing};
use super::trails::{self, Through, Trail};
use super::ways::{Levels, Way, ways};
use crate::plan::options::{OptionsByStep, StepOptions};
use crate::plan::{Plan, Settings};
use crate::step::correlations::Schedules;
use crate::step::spent::Spent;
use crate::step::spent::counted;
use crate::suites::known::Known;

/// Times that protocols are found at a price and the plan that results is priced whole.
const TURNS: usize = 2;
/// Sources of correlations, the best by their marginal prices, whose plans are priced whole.
const WHOLE: usize = 3;

/// Inputs of a session of a model that keeps states between them: a few seconds of sound in chunks.
const STREAM: f64 = 100.0;
/// Runs of such a session that are priced: sources make correlations for several at a time.
const PRICED: usize = 9;

/// Rounds of the exchange of all preprocessed layers.
const EXCHANGE: f64 = 2.0;
/// Rounds of the exchange in which circuits are garbled.
const GARBLING: f64 = 2.0;

/// What a correlation takes, on average over a plan.
#[derive(Clone, Copy, Debug, Default)]
struct Marginal {
    seconds: f64,
    bytes: f64,
}

/// A way that a step could run, beside the one that was chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alternative {
    /// The options as text, such as `packing2+ahead` or `digits4`; see [`StepOptions`].
    pub choice: String,
    /// Whether it is the one that runs.
    pub chosen: bool,
    /// Bytes both ways, those of its correlations included.
    pub bytes: u64,
    /// Rounds by itself.
    pub rounds: u64,
    /// Predicted seconds by itself.
    pub seconds: f64,
    /// What the whole plan would take more than the one of least time, all other steps at their best.
    pub slower: f64,
}

/// A plan, and what else was considered.
pub struct Found {
    /// The plan that was found.
    pub plan: Plan,
    /// Predicted seconds of a session with one run.
    pub seconds: f64,
    /// Predicted seconds of a run of the session that was planned for.
    pub run_seconds: f64,
    /// By step, the ways that it could run; of steps that have several.
    pub alternatives: BTreeMap<usize, Vec<Alternative>>,
    /// Predicted seconds by source of correlations, each with the best protocols for it.
    pub sources: Vec<(String, f64)>,
}

/// Returns the plan of least predicted time for `graph` under `settings`, whose source of OTs is
/// kept unless it is `auto`, or one of fewer rounds that takes at most 1 % more (`best.rs`).
///
/// # Errors
/// The errors of [`Plan::new`].
pub fn best(graph: &Graph, settings: Settings, conditions: &Conditions) -> Result<Found> {
    with_passes(best_alone(graph, settings, conditions)?, settings, conditions)
}

/// The plan of least predicted time without passes.
///
/// # Errors
/// The errors of [`Plan::new`].
pub(super) fn best_alone(
    graph: &Graph,
    settings: Settings,
    conditions: &Conditions,
) -> Result<Found> {
    let alone = Settings { pass: None, ..settings };
    best_of_one(graph, alone, sourcing(alone), conditions)
}

/// The plan that was found together with that of passes, where `settings` have some.
///
/// # Errors
/// The errors of [`Plan::with_passes`].
pub(super) fn with_passes(
    found: Found,
    settings: Settings,
    conditions: &Conditions,
) -> Result<Found> {
    let (plan, tried) = (&found.plan, found.plan.settings());
    // All runs of a session have one source of correlations.
    let settings = Settings { pass: settings.pass, ..tried };
    let Some(several) = settings.of_pass() else { return Ok(found) };
    let whole = |passes| {
        let (graph, options) = (plan.graph().clone(), plan.options().clone());
        Plan::with_passes(graph, settings, options, passes)
    };
    // What cannot have passes is refused before anything is searched for.
    whole(OptionsByStep::default())?;
    let passes = best_of_one(plan.graph(), several, vec![several], conditions)?;
    let plan = whole(passes.plan.options().clone())?;
    Ok(Found { plan, ..found })
}

/// The plan of least predicted time of runs of one kind, with correlations of one of these sources.
fn best_of_one(
    graph: &Graph,
    settings: Settings,
    sources: Vec<Settings>,
    conditions: &Conditions,
) -> Result<Found> {
    let plain = Plan::new(graph.clone(), settings)?;
    let inputs = inputs(graph);
    let search = Search { ways: ways(&plain), conditions, inputs };
    let rest = search.seconds(&plain) - search.steps(&plain);
    let mut tried: Vec<(f64, Settings)> = sources
        .into_iter()
        .map(|tried| (rest + search.least(search.marginal(&plain.demand(), tried)), tried))
        .collect();
    let sources = tried.iter().map(|(seconds, tried)| (name(*tried), *seconds)).collect();
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut best = Best::new(search.seconds(&plain), plain);
    let known = Known::default();
    for (_, tried) in tried.into_iter().take(WHOLE) {
        let mut demand = best.plan.demand();
        // Options that were tried with this source, and what the plan needs.
        let mut seen: Vec<(OptionsByStep, Demand)> = Vec::new();
        for _ in 0..TURNS {
            let marginal = search.marginal(&demand, tried);
            for by_step in search.choose(marginal, search.waits(&best.plan)) {
                if let Some((_, before)) = seen.iter().find(|(options, _)| *options == by_step) {
                    demand = before.clone();
                    continue;
                }
                let next = Plan::among(&known, graph.clone(), tried, by_step)?;
                demand = next.demand();
                seen.push((next.options().clone(), demand.clone()));
                best.put(search.seconds(&next), next);
            }
        }
    }
    let (seconds, plan) = best.taken(search.round());
    let marginal = search.marginal(&plan.demand(), plan.settings());
    let alternatives = search.alternatives(&plan, marginal);
    let (run_seconds, seconds) = (seconds, search.session(&plan, 1));
    Ok(Found { plan, seconds, run_seconds, alternatives, sources })
}

/// Inputs of a session for which `graph` is planned.
fn inputs(graph: &Graph) -> f64 {
    if graph.states.is_empty() { 1.0 } else { STREAM }
}

/// The predicted seconds of a session with so many runs.
fn session(plan: &Plan, conditions: &Conditions, runs: usize) -> f64 {
    let parts = counted(plan.parts(plan.settings().batch().saturating_mul(runs)));
    conditions.timed(parts).iter().map(|(_, seconds)| seconds).sum()
}

/// The predicted seconds of the session that a plan is for, by its runs.
pub(super) fn by_run(plan: &Plan, conditions: &Conditions) -> f64 {
    let (first, inputs) = (session(plan, conditions, 1), inputs(plan.graph()));
    if inputs == 1.0 {
        return first;
    }
    // A preparation for several runs together is paid once in as many runs.
    let behind = (PRICED - 1).max(plan.options().most_runs());
    let next = (session(plan, conditions, 1 + behind) - first) / behind as f64;
    next + (first - next) / inputs
}

pub(super) struct Search<'a> {
    pub(super) ways: Vec<Vec<Way>>,
    pub(super) conditions: &'a Conditions,
    /// Runs of a session that share its keys.
    pub(super) inputs: f64,
}

impl Search<'_> {
    /// The predicted seconds of a session with so many runs.
    fn session(&self, plan: &Plan, runs: usize) -> f64 {
        session(plan, self.conditions, runs)
    }

    /// The predicted seconds of a session by its runs.
    fn seconds(&self, plan: &Plan) -> f64 {
        by_run(plan, self.conditions)
    }

    /// The predicted seconds of the steps of the default plan, without its correlations.
    fn steps(&self, plain: &Plan) -> f64 {
        let marginal = self.marginal(&plain.demand(), plain.settings());
        let priced = self.priced(marginal, usize::MAX);
        let first: Vec<Vec<Priced>> =
            priced.iter().map(|ways| ways.iter().take(1).copied().collect()).collect();
        let shared = Shared { early: true, garbled: true, levels: self.asked() };
        trails::cheapest(&first, self.round(), shared).0
    }

    /// The least time of all steps at this price of a correlation.
    fn least(&self, marginal: Marginal) -> f64 {
        let [plainly, early] = self.either(&self.priced(marginal, usize::MAX), self.round());
        plainly.0.min(early.0)
    }

    /// The best ways without preprocessed layers, and with them, each with the keys for unfolding
    /// that are worth it, where a round takes so long.
    fn either(&self, priced: &[Vec<Priced>], round: f64) -> [Trail; 2] {
        [false, true].map(|early| {
            let exchange = if early { EXCHANGE * round } else { 0.0 };
            let with = |(garbled, levels): (bool, Levels)| {
                let shared = Shared { early, garbled, levels };
                let (seconds, trail) = trails::cheapest(priced, round, shared);
                let garbling = if garbled { GARBLING * round } else { 0.0 };
                (seconds + exchange + garbling + self.keys(levels), trail)
            };
            let foldings = self.foldings();
            let all = [false, true].into_iter();
            let all = all.flat_map(|garbled| foldings.iter().map(move |levels| (garbled, *levels)));
            let all = all.map(with).filter(|(_, trail)| trail.len() == priced.len());
            all.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, Vec::new()))
        })
    }

    /// The price of one more of the correlations in `demand`, without hashing them.
    fn marginal(&self, demand: &Demand, settings: Settings) -> Marginal {
        let count = correlations(demand);
        if count == 0.0 {
            return Marginal::default();
        }
        let one = Demand {
            circuits: Vec::new(),
            client_sends: [demand.client_sends.clone(), demand.circuit_jobs()].concat(),
            server_sends: demand.server_sends.clone(),
        };
        let pads = mpc::work::pads(&Demand { circuits: Vec::new(), ..demand.clone() });
        let pads = self.conditions.rates.seconds(&pads);
        let runs = if self.inputs == 1.0 { 1 } else { PRICED };
        let mut schedules = Schedules::new(settings.sourcing());
        let (mut seconds, mut bytes) = (0.0, 0);
        for _ in 0..runs {
            let spent = schedules.prepare(&one);
            seconds += self.conditions.seconds(spent) - pads;
            bytes += spent.cost.bytes();
        }
        let all = count * runs as f64;
        Marginal { seconds: seconds.max(0.0) / all, bytes: bytes as f64 / all }
    }

    /// The first step behind the first segment of a plan, if there is a link on which the server waits.
    fn waits(&self, plan: &Plan) -> usize {
        let second = plan.segments().get(1).map(|segment| segment.start);
        second.filter(|_| self.conditions.link.is_some()).unwrap_or(usize::MAX)
    }

    /// A way without what its rounds take, of which the server may do some while it `waits`.
    fn price(&self, way: &Way, marginal: Marginal, waits: bool) -> Priced {
        let before = if waits { way.while_waiting } else { way.before };
        let made = correlations(&way.demand) * marginal.seconds;
        let prepared = Spent {
            cost: mpc::garbled::prepare_cost(&way.demand.circuits),
            work: mpc::work::pads(&way.demand),
        };
        let still = |spent: Spent| {
            Spent { cost: Cost { rounds: 0, ..spent.cost }, ..spent }.beside_others()
        };
        let online = self.conditions.seconds(still(way.spent));
        let offline = [prepared, before]
            .map(|spent| self.conditions.seconds(still(spent)))
            .iter()
            .sum::<f64>();
        let early = way.options.is_early();
        let seconds = made + offline + online;
        let garbled = way.is_garbled();
        Priced { seconds, cost: way.spent.cost, early, garbled, levels: way.levels }
    }

    fn round(&self) -> f64 {
        let round = Cost { rounds: 1, ..Cost::NONE };
        self.conditions.seconds(Spent::sending(round))
    }

    /// The best ways at this price, also where trips take longer; where it might be better, with some preprocessed layers,
    /// too, and with more of them where the server waits, from step `waits` on.
    fn choose(&self, marginal: Marginal, waits: usize) -> Vec<OptionsByStep> {
        let now = self.priced(marginal, usize::MAX);
        let waiting = (waits < self.ways.len()).then(|| self.priced(marginal, waits));
        let mut all = Vec::new();
        for round in [self.round(), LONGER * self.round()] {
            let [plainly, early] = self.either(&now, round);
            let better = early.0 < plainly.0;
            let waiting = waiting.as_ref().map(|priced| self.either(priced, round));
            let waiting = waiting.map(|[_, early]| early);
            let trails =
                std::iter::once(plainly).chain(Some(early).filter(|_| better)).chain(waiting);
            all.extend(trails.map(|(_, trail)| self.options(trail)));
        }
        all
    }

    /// The options of these ways of all steps.
    fn options(&self, trail: Vec<usize>) -> OptionsByStep {
        let mut by_step = OptionsByStep::default();
        for (step, (ways, at)) in self.ways.iter().zip(trail).enumerate() {
            by_step.set(step, ways.get(at).map(|way| way.options).unwrap_or_default());
        }
        by_step
    }

    /// All ways at this price; from step `waits` on the server does some of the work while it waits.
    fn priced(&self, marginal: Marginal, waits: usize) -> Vec<Vec<Priced>> {
        let of = |(step, ways): (usize, &Vec<Way>)| {
            ways.iter().map(|way| self.price(way, marginal, step >= waits)).collect()
        };
        self.ways.iter().enumerate().map(of).collect()
    }

    /// For each step what its other ways would take.
    fn alternatives(&self, plan: &Plan, marginal: Marginal) -> BTreeMap<usize, Vec<Alternative>> {
        let priced = self.priced(marginal, self.waits(plan));
        let early = (0..plan.steps().len()).any(|step| plan.options().of(step).is_early());
        let garbled = plan.steps().iter().any(|step| !step.demand().circuits.is_empty());
        let shared = Shared { early, garbled, levels: highest(self.asked(), asked(plan)) };
        let through = Through::new(&priced, self.round(), shared);
        let mut all = BTreeMap::new();
        for (step, ways) in self.ways.iter().enumerate().filter(|(_, ways)| ways.len() > 1) {
            let runs = plan.steps().get(step).map(|step| Way::new(StepOptions::default(), step));
            let mut shown: Vec<Alternative> = Vec::new();
            for (at, way) in ways.iter().enumerate() {
                let Some(Priced { seconds, cost, .. }) = priced.get(step).and_then(|p| p.get(at))
                else {
                    continue;
                };
                if way.options.is_none() {
                    continue;
                }
                let exchange = if way.options.is_early() && !early { EXCHANGE } else { 0.0 };
                let garbling = if way.is_garbled() && !garbled { GARBLING } else { 0.0 };
                let alone = exchange + garbling;
                let keys = self.keys(highest(shared.levels, way.levels)) - self.keys(shared.levels);
                let more = through.more(step, at) + alone * self.round() + keys;
                let made = correlations(&way.demand) * marginal.bytes;
                let tables = mpc::garbled::prepare_cost(&way.demand.circuits).bytes();
                let chosen = runs.as_ref().is_some_and(|runs| runs.equals(way));
                shown.push(Alternative {
                    choice: way.options.to_string(),
                    chosen: chosen && !shown.iter().any(|other| other.chosen),
                    bytes: cost.bytes() + way.before.cost.bytes() + tables + made as u64,
                    rounds: cost.rounds,
                    seconds: seconds + self.round() * cost.rounds as f64,
                    slower: more,
                });
            }
            all.insert(step, shown);
        }
        all
    }
}

/// Correlations behind OTs and circuits.
fn correlations(demand: &Demand) -> f64 {
    let circuits: usize = demand.circuit_jobs().iter().map(ot::Job::cots).sum();
    (demand.cots(Role::Client) + demand.cots(Role::Server) + circuits) as f64
}
