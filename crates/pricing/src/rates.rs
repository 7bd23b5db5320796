//! Seconds of a unit of each kind of work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::unit::{COUNT, Unit};
use crate::work::Work;

/// The rates of the machine that the project is measured on, by `tacit calibrate`.
const REFERENCE: &str = include_str!("reference.json");

/// Why a list of numbers is no list of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// A rate is negative, infinite or not a number.
    #[error("rates of a machine are finite and not negative")]
    OutOfRange,
    /// A unit has no rate.
    #[error("no rate of `{}`", .0.name())]
    Missing(Unit),
}

/// Seconds of a unit of each kind of work, one thread a party.
///
/// In JSON it is an object with a number for the name of each unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, f64>", into = "BTreeMap<String, f64>")]
pub struct Rates([f64; COUNT]);

impl Rates {
    /// Makes the rates of the machine that the project is measured on.
    pub fn reference() -> Self {
        serde_json::from_str(REFERENCE).unwrap_or(Self([1e-9; COUNT]))
    }

    /// Rates of these seconds by unit, in the order of [`Unit::ALL`].
    ///
    /// # Errors
    /// [`Unusable::OutOfRange`] for negative or infinite ones.
    pub fn new(seconds: [f64; COUNT]) -> Result<Self, Unusable> {
        let usable = seconds.iter().all(|rate| rate.is_finite() && *rate >= 0.0);
        usable.then_some(Self(seconds)).ok_or(Unusable::OutOfRange)
    }

    /// Returns the seconds that `work` takes.
    pub fn seconds(&self, work: &Work) -> f64 {
        self.0.iter().zip(work.all()).map(|(rate, units)| rate * units).sum()
    }
}

impl TryFrom<BTreeMap<String, f64>> for Rates {
    type Error = Unusable;

    fn try_from(named: BTreeMap<String, f64>) -> Result<Self, Unusable> {
        let mut rates = [0.0; COUNT];
        for (rate, unit) in rates.iter_mut().zip(Unit::ALL) {
            *rate = *named.get(unit.name()).ok_or(Unusable::Missing(unit))?;
        }
        Self::new(rates)
    }
}

impl From<Rates> for BTreeMap<String, f64> {
    fn from(rates: Rates) -> Self {
        Unit::ALL.iter().zip(rates.0).map(|(unit, rate)| (unit.name().into(), rate)).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_is_whole_and_read_back() {
        let rates: Rates = serde_json::from_str(REFERENCE).unwrap();
        assert_eq!(rates, Rates::reference());
        let json = serde_json::to_string(&rates).unwrap();
        assert_eq!(serde_json::from_str::<Rates>(&json).unwrap(), rates);
        assert!(serde_json::from_str::<Rates>("{\"byte\":1.0}").is_err());
        assert!(serde_json::from_str::<Rates>(&json.replace(':', ":-")).is_err());
    }
}
