//! How often a run fails.

use crate::keys;
use crate::plan::Plan;

impl Plan {
    /// Returns a bound on the probability that a run gives another result than its protocols define,
    /// by a union bound over all values that are rounded or decrypted, and over the client's keys.
    /// With exact rounding that is the interpreter's result; with stochastic rounding each value that
    /// is rescaled may be off as documented, and fails when it leaves the room that its width has.
    pub fn failure(&self) -> f64 {
        let of = |plan: &Self| plan.steps().iter().map(|step| step.failure()).sum();
        let steps: f64 = of(self);
        let pass: f64 = self.pass().map_or(0.0, of);
        (steps.max(pass) + keys::failure(self)).min(1.0)
    }
}
