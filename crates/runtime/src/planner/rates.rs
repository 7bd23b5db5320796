//! Seconds of a unit of each kind of work, and a link.

use std::collections::BTreeMap;

use mpc::effort::COUNT;
use mpc::{Effort, Kernel};
use serde::{Deserialize, Serialize};
use wire::{Cost, Error, Link, Result};

use crate::plan::spent::Spent;

/// Those of the machine that the project is measured on, by `tacit calibrate`.
const REFERENCE: &str = include_str!("reference.json");

/// Work that goes on while its results are on the wire: correlations, their pads, streams out of
/// pads, circuits, and rotation keys.
const STREAMED: [Kernel; 9] = [
    Kernel::SoftSpoken2,
    Kernel::SoftSpoken4,
    Kernel::SoftSpoken8,
    Kernel::Transfer,
    Kernel::Entry,
    Kernel::WideEntry,
    Kernel::Stream,
    Kernel::Garbled,
    Kernel::Keyed,
];

/// Seconds of a unit of each kind of work, one thread a party.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, f64>", into = "BTreeMap<String, f64>")]
pub struct Rates([f64; COUNT]);

impl Rates {
    /// Those of the machine that the project is measured on.
    pub fn reference() -> Self {
        serde_json::from_str(REFERENCE).unwrap_or(Self([1e-9; COUNT]))
    }

    /// Seconds by kind, in the order of [`Kernel::ALL`].
    ///
    /// # Errors
    /// [`Error::Misuse`] for negative or infinite ones.
    pub fn new(seconds: [f64; COUNT]) -> Result<Self> {
        if seconds.iter().all(|rate| rate.is_finite() && *rate >= 0.0) {
            return Ok(Self(seconds));
        }
        Err(Error::misuse("rates of a machine are finite and not negative"))
    }

    /// What work takes.
    pub fn seconds(&self, effort: &Effort) -> f64 {
        self.0.iter().zip(effort.all()).map(|(rate, units)| rate * units).sum()
    }
}

impl TryFrom<BTreeMap<String, f64>> for Rates {
    type Error = String;

    fn try_from(named: BTreeMap<String, f64>) -> std::result::Result<Self, String> {
        let mut rates = [0.0; COUNT];
        for (rate, kernel) in rates.iter_mut().zip(Kernel::ALL) {
            let given = named.get(kernel.name());
            *rate = *given.ok_or_else(|| format!("no rate of `{}`", kernel.name()))?;
        }
        Self::new(rates).map_err(|error| error.to_string())
    }
}

impl From<Rates> for BTreeMap<String, f64> {
    fn from(rates: Rates) -> Self {
        Kernel::ALL.iter().zip(rates.0).map(|(k, rate)| (k.name().into(), rate)).collect()
    }
}

/// A machine and a link.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// The machine.
    pub rates: Rates,
    /// The link; none where both parties are on the machine.
    pub link: Option<Link>,
}

impl Conditions {
    /// What something takes, `cost` being as it counts where it stands: work, then its
    /// messages one after the other.
    pub(crate) fn seconds(&self, spent: Spent) -> f64 {
        let Spent { cost, effort } = spent;
        let messages = Effort::messages(cost);
        let work = self.rates.seconds(&(effort + messages));
        // What is made in quantity is sent while the next of it is made; so is what is
        // encrypted for the wire, which is half of what a byte takes.
        let streamed = STREAMED.iter().map(|kernel| Effort::of(*kernel, effort.units(*kernel)));
        let bytes = Effort::of(Kernel::Byte, messages.units(Kernel::Byte) / 2.0);
        let making = self.rates.seconds(&(streamed.sum::<Effort>() + bytes));
        work + self.wire(cost) - making.min(self.passing(cost))
    }

    /// Time on the link: half a round trip a round, bytes at its bandwidth.
    fn wire(&self, cost: Cost) -> f64 {
        let waiting = self.link.map_or(0.0, |link| cost.rounds as f64 * link.figures().0 / 2.0);
        waiting + self.passing(cost)
    }

    /// Time that bytes take at the link's bandwidth.
    fn passing(&self, cost: Cost) -> f64 {
        self.link.map_or(0.0, |link| 8.0 * cost.bytes() as f64 / link.figures().1)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use wire::Role;

    #[test]
    fn the_reference_is_whole_and_read_back() {
        let rates: Rates = serde_json::from_str(REFERENCE).unwrap();
        assert_eq!(rates, Rates::reference());
        let json = serde_json::to_string(&rates).unwrap();
        assert_eq!(serde_json::from_str::<Rates>(&json).unwrap(), rates);
        assert!(serde_json::from_str::<Rates>("{\"byte\":1.0}").is_err());
        assert!(serde_json::from_str::<Rates>(&json.replace(':', ":-")).is_err());
    }

    #[test]
    fn a_link_adds_its_time() {
        let cost = Cost::message(Role::Client, 49_999_995);
        let spent = Spent::sending(cost);
        let on = |link| Conditions { rates: Rates::new([0.0; COUNT]).unwrap(), link };
        assert!((on(Some(Link::WAN)).seconds(spent) - 1.02).abs() < 1e-9);
        assert!(on(None).seconds(spent).abs() < 1e-12);
        let rates = Rates::new([1e-9; COUNT]).unwrap();
        let messages = rates.seconds(&Effort::messages(cost));
        let hidden = 25e-3;
        for (gates, whole) in [(0.25e9, 1.02 - hidden), (3e9, 3.02)] {
            let spent = Spent { cost, effort: Effort::of(Kernel::Garbled, gates) };
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
            let spent = Spent { cost, effort: Effort::of(Kernel::Stream, bytes) };
            Conditions { rates, link }.seconds(spent.beside_others())
        };
        let first = mpc::linear::oblivious::MESSAGE as f64;
        assert!((on(None, alone) - bytes - first - 1.0).abs() < 1e-3);
        assert!((on(None, following) - bytes).abs() < 1e-3);
        let short = Cost::message(Role::Client, 1_000_000);
        assert!((on(None, short) - bytes - short.bytes() as f64 - 1.0).abs() < 1e-3);
        // Nothing is added for the wire where making takes longer.
        assert!((on(Some(Link::WAN), following) - bytes).abs() < 1e-3);
    }
}
