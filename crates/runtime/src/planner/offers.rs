//! What a server may offer: one plan, or the one of several that suits the client's link.

use graph::Model;
use wire::{Error, Link, Result};

use crate::plan::{Plan, Settings};
use crate::planner::rates::Conditions;
use crate::planner::widths::suited;
use crate::step::spent::Spent;
use crate::step::spent::counted;
use pricing::Rates;

/// Round trip in seconds and bandwidth in bits per second of the links that are planned for
/// before anybody connects, beside those with names.
const BETWEEN: (f64, f64) = (10e-3, 1e9);

/// A plan and what it takes.
#[derive(Debug)]
struct Candidate {
    plan: Plan,
    spent: Spent,
}

/// Plans of one graph for different links.
#[derive(Debug)]
pub(crate) struct Offers {
    candidates: Vec<Candidate>,
    rates: Rates,
    measured: bool,
}

impl Offers {
    /// One plan for all clients.
    pub(crate) fn one(plan: Plan) -> Self {
        let candidates = vec![Candidate { plan, spent: Spent::default() }];
        Self { candidates, rates: Rates::reference(), measured: false }
    }

    /// Plans for links from a single machine to a wide network, of which each client gets
    /// the one that its link suits. All have the same share widths, since weights are prepared
    /// once: those of the least sum of seconds.
    ///
    /// # Errors
    /// The errors of [`Plan::new`].
    pub(crate) fn measured(model: &Model, settings: Settings, rates: Rates) -> Result<Self> {
        let settings = Settings { measured: true, ..settings };
        let between = Link::new(BETWEEN.0, BETWEEN.1)?;
        let links = [Link::LOOPBACK, Link::LAN, between, Link::WAN]
            .map(|link| (settings.planned_for(Some(link)), on(rates, link)));
        let mut candidates: Vec<Candidate> = Vec::new();
        for found in suited(model, &links)? {
            let plan = found.plan;
            if candidates.iter().all(|known| known.plan.digest() != plan.digest()) {
                let spent = counted(plan.parts(1)).map(|part| part.spent).collect();
                candidates.push(Candidate { plan, spent });
            }
        }
        Ok(Self { candidates, rates, measured: true })
    }

    /// Whether a client's link is measured first.
    pub(crate) fn is_measured(&self) -> bool {
        self.measured
    }

    /// The plan that takes least on `link`; the first without one.
    ///
    /// # Errors
    /// [`Error::Internal`] without a plan; there always is one.
    pub(crate) fn on(&self, link: Option<Link>) -> Result<&Plan> {
        let seconds = |candidate: &&Candidate| match link {
            Some(link) => on(self.rates, link).seconds(candidate.spent),
            None => 0.0,
        };
        let least = self.candidates.iter().min_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        let least =
            least.ok_or_else(|| Error::internal("a server without a plan; please report it"))?;
        Ok(&least.plan)
    }
}

fn on(rates: Rates, link: Link) -> Conditions {
    Conditions { rates, link: Some(link).filter(|link| *link != Link::LOOPBACK) }
}
