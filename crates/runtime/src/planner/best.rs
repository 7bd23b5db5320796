//! The plan that is taken of all that were priced.
//!
//! Trips on real links take longer now and then, and bytes do not. So plans are also looked for that would be best if each
//! trip took longer, and one of them is taken where it loses next to nothing.

use crate::plan::Plan;

/// How much longer trips may take than a link says, times what it says.
pub(super) const LONGER: f64 = 2.0;
/// What a plan may lose that is best where trips take longer, of the least time.
const SPARE: f64 = 0.01;

/// The plans that were priced: the one of least time, and others.
pub(super) struct Best {
    least: f64,
    pub(super) plan: Plan,
    others: Vec<(f64, Plan)>,
}

impl Best {
    /// Begins with a plan that takes so long.
    pub(super) const fn new(seconds: f64, plan: Plan) -> Self {
        Self { least: seconds, plan, others: Vec::new() }
    }

    /// Adds a plan that takes so long.
    pub(super) fn put(&mut self, seconds: f64, plan: Plan) {
        if seconds < self.least {
            let before = std::mem::replace(&mut self.plan, plan);
            self.others.push((std::mem::replace(&mut self.least, seconds), before));
        } else {
            self.others.push((seconds, plan));
        }
        self.others.retain(|(seconds, _)| *seconds <= self.least * (1.0 + SPARE));
    }

    /// The plan that is best where trips take longer, of those that lose next to nothing; a trip takes `round` seconds.
    pub(super) fn taken(self, round: f64) -> (f64, Plan) {
        let ranked = |(seconds, plan): (f64, Plan)| {
            let more = (LONGER - 1.0) * round * plan.cost(1).rounds as f64;
            (seconds + more, seconds, plan)
        };
        let first = ranked((self.least, self.plan));
        let others = self.others.into_iter().map(ranked);
        let (_, seconds, plan) =
            others.fold(first, |best, next| if next.0 < best.0 { next } else { best });
        (seconds, plan)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use graph::Rounding;
    use ring::Random;

    use super::*;
    use crate::plan::Settings;
    use crate::planner::uniform;
    use crate::tests::network;

    /// Seconds of a trip.
    const ROUND: f64 = 0.02;

    #[test]
    fn fewer_rounds_are_taken_where_they_cost_next_to_nothing() {
        let graph = network(&mut Random::seeded(66), Rounding::Exact).graph;
        let plan =
            |options: &str| uniform(&graph, Settings::default(), options.parse().unwrap()).unwrap();
        let (many, few) = (|| plan("digits1"), || plan("chain"));
        let [most, least] = [many(), few()].map(|plan| plan.cost(1).rounds);
        assert!(least < most);
        // The plan of fewer rounds takes so much more, found before the other or after it.
        for (more, round, taken) in [
            (0.0, 0.0, most),
            (0.009, 0.0, most),
            (0.009, ROUND, least),
            (0.011, ROUND, most),
            (0.009, 0.001 / (most - least) as f64, most),
        ] {
            let mut best = Best::new(1.0, many());
            best.put(1.0 + more, few());
            best.put(1.5, few());
            assert_eq!(best.taken(round).1.cost(1).rounds, taken, "{more}");
            let mut best = Best::new(1.0 + more, few());
            best.put(1.0, many());
            let (seconds, plan) = best.taken(round);
            assert!(more == 0.0 || plan.cost(1).rounds == taken, "{more}");
            assert!(seconds <= 1.0 + SPARE);
        }
    }
}
