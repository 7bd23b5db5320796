//! How much of which work the parties do: what a cost model multiplies with seconds.
//!
//! Counts follow from public plans alone, like bytes and rounds. They are of both parties
//! together, as the work lies on the path to the result: who waits for whom is in the seconds
//! that a unit takes, which are measured with both parties running.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use crate::unit::{COUNT, Unit};

/// A number of units of every kind of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work([f64; COUNT]);

impl Default for Work {
    fn default() -> Self {
        Self([0.0; COUNT])
    }
}

impl Work {
    /// Makes no work at all.
    pub fn none() -> Self {
        Self::default()
    }

    /// Makes work of one kind: `count` of `unit`.
    pub fn of(unit: Unit, count: f64) -> Self {
        Self::none().and(unit, count)
    }

    /// This work and `count` more of `unit`.
    #[must_use]
    pub fn and(mut self, unit: Unit, count: f64) -> Self {
        if let Some(known) = self.0.get_mut(unit as usize) {
            *known += count;
        }
        self
    }

    /// Returns the count of one unit.
    pub fn units(&self, unit: Unit) -> f64 {
        self.0.get(unit as usize).copied().unwrap_or_default()
    }

    /// Returns the counts of all units, in the order of [`Unit::ALL`].
    pub fn all(&self) -> &[f64; COUNT] {
        &self.0
    }
}

impl Add for Work {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }
}

impl Sum for Work {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::none(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_adds_up_unit_by_unit() {
        let both = Work::of(Unit::Byte, 2.0) + Work::of(Unit::Byte, 10.0).and(Unit::Round, 1.0);
        let three = [both, both, both].into_iter().sum::<Work>();
        for (work, times) in [(both, 1.0), (three, 3.0)] {
            assert!((work.units(Unit::Byte) - 12.0 * times).abs() < 1e-9);
            assert!((work.units(Unit::Round) - times).abs() < 1e-9);
            assert!((work.all().iter().sum::<f64>() - 13.0 * times).abs() < 1e-9);
        }
    }
}
