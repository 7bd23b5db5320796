//! What a server may offer: one plan, or the one of several that suits the client's link.

use graph::Model;
use wire::{Error, Link, Result};

use crate::plan::{Plan, Settings};
use crate::planner::best_widths;
use crate::planner::rates::Conditions;
use crate::step::spent::{Part, counted};
use pricing::Rates;

/// Round trip in seconds and bandwidth in bits per second of the links that are planned for
/// before anybody connects, beside those with names.
const BETWEEN: (f64, f64) = (10e-3, 1e9);

/// What is offered to clients of some links.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// For a client whose link is known.
    known: Plan,
    /// For one whose link is measured first.
    measured: Option<Plan>,
    /// Of a session with one run, part by part.
    parts: Vec<Part>,
}

/// Plans for different links.
#[derive(Debug)]
pub(crate) struct Offers {
    candidates: Vec<Candidate>,
    rates: Rates,
    measured: bool,
}

impl Offers {
    /// One plan for all clients.
    pub(crate) fn one(plan: Plan) -> Self {
        let one = Candidate { known: plan, measured: None, parts: Vec::new() };
        Self { candidates: vec![one], rates: Rates::reference(), measured: false }
    }

    /// Plans for links from a single machine to a wide network, of which each client gets
    /// the one that its link suits: for each link what it would get were it the only one, share
    /// widths included.
    ///
    /// # Errors
    /// The errors of [`Plan::new`].
    pub(crate) fn measured(model: &Model, settings: Settings, rates: Rates) -> Result<Self> {
        let between = Link::new(BETWEEN.0, BETWEEN.1)?;
        let mut candidates: Vec<Candidate> = Vec::new();
        for link in [Link::LOOPBACK, Link::LAN, between, Link::WAN] {
            let settings = Settings { measured: false, ..settings.planned_for(Some(link)) };
            let known = best_widths(model, settings, &on(rates, link))?.plan;
            if candidates.iter().any(|other| other.known.digest() == known.digest()) {
                continue;
            }
            let measured = known.with_settings(Settings { measured: true, ..known.settings() })?;
            let parts = counted(known.parts(1)).collect();
            candidates.push(Candidate { known, measured: Some(measured), parts });
        }
        Ok(Self { candidates, rates, measured: true })
    }

    /// Whether a client's link is measured first.
    pub(crate) fn is_measured(&self) -> bool {
        self.measured
    }

    /// How many plans there are for different links.
    pub(crate) fn count(&self) -> usize {
        self.candidates.len()
    }

    /// The plan of a candidate, for a client whose link was `measured` in this session or not.
    ///
    /// # Errors
    /// [`Error::Internal`] for a candidate that is not there.
    pub(crate) fn plan(&self, candidate: usize, measured: bool) -> Result<&Plan> {
        let found = self.candidates.get(candidate);
        let found = found.ok_or_else(|| Error::internal("a plan of no link; please report it"))?;
        let known = Some(&found.known);
        let chosen = if measured { found.measured.as_ref() } else { known };
        chosen.ok_or_else(|| Error::internal("a plan for a link that nobody measures"))
    }

    /// The candidate that takes least on `link`; the first without one.
    pub(crate) fn suited(&self, link: Option<Link>) -> usize {
        let Some(link) = link else { return 0 };
        let seconds = |place: &usize| {
            let conditions = on(self.rates, link);
            self.candidates.get(*place).map_or(f64::INFINITY, |candidate| {
                let timed = conditions.timed(candidate.parts.iter().copied());
                timed.iter().map(|(_, seconds)| seconds).sum()
            })
        };
        (0..self.count()).min_by(|a, b| seconds(a).total_cmp(&seconds(b))).unwrap_or(0)
    }
}

fn on(rates: Rates, link: Link) -> Conditions {
    Conditions { rates, link: Some(link).filter(|link| *link != Link::LOOPBACK) }
}
