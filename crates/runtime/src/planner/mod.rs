//! What a plan takes in seconds, and which plan takes least.
//!
//! Bytes and rounds of a plan are exact. Its seconds are a model: units of work by kind
//! ([`pricing::Unit`]) times what a unit takes on this machine ([`Rates`]), and time on the
//! link ([`Conditions`]).

mod batches;
mod best;
pub(crate) mod offers;
mod priced;
pub(crate) mod rates;
mod search;
mod shared;
mod sources;
mod trails;
mod ways;
pub(crate) mod widths;

pub use pricing::Rates;
pub use pricing::{Unit, Work};

pub use batches::suited_batch;
pub use rates::Conditions;
pub use search::{Alternative, Found, best};
pub use widths::{Widths, suited};

use graph::{Graph, Model};
use wire::{Error, Result};

use crate::plan::options::{OptionsByStep, StepOptions};
use crate::plan::{Plan, Settings};
use crate::planner::offers::Offers;
use crate::planner::ways::ways;

/// How the protocols of single steps are chosen.
#[derive(Clone, Debug, Default)]
pub enum Planning {
    /// The default of every step, for a link of 400 Mbit/s and 40 ms.
    #[default]
    Plain,
    /// Options for all steps that have it.
    Uniform(StepOptions),
    /// The plan that is predicted to take least time.
    Best(Box<Conditions>),
    /// The plan that is predicted to take least time on the link to a client, which is measured
    /// when it connects, on a machine of these rates.
    Measured(Box<Rates>),
}

impl Planning {
    /// Plans `model`, at other share widths than it was compiled with where those are sooner
    /// done: the plan says in which graph. [`Planning::choose`] gives the model in it.
    ///
    /// # Errors
    /// The errors of [`Plan::new`]; [`Error::Misuse`] where the link is not known yet.
    pub fn plan(&self, model: &Model, settings: Settings) -> Result<Plan> {
        match self {
            Self::Plain => Plan::new(model.graph.clone(), settings),
            Self::Uniform(options) => uniform(&model.graph, settings, *options),
            Self::Best(conditions) => {
                best_widths(model, settings, conditions).map(|found| found.plan)
            }
            Self::Measured(_) => {
                let why = "a link that is measured when a client connects is for servers";
                Err(Error::misuse(why))
            }
        }
    }

    /// Plans `model` and returns it at the share widths of the plan.
    ///
    /// # Errors
    /// The errors of [`Planning::plan`].
    pub fn choose(&self, model: Model, settings: Settings) -> Result<(Model, Plan)> {
        let plan = self.plan(&model, settings)?;
        Ok((at_widths(model, plan.graph())?, plan))
    }

    /// What a server of `model` may offer.
    ///
    /// # Errors
    /// The errors of [`Plan::new`].
    pub(crate) fn offers(&self, model: &Model, settings: Settings) -> Result<Offers> {
        match self {
            Self::Measured(rates) => Offers::measured(model, settings, **rates),
            _ => self.plan(model, settings).map(Offers::one),
        }
    }
}

/// Returns the plan of least predicted time for `model` at any share widths; see [`suited`].
///
/// # Errors
/// The errors of [`Plan::new`].
pub fn best_widths(model: &Model, settings: Settings, conditions: &Conditions) -> Result<Found> {
    let found = suited(model, &[(settings, *conditions)])?;
    found
        .into_iter()
        .next()
        .ok_or_else(|| Error::internal("a link without a plan; please report it"))
}

/// Returns `model` in a graph of other share widths.
///
/// # Errors
/// [`Error::Misuse`] for the graph of another model.
pub(crate) fn at_widths(model: Model, graph: &Graph) -> Result<Model> {
    if model.graph == *graph {
        return Ok(model);
    }
    graph::in_graph(model, graph.clone()).map_err(|e| Error::misuse(e.to_string()))
}

/// Plans with `options` for every step that has it, and the default for the rest.
///
/// # Errors
/// The errors of [`Plan::new`].
pub fn uniform(graph: &Graph, settings: Settings, options: StepOptions) -> Result<Plan> {
    let plain = Plan::new(graph.clone(), settings)?;
    let mut by_step = OptionsByStep::default();
    for (step, ways) in ways(&plain).iter().enumerate() {
        if ways.iter().any(|way| way.options == options) {
            by_step.set(step, options);
        }
    }
    Plan::chosen(graph.clone(), settings, by_step)
}
