//! Which refill is next: by bytes or by time. Both parties and the planner reckon alike.

use std::num::NonZeroU64;

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

/// The first refill on the way of fewest bytes from `stock` to `need`.
pub(crate) fn fewest_bytes(stock: usize, need: usize) -> Option<Set> {
    cheapest(stock, bounded(stock, need), AHEAD).1
}

/// `need`, less whole refills of the largest set as long as two more are wanted: it has the
/// best rate, so that they belong to every cheapest way.
fn bounded(stock: usize, need: usize) -> usize {
    let net = LARGEST.outputs() - LARGEST.base();
    let whole = need.saturating_sub(stock) / net;
    need - whole.saturating_sub(1) * net
}

/// Bytes of the cheapest way from `stock` to `need` with at most `ahead` refills, and its
/// first refill.
fn cheapest(stock: usize, need: usize, ahead: usize) -> (u64, Option<Set>) {
    if stock >= need {
        return (0, None);
    }
    let mut best = (u64::MAX, None);
    for set in SETS.into_iter().take(if ahead == 0 { 0 } else { SETS.len() }) {
        let base = stock.max(set.base());
        let rest = cheapest(base - set.base() + set.outputs(), need, ahead - 1).0;
        let all = rest.saturating_add(soft_bytes(base - stock) + refill_bytes(set));
        if all < best.0 {
            best = (all, Some(set));
        }
    }
    best
}

/// Picoseconds on a link and a core whose second-level cache holds one or two megabytes:
/// what `auto` reckons with. A larger set sends less and reads a larger table at
/// random.
pub(crate) struct Reckoning {
    byte: u64,
}

impl Reckoning {
    const SOFT: u64 = 100_000;
    /// A correlation of each set.
    const LEAVES: [u64; SETS.len()] = [22_000, 23_000, 33_000, 55_000];

    /// A link of so many bits per second.
    pub(crate) fn on(bandwidth: Option<NonZeroU64>) -> Self {
        Self { byte: 8_000_000_000_000 / bandwidth.map_or(400_000_000, NonZeroU64::get) }
    }

    fn soft(&self, count: u64) -> u64 {
        let bytes = self.byte.saturating_mul(Field::Gf256.sent_bits() as u64) / 8;
        count.saturating_mul(Self::SOFT + bytes)
    }

    /// Each correlation gained by a refill that is used for `missing` of them, its base out
    /// of `stock` as far as that reaches.
    fn refill(&self, set: Set, stock: u64, missing: u64) -> u64 {
        let at = SETS.iter().position(|known| *known == set).unwrap_or_default();
        let (base, outputs) = (set.base() as u64, set.outputs() as u64);
        let used = missing.min(outputs - base);
        let leaf = Self::LEAVES[at] + self.byte.saturating_mul(refill_bytes(set)) / outputs;
        let held = base.min(stock);
        let work = leaf.saturating_mul(used + held).saturating_add(self.soft(base - held));
        work / used.max(1)
    }

    /// The refill that makes each correlation missing from `need` soonest, or none where
    /// SoftSpoken does.
    pub(crate) fn quickest(&self, stock: usize, need: usize) -> Option<Set> {
        let missing = need.saturating_sub(stock) as u64;
        let time = |set: &Set| (self.refill(*set, stock as u64, missing), *set);
        let (each, set) = SETS.iter().map(time).min_by_key(|(each, _)| *each)?;
        (missing > 0 && each < self.soft(1)).then_some(set)
    }
}
