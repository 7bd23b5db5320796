//! What a plan takes in seconds, and which plan takes least.
//!
//! Bytes and rounds of a plan are exact. Its seconds are a model: units of work by kind
//! ([`mpc::Kernel`]) times what a unit takes on this machine ([`Rates`]), and time on the
//! link ([`Conditions`]).

mod fit;
mod rates;
mod search;
mod workload;

pub use mpc::{Effort, Kernel};

pub use fit::{Sample, fitted};
pub use rates::{Conditions, Rates};
pub use search::{Alternative, Found, best, uniform};
pub use workload::{Work, workload};

use graph::Graph;
use wire::Result;

use crate::choices::Choice;
use crate::plan::{Plan, Settings};

/// How the protocols of single steps are chosen.
#[derive(Clone, Debug, Default)]
pub enum Planning {
    /// As everybody chooses, for a link of 400 Mbit/s and 40 ms.
    #[default]
    Plain,
    /// The same for all steps that have it.
    Uniform(Choice),
    /// Whatever is soonest done.
    Best(Box<Conditions>),
}

impl Planning {
    /// Plans `graph`.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn plan(&self, graph: &Graph, settings: Settings) -> Result<Plan> {
        match self {
            Self::Plain => Plan::new(graph.clone(), settings),
            Self::Uniform(choice) => uniform(graph, settings, *choice),
            Self::Best(conditions) => best(graph, settings, conditions).map(|found| found.plan),
        }
    }
}
