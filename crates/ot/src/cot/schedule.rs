//! Where correlations come from, and what that costs: a state machine that both parties
//! and the planner run alike.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use wire::{Cost, Error, Result, Role};

use super::budget::{Estimate, fewest_bytes};
use super::ferret;
use super::ferret::params::{LARGEST, SETS, Set};
use super::softspoken::{self, Corrections, Field, GRAIN, corrections_layout};
use crate::base::hybrid::BaseOts;

/// Where correlations come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Source {
    /// The source that is estimated to finish first on the link planned for ([`Sourcing`]).
    #[default]
    Auto,
    /// Silent correlations, started from SoftSpoken with k = 8.
    Ferret,
    /// SoftSpoken with k = 2: 63 bits a correlation.
    SoftSpoken2,
    /// SoftSpoken with k = 4: 31 bits a correlation.
    SoftSpoken4,
    /// SoftSpoken with k = 8: 15 bits a correlation.
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
    pub const fn field(self) -> Field {
        match self {
            Self::SoftSpoken2 => Field::Gf4,
            Self::SoftSpoken4 => Field::Gf16,
            Self::Auto | Self::Ferret | Self::SoftSpoken8 => Field::Gf256,
        }
    }

    /// Returns the protocols in use, for people.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Auto => "SoftSpoken k=8, Ferret for large needs",
            Self::Ferret => "Ferret, started by SoftSpoken k=8",
            Self::SoftSpoken2 => "SoftSpoken k=2",
            Self::SoftSpoken4 => "SoftSpoken k=4",
            Self::SoftSpoken8 => "SoftSpoken k=8",
        }
    }
}

/// A source, and what [`Source::Auto`] estimates with. Both parties use the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sourcing {
    /// Where correlations come from.
    pub source: Source,
    /// Bits per second of the link, each way; 400 Mbit/s when absent.
    pub bandwidth: Option<NonZeroU64>,
    /// What new base OTs rest on.
    pub base: BaseOts,
}

impl From<Source> for Sourcing {
    fn from(source: Source) -> Self {
        Self { source, ..Self::default() }
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
            Error::misuse(format!("no source of correlated OTs `{name}`; one of {names}"))
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

/// Correlations of Ferret for one of SoftSpoken, at least, where messages are said to be small.
const MOST_SOFT: usize = 8;

/// Correlations of the longest message, of every source.
const LONGEST: usize = 1 << 16;

/// Correlations made so far, for cost models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CorrelationCounts {
    /// By SoftSpoken with k = 2, 4 and 8.
    pub soft: [usize; 3],
    /// By Ferret with each set, smallest first.
    pub silent: [usize; SETS.len()],
}

impl CorrelationCounts {
    /// The correlations made after `before` was read from the same schedule.
    #[must_use]
    pub fn since(mut self, before: Self) -> Self {
        self.soft.iter_mut().zip(before.soft).for_each(|(now, then)| *now -= then);
        self.silent.iter_mut().zip(before.silent).for_each(|(now, then)| *now -= then);
        self
    }

    /// The correlations that the first message of each source makes, at most. The other party
    /// has nothing to do until that message arrives.
    #[must_use]
    pub fn first(mut self) -> Self {
        let counts = self.soft.iter_mut().chain(&mut self.silent);
        counts.for_each(|count| *count = (*count).min(LONGEST));
        self
    }

    /// The sums of these counts and those of `other`.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.soft.iter_mut().zip(other.soft).for_each(|(sum, more)| *sum += more);
        self.silent.iter_mut().zip(other.silent).for_each(|(sum, more)| *sum += more);
        self
    }

    fn count(&mut self, step: Step, field: Field) {
        let place = match step {
            Step::Soft(_) => match field {
                Field::Gf4 => self.soft.first_mut(),
                Field::Gf16 => self.soft.get_mut(1),
                Field::Gf256 => self.soft.last_mut(),
            },
            Step::Start(_) => None,
            Step::Grow(set, _) => {
                let at = SETS.iter().position(|known| *known == set);
                at.and_then(|at| self.silent.get_mut(at))
            }
        };
        if let Some(made) = place {
            *made += step.yields();
        }
    }
}

/// The schedule of one direction: what it holds and what is announced. After the same calls
/// it is the same at the COT sender, at the COT receiver and in a plan.
#[derive(Clone, Debug)]
pub struct Schedule {
    sourcing: Sourcing,
    cot_sender: Role,
    /// Made and not taken.
    ready: usize,
    /// Announced and not taken.
    reserved: usize,
    /// Refills with the trees they have left, none of them zero.
    refills: VecDeque<(Set, usize)>,
    made: CorrelationCounts,
}

impl Schedule {
    /// Makes a schedule with nothing made yet, as after the setup.
    pub fn new(sourcing: impl Into<Sourcing>, cot_sender: Role) -> Self {
        let (sourcing, refills) = (sourcing.into(), VecDeque::new());
        let made = CorrelationCounts::default();
        Self { sourcing, cot_sender, ready: 0, reserved: 0, refills, made }
    }

    /// Counts everything made by [`Schedule::extend`].
    pub const fn made(&self) -> CorrelationCounts {
        self.made
    }

    /// Returns the bits that SoftSpoken sends for a correlation.
    pub const fn soft_bits(&self) -> usize {
        self.sourcing.source.field().sent_bits()
    }

    /// Announces that `count` more correlations will be asked for.
    pub const fn reserve(&mut self, count: usize) {
        self.reserved = self.reserved.saturating_add(count);
    }

    /// Makes `count` available, and returns what that costs.
    pub fn extend(&mut self, count: usize) -> Cost {
        let (role, field) = (self.cot_sender, self.sourcing.source.field());
        let steps = self.steps(count);
        steps.iter().for_each(|step| self.made.count(*step, field));
        steps.into_iter().map(|step| step.cost(role, field)).collect()
    }

    /// Returns whether Ferret makes nearly all of the next `count` correlations, so that messages say them which are
    /// a hundred times smaller than they are.
    pub fn is_silent(&self, count: usize) -> bool {
        let [soft, silent] = self.next(count);
        silent / MOST_SOFT >= soft
    }

    /// Correlations of SoftSpoken and of Ferret that are made for the next `count`.
    fn next(&self, count: usize) -> [usize; 2] {
        let mut ahead = self.clone();
        ahead.reserve(count);
        ahead.extend(count);
        let made = ahead.made.since(self.made);
        [made.soft.iter().sum(), made.silent.iter().sum()]
    }

    /// Takes `count` correlations out, or all when there are fewer.
    pub fn take(&mut self, count: usize) {
        self.ready = self.ready.saturating_sub(count);
        self.reserved = self.reserved.saturating_sub(count);
    }

    /// Returns the correlations at hand.
    pub const fn available(&self) -> usize {
        self.ready
    }

    /// The steps to take so that `count` correlations are available.
    pub(crate) fn steps(&mut self, count: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        // A refill starts while its base is still at hand, even if that is early.
        while self.held() < count.saturating_add(LARGEST.base())
            && let Some(set) = self.next_set(self.reserved.max(count))
            && self.held() < count.saturating_add(set.base())
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
    fn held(&self) -> usize {
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

    /// The next refill on the way to `need` correlations.
    fn next_set(&self, need: usize) -> Option<Set> {
        let held = self.held();
        match self.sourcing.source {
            Source::SoftSpoken2 | Source::SoftSpoken4 | Source::SoftSpoken8 => None,
            Source::Ferret => fewest_bytes(held, need),
            Source::Auto => Estimate::on(self.sourcing.bandwidth).quickest(held, need),
        }
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

#[cfg(test)]
mod tests;
