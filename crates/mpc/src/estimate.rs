//! What steps cost by themselves, and the cheaper of two plans of the same step. Everything here
//! depends on public sizes only, so both parties choose alike.

use ot::rot::fill_cost;
use ot::{Job, Schedule, Source};
use pricing::fixed::{link, ot as prices};
use wire::{Cost, Role};

use crate::correlations::Demand;

/// Correlations of the largest step that is priced with their start: pricing takes time for
/// each, and a client prices the plan of a server it does not trust.
const MOST: usize = 1 << 26;

/// How far apart the parties are for whom a plan saves time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// 40 ms and 400 Mbit/s.
    Far,
    /// 0.3 ms and 3 Gbit/s.
    Near,
}

impl Distance {
    /// Nanoseconds of a round trip and of a byte.
    fn prices(self) -> [u64; 2] {
        match self {
            Self::Far => [link::ROUND_TRIP_NANOSECONDS, link::BYTE_NANOSECONDS],
            Self::Near => [link::NEAR_ROUND_TRIP_NANOSECONDS, link::NEAR_BYTE_NANOSECONDS],
        }
    }
}

/// The prices of the default choice: [`pricing::fixed`], a link of 400 Mbit/s and 40 ms and
/// silent correlations.
pub(crate) struct Reference;

impl Reference {
    /// Returns the nanoseconds that a step takes.
    pub(crate) fn nanoseconds(demand: &Demand, cost: Cost) -> u64 {
        Self::at(Distance::Far, demand, cost)
    }

    fn at(distance: Distance, demand: &Demand, cost: Cost) -> u64 {
        let [round_trip, byte] = distance.prices();
        let pads = sum(demand, |job| job.count.saturating_mul(job.entries()));
        let work = [
            byte.saturating_mul(cost.bytes()),
            round_trip.saturating_mul(cost.rounds),
            prices::CORRELATION.saturating_mul(sum(demand, Job::cots) as u64),
            prices::PAD.saturating_mul(pads as u64),
        ];
        work.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns the halves of nanoseconds that a step takes of which a round is half a round trip, a change
    /// of direction.
    pub(crate) fn half_nanoseconds(demand: &Demand, cost: Cost) -> u64 {
        Self::half_at(Distance::Far, demand, cost)
    }

    /// Returns the same for parties that are so far apart.
    pub(crate) fn half_at(distance: Distance, demand: &Demand, cost: Cost) -> u64 {
        let bytes = Self::at(distance, demand, Cost { rounds: 0, ..cost });
        let rounds = Cost { rounds: cost.rounds, ..Cost::NONE };
        let rounds = Self::at(distance, &Demand::default(), rounds);
        bytes.saturating_mul(2).saturating_add(rounds)
    }
}

/// The sum over all OTs.
fn sum(demand: &Demand, of: impl Fn(&Job) -> usize) -> usize {
    let jobs = demand.client_sends.iter().chain(&demand.server_sends);
    jobs.map(of).fold(0, usize::saturating_add)
}

/// Bytes of a step on its own, those of its correlations from nothing included.
pub(crate) fn bytes(demand: &Demand, cost: Cost) -> u64 {
    let made = |sender| {
        let mut schedule = Schedule::new(Source::Auto, sender);
        fill_cost(&mut schedule, demand.sent_by(sender)).bytes()
    };
    cost.bytes().saturating_add(made(Role::Client)).saturating_add(made(Role::Server))
}

/// The plan of fewer bytes, the first of equals: `plan` makes it with triples from both
/// directions, or from OTs that the server alone sends. A direction that hardly
/// anything else needs costs its start, which is nothing to a step of more than [`MOST`]
/// correlations: that takes both.
///
/// # Errors
/// What `plan` returns.
pub(crate) fn leaner<P, E>(
    plan: impl Fn(Option<Role>) -> Result<P, E>,
    priced: impl Fn(&P) -> (Demand, Cost),
) -> Result<P, E> {
    let [both, single] = [plan(None)?, plan(Some(Role::Server))?];
    let bytes = |plan: &P| {
        let (demand, cost) = priced(plan);
        if sum(&demand, Job::cots) > MOST { u64::MAX } else { bytes(&demand, cost) }
    };
    Ok(if bytes(&single) < bytes(&both) { single } else { both })
}
