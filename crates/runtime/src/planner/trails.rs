//! The least time of all steps, by dynamic programming over the steps and who sent last.

use wire::{Cost, Role};

use super::priced::{Priced, Shared};

/// Seconds of all steps, and the way of each.
pub(super) type Trail = (f64, Vec<usize>);

/// Who sent last: nobody, the client, the server.
const SENDERS: usize = 3;

/// Least seconds by who sent last; none where nothing leads there.
type Least = [Option<f64>; SENDERS];

/// A step's way, and who sent last before it.
type Taken = (usize, usize);

/// Seconds that a way adds where `before` sent last, and who sent last after it.
fn added(way: &Priced, round: f64, before: usize) -> (f64, usize) {
    let Cost { first, last, rounds, .. } = way.cost;
    let joined = first.is_some() && place(first) == before;
    let rounds = rounds as f64 - if joined { 1.0 } else { 0.0 };
    let after = if last.is_some() { place(last) } else { before };
    (way.seconds + round * rounds, after)
}

/// One step further: the least seconds after it, and how they are reached.
fn further(
    least: &Least,
    ways: &[Priced],
    round: f64,
    shared: Shared,
) -> (Least, [Taken; SENDERS]) {
    let (mut next, mut taken): (Least, _) = ([None; SENDERS], [(0, 0); SENDERS]);
    for (before, known) in least.iter().enumerate() {
        let Some(seconds) = known else { continue };
        for (at, way) in ways.iter().enumerate().filter(|(_, way)| shared.allows(way)) {
            let (added, after) = added(way, round, before);
            let all = seconds + added;
            let (Some(slot), Some(taken)) = (next.get_mut(after), taken.get_mut(after)) else {
                continue;
            };
            if slot.is_none_or(|known| all < known) {
                (*slot, *taken) = (Some(all), (at, before));
            }
        }
    }
    (next, taken)
}

/// The least time, and the ways that take it, of those that `shared` allows. The ways are fewer than the steps
/// where it allows none of a step's.
pub(super) fn cheapest(priced: &[Vec<Priced>], round: f64, shared: Shared) -> Trail {
    let mut least: Least = [Some(0.0), None, None];
    let mut taken = Vec::with_capacity(priced.len());
    for ways in priced {
        let how;
        (least, how) = further(&least, ways, round, shared);
        taken.push(how);
    }
    let ends = least.iter().enumerate().filter_map(|(last, seconds)| Some((last, (*seconds)?)));
    let Some((mut last, seconds)) = ends.min_by(|a, b| a.1.total_cmp(&b.1)) else {
        return (0.0, Vec::new());
    };
    let mut trail = Vec::with_capacity(taken.len());
    for how in taken.iter().rev() {
        let (at, before) = how.get(last).copied().unwrap_or_default();
        trail.push(at);
        last = before;
    }
    trail.reverse();
    (seconds, trail)
}

/// The least time through each way of each step.
pub(super) struct Through<'a> {
    priced: &'a [Vec<Priced>],
    round: f64,
    /// Before each step, and behind the last.
    before: Vec<Least>,
    /// From each step to the end, by who sent last before it.
    rest: Vec<Least>,
    /// Seconds of the best ways.
    least: f64,
}

impl<'a> Through<'a> {
    pub(super) fn new(priced: &'a [Vec<Priced>], round: f64, shared: Shared) -> Self {
        let mut before: Vec<Least> = vec![[Some(0.0), None, None]];
        for ways in priced {
            let least = before.last().copied().unwrap_or_default();
            before.push(further(&least, ways, round, shared).0);
        }
        let mut rest: Vec<Least> = vec![[Some(0.0); SENDERS]];
        for ways in priced.iter().rev() {
            let end = rest.last().copied().unwrap_or_default();
            let from = |sender: usize| {
                let allowed = ways.iter().filter(|way| shared.allows(way));
                least(allowed.filter_map(|way| with(way, round, sender, &end)))
            };
            rest.push([0, 1, 2].map(from));
        }
        rest.reverse();
        let whole = rest.first().and_then(|rest| rest[0]).unwrap_or(0.0);
        Self { priced, round, before, rest, least: whole }
    }

    /// What the whole takes more where a step runs in a way, all others in their best; for ever where
    /// there is no such way.
    pub(super) fn more(&self, step: usize, at: usize) -> f64 {
        let way = self.priced.get(step).and_then(|ways| ways.get(at));
        let (Some(way), Some(before), Some(end)) =
            (way, self.before.get(step), self.rest.get(step + 1))
        else {
            return f64::INFINITY;
        };
        let all = before.iter().enumerate().filter_map(|(sender, seconds)| {
            Some((*seconds)? + with(way, self.round, sender, end)?)
        });
        least(all).map_or(f64::INFINITY, |all| all - self.least)
    }
}

/// Seconds of a way and of the rest behind it.
fn with(way: &Priced, round: f64, sender: usize, end: &Least) -> Option<f64> {
    let (added, after) = added(way, round, sender);
    Some(added + end.get(after).copied().flatten()?)
}

fn least(all: impl Iterator<Item = f64>) -> Option<f64> {
    all.min_by(f64::total_cmp)
}

/// 0 for nobody, 1 for the client, 2 for the server.
fn place(sender: Option<Role>) -> usize {
    match sender {
        None => 0,
        Some(Role::Client) => 1,
        Some(Role::Server) => 2,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use ring::Random;

    use super::*;
    use crate::planner::ways::Levels;

    const SHARED: Shared =
        Shared { early: true, garbled: false, levels: [0; he::rlwe::TABLE.len()] };

    /// Ways of five steps: of some messages, from either party to either party, or none; some of them garbled.
    fn ways(rng: &mut Random) -> Vec<Vec<Priced>> {
        let roles = [None, Some(Role::Client), Some(Role::Server)];
        let mut way = || {
            let drawn: Vec<usize> = rng.uniform(4, 10).iter().map(|word| *word as usize).collect();
            let rounds = drawn[1] as u64 % 4;
            let sent = rounds > 0;
            let role = |at: usize| if sent { roles[1 + drawn[at] % 2] } else { None };
            let cost = Cost { rounds, first: role(2), last: role(3), ..Cost::NONE };
            let garbled = drawn[0].is_multiple_of(5);
            let levels = Levels::default();
            Priced { seconds: drawn[0] as f64 / 64.0, cost, early: false, garbled, levels }
        };
        (0..5).map(|_| (0..3).map(|_| way()).collect()).collect()
    }

    /// Seconds of one way for each step.
    fn taken(priced: &[Vec<Priced>], trail: &[usize], round: f64) -> f64 {
        let mut sender = 0;
        let steps = priced.iter().zip(trail).map(|(ways, at)| {
            let (seconds, after) = added(&ways[*at], round, sender);
            sender = after;
            seconds
        });
        steps.sum()
    }

    #[test]
    fn the_best_of_all_trails_is_found_and_what_each_way_takes_more() {
        let mut rng = Random::seeded(31);
        for _ in 0..40 {
            let (priced, round) = (ways(&mut rng), 1.5);
            let all: Vec<Vec<usize>> = (0..3usize.pow(5))
                .map(|number| (0..5).map(|step| number / 3usize.pow(step) % 3).collect())
                .collect();
            let allowed = |trail: &[usize], but: usize| {
                let mut steps = priced.iter().zip(trail).enumerate();
                steps.all(|(step, (ways, at))| step == but || SHARED.allows(&ways[*at]))
            };
            let best = |kept: &dyn Fn(&[usize]) -> bool| {
                let kept = all.iter().filter(|trail| kept(trail));
                kept.map(|trail| taken(&priced, trail, round)).min_by(f64::total_cmp)
            };
            let Some(least) = best(&|trail| allowed(trail, 5)) else {
                assert!(cheapest(&priced, round, SHARED).1.len() < 5);
                continue;
            };
            let (seconds, trail) = cheapest(&priced, round, SHARED);
            assert!((seconds - least).abs() < 1e-9 && allowed(&trail, 5));
            assert!((taken(&priced, &trail, round) - least).abs() < 1e-9);
            let through = Through::new(&priced, round, SHARED);
            for (step, at) in (0..5).flat_map(|step| (0..3).map(move |at| (step, at))) {
                let want = best(&|trail| trail[step] == at && allowed(trail, step)).unwrap();
                assert!((through.more(step, at) - (want - least)).abs() < 1e-9);
            }
        }
    }
}
