//! What a plan pays for once, however many of its steps use it: an exchange before the input exists,
//! one in which circuits are garbled, and keys for unfolding.

use super::search::Search;
use super::ways::{Levels, levels};
use crate::keys::unfolding_spent;
use crate::plan::Plan;

impl Search<'_> {
    /// Levels that the default plan asks for.
    pub(super) fn asked(&self) -> Levels {
        let first = self.ways.iter().filter_map(|ways| ways.first());
        first.fold(Levels::default(), |most, way| highest(most, way.levels))
    }

    /// Sets of keys for unfolding that some way could use: those of the default plan, and those
    /// with more levels at one degree or at all.
    pub(super) fn foldings(&self) -> Vec<Levels> {
        let least = self.asked();
        let mut all = vec![least];
        for way in self.ways.iter().flatten() {
            let known: Vec<Levels> = all.iter().map(|set| highest(*set, way.levels)).collect();
            for set in known {
                if !all.contains(&set) {
                    all.push(set);
                }
            }
        }
        all
    }

    /// What keys for unfolding take beyond those of the default plan, for each of the inputs that a
    /// session has.
    pub(super) fn keys(&self, levels: Levels) -> f64 {
        let [all, asked] =
            [levels, self.asked()].map(|levels| self.conditions.seconds(unfolding_spent(levels)));
        (all - asked) / self.inputs
    }
}

/// Levels of keys for unfolding that a plan asks for.
pub(super) fn asked(plan: &Plan) -> Levels {
    plan.steps().iter().map(|step| levels(step)).fold(Levels::default(), highest)
}

/// The higher level of both for each degree.
pub(super) fn highest(one: Levels, other: Levels) -> Levels {
    let mut most = one;
    most.iter_mut().zip(other).for_each(|(most, other)| *most = other.max(*most));
    most
}
