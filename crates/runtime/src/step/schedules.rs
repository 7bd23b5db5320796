//! What correlations of a session cost, in the order in which they are made.

use mpc::{Demand, garbled};
use ot::rot::fill_cost;
use ot::{CorrelationCounts, Schedule, Sourcing};
use pricing::Work;
use wire::{Cost, Role};

use super::correlations::{cots, jobs};
use super::spent::Spent;

/// The schedules of both directions of a [`CorrelationSource`], for predictions.
#[derive(Clone, Debug)]
pub(crate) struct Schedules {
    client_sends: Schedule,
    pub(super) server_sends: Schedule,
    /// What had been made before [`Schedules::first`], until the rest of its demand is made.
    first: Option<[CorrelationCounts; 2]>,
}

impl Schedules {
    /// After [`CorrelationSource::setup`].
    pub(crate) fn new(sourcing: Sourcing) -> Self {
        let schedule = |sender| Schedule::new(sourcing, sender);
        let [client_sends, server_sends] = [Role::Client, Role::Server].map(schedule);
        Self { client_sends, server_sends, first: None }
    }

    /// What [`CorrelationSource::first`] sends, where it makes anything; the work is counted with
    /// the rest of the demand.
    pub(crate) fn first(&mut self, demand: &Demand) -> Option<Cost> {
        let mut ahead = self.server_sends.clone();
        let cost = fill_cost(&mut ahead, &jobs(demand, Role::Server));
        if cost.server_to_client > 0 {
            return None;
        }
        self.first = Some(self.made());
        self.server_sends = ahead;
        Some(cost)
    }

    /// What [`CorrelationSource::prepare`] takes next.
    pub(crate) fn prepare(&mut self, demand: &Demand) -> Spent {
        self.exchange(demand).then(Spent::sending(garbled::prepare_cost(&demand.circuits)))
    }

    /// Whether [`CorrelationSource::exchange_early`] exchanges anything.
    pub(crate) fn is_early(&self, demand: &Demand) -> bool {
        let ends = [(&self.client_sends, Role::Client), (&self.server_sends, Role::Server)];
        let counts = ends.map(|(schedule, sender)| (schedule, cots(&jobs(demand, sender))));
        counts.iter().any(|(_, count)| *count > 0)
            && counts.iter().all(|(schedule, count)| schedule.is_silent(*count))
    }

    /// What [`CorrelationSource::exchange`] takes next.
    pub(crate) fn exchange(&mut self, demand: &Demand) -> Spent {
        let first = self.first.take();
        let before = first.unwrap_or_else(|| self.made());
        let [client, server] = [Role::Client, Role::Server].map(|sender| jobs(demand, sender));
        let mut cost = fill_cost(&mut self.client_sends, &client);
        if first.is_none() {
            cost = cost.then(fill_cost(&mut self.server_sends, &server));
        }
        // What one party makes before the other has anything to do is beside nothing.
        let made = self.made().into_iter().zip(before).map(|(now, before)| now.since(before));
        let made = made.map(|made| made.and(made.first()));
        let work = made.map(mpc::work::correlations).sum::<Work>() + mpc::work::pads(demand);
        Spent { cost, work }
    }

    /// Correlations made so far, those that the client sends first.
    pub(super) fn made(&self) -> [CorrelationCounts; 2] {
        [self.client_sends.made(), self.server_sends.made()]
    }
}
