//! The share widths that suit a link: which tensors have narrow shares that are extended,
//! which takes rounds, and which have wide ones throughout, which takes bytes.
//!
//! The plan of what was compiled is searched for whole. Its options price the other widths of
//! the model, and only the best of these is searched for, too: a search takes seconds.

use std::collections::BTreeMap;
use std::fmt;

use graph::{Graph, Model, ops};
use mpc::compare::Radix;
use mpc::parallel;
use ring::host;
use serde::{Serialize, Serializer};
use wire::Result;

use super::rates::Conditions;
use super::search::{Found, best_alone, by_run, with_passes};
use crate::plan::options::{OptionsByStep, StepOptions};
use crate::plan::{Plan, Settings};
use crate::suites;
use crate::suites::known::Known;
use crate::suites::siblings::Siblings;

/// What other widths may take at most of what was compiled takes. What saves less is not worth
/// another search.
const PROMISING: f64 = 0.995;
/// Width of digits of extensions that have no options yet.
const DIGITS: u32 = 4;

/// Share widths of a plan beside those that its model was compiled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Widths {
    /// The plan has the widths that its model was compiled with.
    Compiled,
    /// Narrower ones, with so many extensions in the whole graph.
    Narrower(usize),
    /// Wider ones, with so many extensions.
    Wider(usize),
}

impl Widths {
    /// The widths of `planned`, the graph of a plan for a model that was compiled to `compiled`.
    pub fn of(planned: &Graph, compiled: &Graph) -> Self {
        let [count, before] = [planned, compiled].map(extensions);
        match planned == compiled {
            true => Self::Compiled,
            false if count < before => Self::Wider(count),
            false => Self::Narrower(count),
        }
    }
}

impl fmt::Display for Widths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compiled => f.write_str("as compiled"),
            Self::Narrower(count) => write!(f, "narrower: {count} extensions"),
            Self::Wider(count) => write!(f, "wider: {count} extensions"),
        }
    }
}

impl Serialize for Widths {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

fn extensions(graph: &Graph) -> usize {
    graph.nodes.iter().filter(|node| node.op == ops::Extend).count()
}

/// For each of `links` the plan of least predicted time for `model`, all in one graph: the one
/// that was compiled, or, where the suite plans widths, that of its [`graph::variants`] with the
/// least sum of seconds where that saves at least half a percent.
///
/// # Errors
/// The errors of [`Plan::new`] for the graph that was compiled.
pub fn suited(model: &Model, links: &[(Settings, Conditions)]) -> Result<Vec<Found>> {
    let least = suited_alone(model, links)?.into_iter().zip(links);
    least.map(|(found, (settings, conditions))| with_passes(found, *settings, conditions)).collect()
}

/// What [`suited`] finds without passes, which have the graph of the other runs.
fn suited_alone(model: &Model, links: &[(Settings, Conditions)]) -> Result<Vec<Found>> {
    let searched = |graph: &Graph| -> Result<Vec<Found>> {
        let links = links.iter();
        links.map(|(settings, conditions)| best_alone(graph, *settings, conditions)).collect()
    };
    let mut least = searched(&model.graph)?;
    if !suites::plans_widths(&model.graph.suite) {
        return Ok(least);
    }
    let others = graph::variants(model).into_iter().skip(1).collect();
    let priced =
        parallel::map(host::threads(), others, |graph| (about(&graph, &least, links), graph));
    let other = priced.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((_, graph)) = other.filter(|(about, _)| *about < PROMISING * sum(&least))
        && let Ok(found) = searched(&graph)
        && sum(&found) < sum(&least)
    {
        least = found;
    }
    Ok(least)
}

fn sum(found: &[Found]) -> f64 {
    found.iter().map(|found| found.run_seconds).sum()
}

/// Seconds of a run of `graph` on all links together with the options of plans for other widths; for
/// ever where it has no plan.
fn about(graph: &Graph, plans: &[Found], links: &[(Settings, Conditions)]) -> f64 {
    let of = |(found, (_, conditions)): (&Found, &(Settings, Conditions))| {
        let digits = Radix::of_bits(DIGITS).map(StepOptions::digits).unwrap_or_default();
        let tried = [StepOptions::default(), digits, StepOptions::CIRCUITS].into_iter();
        let known = Known::default();
        let plans = tried.filter_map(|new| carried(graph, &found.plan, new, &known).ok());
        plans.map(|plan| by_run(&plan, conditions)).fold(f64::INFINITY, f64::min)
    };
    plans.iter().zip(links).map(of).sum()
}

/// `graph` with the options of `plan` by name, and `new` for steps that it does not have. Its steps are `known`.
fn carried(graph: &Graph, plan: &Plan, new: StepOptions, known: &Known) -> Result<Plan> {
    let (planned, settings) = (plan.graph(), plan.settings());
    let names = planned.nodes.iter().enumerate().map(|(step, node)| (node.name.as_str(), step));
    let names: BTreeMap<&str, usize> = names.collect();
    let (siblings, own) = (Siblings::of(planned), Siblings::of(graph));
    let mut by_step = OptionsByStep::default();
    for (step, node) in graph.nodes.iter().enumerate() {
        let options = match names.get(node.name.as_str()) {
            Some(step) => plan.options().of(siblings.host(*step).unwrap_or(*step)),
            None => new,
        };
        let built = || suites::step_among(known, (graph, &own), settings, step, options).is_ok();
        let has = options.is_none() || built();
        by_step.set(step, if has { options } else { StepOptions::default() });
    }
    by_step.set(graph.nodes.len(), plan.options().of(planned.nodes.len()));
    Plan::among(known, graph.clone(), settings, by_step)
}
