//! Seconds of a plan: the rates of a machine, and a link.

use std::collections::VecDeque;

use pricing::Rates;
use pricing::{Unit, Work};
use wire::{Cost, Link, Phase};

use crate::step::spent::{Part, Spent};

/// Work that goes on while its results are on the wire: correlations, their hashes, streams out of
/// those, circuits, and rotation keys.
const STREAMED: [Unit; 9] = [
    Unit::SoftSpoken2,
    Unit::SoftSpoken4,
    Unit::SoftSpoken8,
    Unit::RandomOt,
    Unit::Entry,
    Unit::WideEntry,
    Unit::Stream,
    Unit::Garbled,
    Unit::Keyed,
];

/// A machine and a link.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// The rates of the machine for each unit of work.
    pub rates: Rates,
    /// The link; none where both parties are on the machine.
    pub link: Option<Link>,
}

impl Conditions {
    /// What something takes, `cost` being as it counts where it stands: work, then its
    /// messages one after the other.
    pub(crate) fn seconds(&self, spent: Spent) -> f64 {
        self.working(spent) + self.wire(spent.cost) - self.hidden(spent)
    }

    /// The parts of a session with the seconds of each. Work that can be done while a party waits takes none as far as
    /// the link keeps both waiting before it is needed, and neither do messages that are sent aside as far as others are
    /// under way before they are needed.
    pub(crate) fn timed(&self, parts: impl IntoIterator<Item = Part>) -> Vec<(Part, f64)> {
        let (mut waiting, mut asides) = (Waiting::default(), Waiting::default());
        let mut timed: Vec<(Part, f64)> = Vec::new();
        for part in parts {
            if let Some(step) = part.aside {
                asides.0.push_back((step, self.passing(part.spent.cost)));
                timed.push((part, self.working(part.spent)));
                continue;
            }
            let needed =
                part.step.filter(|_| part.phase == Phase::Online).map_or(0, |step| step + 1);
            let late = waiting.due(part.begins.unwrap_or(0)) + asides.due(needed);
            let (window, later) = part.later.unwrap_or_default();
            waiting.0.push_back((window, self.rates.seconds(&later)));
            waiting.pass(self.wire(part.spent.cost) - self.hidden(part.spent));
            asides.pass(self.under_way(part.spent.cost));
            timed.push((part, self.seconds(part.spent) + late));
        }
        if let Some((_, seconds)) = timed.last_mut() {
            *seconds += waiting.due(usize::MAX) + asides.due(usize::MAX);
        }
        timed
    }

    /// The work of a part and of its messages.
    fn working(&self, Spent { cost, work }: Spent) -> f64 {
        self.rates.seconds(&(work + mpc::work::messages(cost)))
    }

    /// Seconds of what is made while bytes pass.
    fn hidden(&self, Spent { cost, work }: Spent) -> f64 {
        // What is made in quantity is sent while the next of it is made; so is what is
        // encrypted for the wire, which is half of what a byte takes.
        let streamed = STREAMED.iter().map(|unit| Work::of(*unit, work.units(*unit)));
        let bytes = mpc::work::messages(cost).units(Unit::Byte) / 2.0;
        let making = streamed.sum::<Work>() + Work::of(Unit::Byte, bytes);
        self.rates.seconds(&making).min(self.passing(cost))
    }

    /// Time on the link.
    fn wire(&self, cost: Cost) -> f64 {
        self.under_way(cost) + self.passing(cost)
    }

    /// Half a round trip a round.
    fn under_way(&self, cost: Cost) -> f64 {
        self.link.map_or(0.0, |link| cost.rounds as f64 * link.figures().0 / 2.0)
    }

    /// Time that bytes take at the link's bandwidth.
    fn passing(&self, cost: Cost) -> f64 {
        self.link.map_or(0.0, |link| 8.0 * cost.bytes() as f64 / link.figures().1)
    }
}

/// Seconds that are hidden where a party waits, each with what it must be over before.
#[derive(Default)]
struct Waiting(VecDeque<(usize, f64)>);

impl Waiting {
    /// Takes out what must be over before `now`: the seconds that are left of it.
    fn due(&mut self, now: usize) -> f64 {
        let due = self.0.iter().take_while(|(before, _)| *before < now).count();
        self.0.drain(..due).map(|(_, seconds)| seconds).sum()
    }

    /// Hides so many seconds.
    fn pass(&mut self, mut idle: f64) {
        for (_, seconds) in &mut self.0 {
            let now = seconds.min(idle);
            *seconds -= now;
            idle -= now;
        }
        self.0.retain(|(_, seconds)| *seconds > 0.0);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use pricing::unit::COUNT;
    use wire::Role;

    #[test]
    fn a_link_adds_its_time() {
        let cost = Cost::message(Role::Client, 49_999_995);
        let spent = Spent::sending(cost);
        let on = |link| Conditions { rates: Rates::new([0.0; COUNT]).unwrap(), link };
        assert!((on(Some(Link::WAN)).seconds(spent) - 1.02).abs() < 1e-9);
        assert!(on(None).seconds(spent).abs() < 1e-12);
        let rates = Rates::new([1e-9; COUNT]).unwrap();
        let messages = rates.seconds(&mpc::work::messages(cost));
        let hidden = 25e-3;
        for (gates, whole) in [(0.25e9, 1.02 - hidden), (3e9, 3.02)] {
            let spent = Spent { cost, work: Work::of(Unit::Garbled, gates) };
            let took = Conditions { rates, link: Some(Link::WAN) }.seconds(spent);
            assert!((took - messages - whole).abs() < 1e-6, "{took}");
        }
    }

    #[test]
    fn streams_in_a_row_are_made_while_others_are_taken() {
        let rates = Rates::new([1.0; COUNT]).unwrap();
        let alone = Cost::message(Role::Client, 6_000_000);
        let following = Cost { rounds: 0, ..alone };
        let bytes = alone.bytes() as f64;
        let on = |link, cost| {
            let spent = Spent { cost, work: Work::of(Unit::Stream, bytes) };
            Conditions { rates, link }.seconds(spent.beside_others())
        };
        let first = mpc::linear::ot_matmul::MESSAGE as f64;
        assert!((on(None, alone) - bytes - first - 1.0).abs() < 1e-3);
        assert!((on(None, following) - bytes).abs() < 1e-3);
        let short = Cost::message(Role::Client, 1_000_000);
        assert!((on(None, short) - bytes - short.bytes() as f64 - 1.0).abs() < 1e-3);
        // Nothing is added for the wire where making takes longer.
        assert!((on(Some(Link::WAN), following) - bytes).abs() < 1e-3);
    }
}
