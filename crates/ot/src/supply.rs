//! Where correlations come from, and what that costs: a state machine that both parties
//! and the planner run alike.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use wire::{Cost, Error, Result, Role, Segment};

use crate::ferret;
use crate::ferret::params::{SETS, Set};
use crate::softspoken::{self, Corrections, Field, GRAIN, corrections_layout};

/// Most refills that a plan looks ahead.
const AHEAD: usize = 4;

/// Where correlations come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Source {
    /// Whatever needs the fewest bytes.
    #[default]
    Auto,
    /// Silent correlations, started from SoftSpoken with k = 8.
    Ferret,
    /// SoftSpoken with k = 2: 63 bits a correlation.
    SoftSpoken2,
    /// SoftSpoken with k = 4: 31 bits.
    SoftSpoken4,
    /// SoftSpoken with k = 8: 15 bits.
    SoftSpoken8,
}

impl Source {
    const NAMED: [(Self, &'static str); 5] = [
        (Self::Auto, "auto"),
        (Self::Ferret, "ferret"),
        (Self::SoftSpoken2, "softspoken2"),
        (Self::SoftSpoken4, "softspoken4"),
        (Self::SoftSpoken8, "softspoken8"),
    ];

    /// The field of SoftSpoken, alone or for a start.
    pub(crate) const fn field(self) -> Field {
        match self {
            Self::SoftSpoken2 => Field::Gf4,
            Self::SoftSpoken4 => Field::Gf16,
            Self::Auto | Self::Ferret | Self::SoftSpoken8 => Field::Gf256,
        }
    }

    /// Whether refills are an option, and whether SoftSpoken may do without them.
    const fn kinds(self) -> (bool, bool) {
        match self {
            Self::Auto => (true, true),
            Self::Ferret => (true, false),
            Self::SoftSpoken2 | Self::SoftSpoken4 | Self::SoftSpoken8 => (false, true),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMED.iter().find(|(source, _)| source == self);
        f.pad(named.map_or("", |(_, name)| name))
    }
}

impl FromStr for Source {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = Self::NAMED.iter().find(|(_, known)| *known == name);
        known.map(|(source, _)| *source).ok_or_else(|| {
            let names = Self::NAMED.map(|(_, name)| name).join(", ");
            Error::misuse(format!("no source of transfers `{name}`; one of {names}"))
        })
    }
}

/// Something both parties do to get more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Extend by so many with SoftSpoken.
    Soft(usize),
    /// Take the base of a refill out of the pool.
    Start(Set),
    /// Grow so many trees of the oldest refill that has any left.
    Grow(Set, usize),
}

/// What one direction holds and expects: the same at the COT sender, at the COT receiver
/// and in a plan, after the same calls.
#[derive(Clone, Debug)]
pub struct Supply {
    source: Source,
    cot_sender: Role,
    /// Made and not taken.
    ready: usize,
    /// Announced and not taken.
    reserved: usize,
    /// Refills with the trees they have left, none of them zero.
    refills: VecDeque<(Set, usize)>,
}

impl Supply {
    /// An empty one, after the setup.
    pub const fn new(source: Source, cot_sender: Role) -> Self {
        Self { source, cot_sender, ready: 0, reserved: 0, refills: VecDeque::new() }
    }

    /// Announces that `count` more correlations will be asked for.
    pub const fn reserve(&mut self, count: usize) {
        self.reserved = self.reserved.saturating_add(count);
    }

    /// What it costs to have `count` at hand.
    pub fn extend(&mut self, count: usize) -> Cost {
        let (role, field) = (self.cot_sender, self.source.field());
        self.steps(count).into_iter().map(|step| step.cost(role, field)).collect()
    }

    /// Takes `count`, or all when there are fewer.
    pub fn take(&mut self, count: usize) {
        self.ready = self.ready.saturating_sub(count);
        self.reserved = self.reserved.saturating_sub(count);
    }

    /// Correlations at hand.
    pub const fn available(&self) -> usize {
        self.ready
    }

    /// What to do so that `count` are at hand.
    pub(crate) fn steps(&mut self, count: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        // A refill starts while its base is still at hand, even if that is early.
        let [.., largest] = SETS;
        while self.stock() < count.saturating_add(largest.base())
            && let Some(set) = self.next_set(self.reserved.max(count))
            && self.stock() < count.saturating_add(set.base())
        {
            self.fill(set.base(), &mut steps);
            self.ready -= set.base();
            self.refills.push_back((set, set.trees));
            steps.push(Step::Start(set));
        }
        self.fill(count, &mut steps);
        steps
    }

    /// Everything made or still to be grown.
    fn stock(&self) -> usize {
        self.refills.iter().map(|(set, trees)| trees << set.depth).sum::<usize>() + self.ready
    }

    fn fill(&mut self, count: usize, steps: &mut Vec<Step>) {
        while self.ready < count {
            let missing = count - self.ready;
            let step = match self.refills.front_mut() {
                Some((set, left)) => {
                    let trees = missing.div_ceil(set.leaves()).min(*left);
                    *left -= trees;
                    Step::Grow(*set, trees)
                }
                None => Step::Soft(missing.next_multiple_of(GRAIN)),
            };
            self.ready += step.yields();
            self.refills.retain(|(_, left)| *left > 0);
            steps.push(step);
        }
    }

    /// The refill with which the cheapest way to `need` correlations starts.
    fn next_set(&self, need: usize) -> Option<Set> {
        let (silent, soft) = self.source.kinds();
        let stock = self.stock();
        let need = if silent { bounded(stock, need) } else { stock };
        cheapest(stock, need, AHEAD, soft).1
    }

    /// Layout of a SoftSpoken message for `grains` times 128 correlations.
    pub(crate) fn soft_layout(&self, grains: usize) -> Vec<Segment> {
        corrections_layout(self.source.field(), grains)
    }
}

impl Step {
    const fn yields(self) -> usize {
        match self {
            Self::Soft(count) => count,
            Self::Start(_) => 0,
            Self::Grow(set, trees) => trees << set.depth,
        }
    }

    fn cost(self, cot_sender: Role, field: Field) -> Cost {
        match self {
            Self::Soft(count) => soft_cost(cot_sender, field, count),
            Self::Start(_) => Cost::NONE,
            Self::Grow(set, trees) => ferret::messages(set, trees)
                .map(|trees| {
                    let layout = ferret::corrections_layout(set, trees);
                    Cost::message(cot_sender, ferret::Corrections::body_len(&layout))
                })
                .collect(),
        }
    }
}

/// What SoftSpoken takes for `count` correlations.
fn soft_cost(cot_sender: Role, field: Field, count: usize) -> Cost {
    let len = |grains| Corrections::body_len(&corrections_layout(field, grains));
    softspoken::messages(count).map(|grains| Cost::message(!cot_sender, len(grains))).collect()
}

/// The same for the field that starts refills, without headers, for comparisons.
fn soft_bytes(count: usize) -> u64 {
    Corrections::body_len(&corrections_layout(Field::Gf256, count.div_ceil(GRAIN)))
}

/// `need`, less whole refills of the largest set as long as two more are wanted: it has the
/// best rate, so that they belong to every cheapest way.
fn bounded(stock: usize, need: usize) -> usize {
    let [.., largest] = SETS;
    let net = largest.outputs() - largest.base();
    let whole = need.saturating_sub(stock) / net;
    need - whole.saturating_sub(1) * net
}

/// Bytes of the cheapest way from `stock` to `need` with at most `ahead` refills, and its
/// first refill. `soft`: SoftSpoken may end it.
fn cheapest(stock: usize, need: usize, ahead: usize, soft: bool) -> (u64, Option<Set>) {
    if stock >= need {
        return (0, None);
    }
    let mut best = (if soft { soft_bytes(need - stock) } else { u64::MAX }, None);
    for set in SETS.into_iter().take(if ahead == 0 { 0 } else { SETS.len() }) {
        let base = stock.max(set.base());
        let rest = cheapest(base - set.base() + set.outputs(), need, ahead - 1, soft).0;
        let grown = Step::Grow(set, set.trees).cost(Role::Server, Field::Gf256).bytes();
        let all = rest.saturating_add(soft_bytes(base - stock)).saturating_add(grown);
        if all < best.0 {
            best = (all, Some(set));
        }
    }
    best
}
