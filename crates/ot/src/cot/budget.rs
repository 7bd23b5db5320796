//! Which refill is next: by bytes or by time. Both parties and the planner estimate alike.

use std::num::NonZeroU64;

use pricing::fixed::link::BITS_PER_SECOND;
use pricing::fixed::ot::{FERRET, SOFTSPOKEN};

use super::ferret::params::{LARGEST, SETS, Set};
use super::softspoken::{Field, GRAIN};

/// Most refills that a plan looks ahead.
const AHEAD: usize = 4;

/// Bytes of `count` correlations of the field that starts refills, without headers.
const fn soft_bytes(count: usize) -> u64 {
    (count.div_ceil(GRAIN) * GRAIN / 8 * Field::Gf256.sent_bits()) as u64
}

/// Bytes of a whole refill, without headers.
const fn refill_bytes(set: Set) -> u64 {
    (16 * set.trees * set.blocks()) as u64
}

/// The first refill on the way of fewest bytes from `held` to `need`.
pub(crate) fn fewest_bytes(held: usize, need: usize) -> Option<Set> {
    cheapest(held, bounded(held, need), AHEAD).1
}

/// `need`, less whole refills of the largest set as long as two more are wanted: it has the
/// best rate, so that they belong to every cheapest way.
fn bounded(held: usize, need: usize) -> usize {
    let net = LARGEST.outputs() - LARGEST.base();
    let whole = need.saturating_sub(held) / net;
    need - whole.saturating_sub(1) * net
}

/// Bytes of the cheapest way from `held` to `need` with at most `ahead` refills, and its
/// first refill.
fn cheapest(held: usize, need: usize, ahead: usize) -> (u64, Option<Set>) {
    if held >= need {
        return (0, None);
    }
    let mut best = (u64::MAX, None);
    for set in SETS.into_iter().take(if ahead == 0 { 0 } else { SETS.len() }) {
        let base = held.max(set.base());
        let rest = cheapest(base - set.base() + set.outputs(), need, ahead - 1).0;
        let all = rest.saturating_add(soft_bytes(base - held) + refill_bytes(set));
        if all < best.0 {
            best = (all, Some(set));
        }
    }
    best
}

/// What `auto` estimates with: [`pricing::fixed::ot`], in picoseconds, and the bytes on a link.
pub(crate) struct Estimate {
    /// Picoseconds of a byte on the link.
    byte: u64,
}

impl Estimate {
    /// A correlation of SoftSpoken, without its bytes.
    const SOFT: u64 = 1000 * SOFTSPOKEN;
    /// A correlation of each set in the order of [`SETS`], in nanoseconds.
    const LEAVES: [u64; SETS.len()] = FERRET;

    /// A link of so many bits per second.
    pub(crate) fn on(bandwidth: Option<NonZeroU64>) -> Self {
        Self { byte: 8_000_000_000_000 / bandwidth.map_or(BITS_PER_SECOND, NonZeroU64::get) }
    }

    fn soft(&self, count: u64) -> u64 {
        let bytes = self.byte.saturating_mul(Field::Gf256.sent_bits() as u64) / 8;
        count.saturating_mul(Self::SOFT + bytes)
    }

    /// Each correlation gained by a refill that is used for `missing` of them, its base out
    /// of `held` as far as that reaches, the others for `lacking` picoseconds each.
    fn refill(&self, set: Set, held: u64, missing: u64, lacking: u64) -> u64 {
        let at = SETS.iter().position(|known| *known == set).unwrap_or_default();
        let (base, outputs) = (set.base() as u64, set.outputs() as u64);
        let used = missing.min(outputs - base);
        let leaf = 1000 * Self::LEAVES[at] + self.byte.saturating_mul(refill_bytes(set)) / outputs;
        let spent = base.min(held);
        let start = (base - spent).saturating_mul(lacking);
        leaf.saturating_mul(used + spent).saturating_add(start) / used.max(1)
    }

    /// What makes each correlation that the base of `set` lacks soonest: a smaller refill or SoftSpoken.
    fn step(&self, set: Set, held: u64) -> (u64, Option<Set>) {
        let (missing, soft) = ((set.base() as u64).saturating_sub(held), self.soft(1));
        let smaller = SETS.into_iter().take_while(|small| *small != set);
        let time = |small| (self.refill(small, held, missing, soft), Some(small));
        let steps = smaller.filter(|small| small.outputs() > set.base()).map(time);
        steps.chain([(soft, None)]).min_by_key(|(each, _)| *each).unwrap_or((soft, None))
    }

    /// The next refill on the way that makes each correlation missing from `need` soonest, or none
    /// where SoftSpoken does.
    pub(crate) fn quickest(&self, held: usize, need: usize) -> Option<Set> {
        let (held, missing) = (held as u64, need.saturating_sub(held) as u64);
        let time = |set: &Set| {
            let (lacking, step) = self.step(*set, held);
            (
                self.refill(*set, held, missing, lacking),
                step.filter(|_| held < set.base() as u64).unwrap_or(*set),
            )
        };
        let (each, set) = SETS.iter().map(time).min_by_key(|(each, _)| *each)?;
        (missing > 0 && each < self.soft(1)).then_some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_of_sets_are_listed_by_their_secrets() {
        assert_eq!(SETS.map(|set| set.secret), [41_984, 84_992, 166_912, 322_560, 620_544]);
        assert!(Estimate::LEAVES.is_sorted());
    }
}
