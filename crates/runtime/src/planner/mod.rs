//! What a plan takes in seconds, and which plan takes least.
//!
//! Bytes and rounds of a plan are exact. Its seconds are a model: units of work by kind
//! ([`mpc::Kernel`]) times what a unit takes on this machine ([`Rates`]), and time on the
//! link ([`Conditions`]).

mod fit;
mod rates;
mod search;
mod ways;
mod workload;

pub use mpc::{Effort, Kernel};

pub use fit::{Sample, fitted};
pub use rates::{Conditions, Rates};
pub use search::{Alternative, Found, best, uniform};
pub use workload::{Work, workload};

use graph::Graph;
use wire::{Error, Result};

use crate::choices::Choice;
use crate::offers::Offers;
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
    /// Whatever is soonest done on the link to a client, measured when it connects, on a machine of
    /// these rates.
    Measured(Box<Rates>),
}

impl Planning {
    /// Plans `graph`.
    ///
    /// # Errors
    /// As [`Plan::new`]; [`Error::Misuse`] where the link is not known yet.
    pub fn plan(&self, graph: &Graph, settings: Settings) -> Result<Plan> {
        match self {
            Self::Plain => Plan::new(graph.clone(), settings),
            Self::Uniform(choice) => uniform(graph, settings, *choice),
            Self::Best(conditions) => best(graph, settings, conditions).map(|found| found.plan),
            Self::Measured(_) => {
                let why = "a link that is measured when a client connects is for servers";
                Err(Error::misuse(why))
            }
        }
    }

    /// What a server of `graph` may offer.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub(crate) fn offers(&self, graph: &Graph, settings: Settings) -> Result<Offers> {
        match self {
            Self::Measured(rates) => Offers::measured(graph, settings, **rates),
            _ => self.plan(graph, settings).map(Offers::one),
        }
    }
}
