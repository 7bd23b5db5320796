//! Maxima of the rows of a matrix in few rounds.
//!
//! | | |
//! |---|---|
//! | In | shares of rows mod 2^bits, of which differences fit in bits; correlations |
//! | Out | shares of each row's maximum, same width |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | a stage of pairs is a level of [`super::maximum`]; a stage in which k values all meet compares k*(k - 1)/2 pairs and chooses each value by a table of as many entries as there are counts, in 3 rounds beside the one in which the stage before ended |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), for pairs; this project for the others |
//!
//! Where k values all meet, a comparison of each pair gives shares of a number, [the first is
//! the larger], so that the wins of each value are a local sum: the first maximum alone has k - 1. A
//! 1-of-n OT each way then multiplies that fact with a value: each party chooses by its summand
//! of the wins from a table that has the other's share at one entry and zeros elsewhere. Who answers
//! the comparisons knows its own summand then, and sends its choice with the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ot::{Entry, Job, Table};
use ring::Bits;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use crate::arithmetic::mux::{self, Side, Switch};
use crate::boolean::compare::Radix;
use crate::boolean::compare::chained::{self, Chained};
use crate::boolean::compare::minterms::minterms;
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::estimate::Reference;
use crate::nonlinear::maximum::{self, Maximum, Tournament};
use crate::protocol::Protocol;
use crate::share::{Share, server_only};
use crate::turns;

/// Most values that all meet in one stage.
const MOST: usize = 16;

/// Rows that are parted into groups of nearly the same size.
#[derive(Clone, Copy, Debug)]
struct Draw {
    rows: usize,
    values: usize,
    /// Values of each group but the last of a row, which may have fewer.
    size: usize,
}

impl Draw {
    /// As few groups as there can be of `most` (1 or more) values.
    fn new(rows: usize, values: usize, most: usize) -> Self {
        let groups = values.div_ceil(most.max(1)).max(1);
        Self { rows, values, size: values.div_ceil(groups).max(1) }
    }

    /// The groups of a row.
    fn left(&self) -> usize {
        self.values.div_ceil(self.size)
    }

    /// Positions of the groups of all rows.
    fn groups(&self) -> impl Iterator<Item = Range<usize>> {
        let Self { rows, values, size } = *self;
        (0..rows).flat_map(move |row| {
            let (start, end) = (row * values, (row + 1) * values);
            (start..end).step_by(size).map(move |at| at..end.min(at + size))
        })
    }

    fn count(&self) -> usize {
        self.rows * self.values
    }

    /// Pairs of a group's values in all groups.
    fn meetings(&self) -> usize {
        let pairs = |size: usize| size * size.saturating_sub(1) / 2;
        self.rows * (self.values / self.size * pairs(self.size) + pairs(self.values % self.size))
    }
}

/// The public plan.
#[derive(Clone, Debug)]
pub(crate) struct RowMaximum {
    values: usize,
    bits: u32,
    stages: Vec<Stage>,
}

/// One stage for all rows.
#[derive(Clone, Debug)]
enum Stage {
    Pairs(Maximum),
    All(Meeting),
}

/// What all stages have in common.
#[derive(Clone, Debug)]
struct Shape {
    bits: u32,
    /// Digits of the comparisons of pairs.
    radix: Radix,
    /// The signs of groups by the bits of a count of wins, from 1 on, where there are such.
    signs: Vec<Option<Chained>>,
}

impl Shape {
    fn new(bits: u32, radix: Radix) -> Self {
        let signs = (1..=MOST.ilog2()).map(|count_bits| Chained::signs(bits, count_bits));
        Self { bits, radix, signs: signs.collect() }
    }

    /// The stage in which all values of a group meet.
    fn meeting(&self, draw: Draw) -> Result<Meeting> {
        let count_bits = draw.size.next_power_of_two().ilog2().max(1);
        let signs = self.signs.get(count_bits as usize - 1).cloned().flatten();
        let signs = signs.ok_or_else(|| Error::misuse("so many values of this width that meet"))?;
        Ok(Meeting { draw, bits: self.bits, count_bits, signs, asks: Role::Client })
    }

    /// Demand and cost of a stage.
    fn price(&self, draw: Draw) -> Result<(Demand, Cost)> {
        if draw.size > 2 {
            let plan = self.meeting(draw)?;
            return Ok((plan.demand(), plan.cost()));
        }
        Maximum::level(draw.rows * (draw.values - draw.left()), self.bits, self.radix)
    }

    fn stage(&self, draw: Draw) -> Result<Stage> {
        if draw.size > 2 {
            return Ok(Stage::All(self.meeting(draw)?));
        }
        let groups: Vec<Vec<usize>> = draw.groups().map(Range::collect).collect();
        let draw = Tournament::new(draw.count(), &groups)?;
        Ok(Stage::Pairs(Maximum::new(draw, self.bits, None, self.radix)?))
    }

    /// Time in halves of nanoseconds behind another stage; a round is half a round trip.
    fn time(&self, draw: Draw) -> Option<u64> {
        let (demand, cost) = self.price(draw).ok()?;
        let rounds = Cost { rounds: cost.rounds.saturating_sub(1), ..Cost::NONE };
        let bytes = Reference::nanoseconds(&demand, Cost { rounds: 0, ..cost });
        let rounds = Reference::nanoseconds(&Demand::default(), rounds);
        Some(bytes.saturating_mul(2).saturating_add(rounds))
    }
}

impl Stage {
    fn asked_by(self, role: Role) -> Self {
        match self {
            Self::Pairs(plan) => Self::Pairs(plan.asked_by(role)),
            Self::All(plan) => Self::All(plan.asked_by(role)),
        }
    }

    fn demand(&self) -> Demand {
        match self {
            Self::Pairs(plan) => plan.demand(),
            Self::All(plan) => plan.demand(),
        }
    }

    fn cost(&self) -> Cost {
        match self {
            Self::Pairs(plan) => plan.cost(),
            Self::All(plan) => plan.cost(),
        }
    }
}

impl RowMaximum {
    /// Plans `rows` of `cols` values of `bits` (2 to 63): the stages that take the least time on the
    /// link of [`pricing::fixed`]. The client begins.
    ///
    /// # Errors
    /// [`Error::Misuse`] for sizes or widths out of range.
    pub(crate) fn new(rows: usize, cols: usize, bits: u32, radix: Radix) -> Result<Self> {
        let values = rows.checked_mul(cols).filter(|n| n.checked_mul(64).is_some());
        let values = values.ok_or_else(|| Error::misuse("maxima of these sizes"))?;
        let shape = Shape::new(bits, radix);
        // By the number of values that are left of a row: the least time from there on, and the
        // most values of a group.
        let mut known: BTreeMap<usize, (u64, usize)> = BTreeMap::from([(1, (0, 1))]);
        for values in reached(cols).into_iter().filter(|values| *values > 1) {
            let timed = (2..=MOST.min(values)).filter_map(|most| {
                let draw = Draw::new(rows, values, most);
                let (rest, _) = known.get(&draw.left())?;
                Some((shape.time(draw)?.saturating_add(*rest), most))
            });
            let best = timed.min();
            known.insert(values, best.unwrap_or((u64::MAX, 2)));
        }
        let (mut stages, mut left) = (Vec::new(), cols);
        while left > 1 {
            let most = known.get(&left).map_or(2, |(_, most)| *most);
            let draw = Draw::new(rows, left, most);
            stages.push(shape.stage(draw)?);
            left = draw.left();
        }
        Ok(Self { values, bits, stages }.begun_by(Role::Client))
    }

    /// Lets `first` begin, and every other stage be begun by whoever spoke last.
    pub(crate) fn begun_by(mut self, mut first: Role) -> Self {
        let begun = self.stages.drain(..).map(|stage| {
            let stage = stage.asked_by(first);
            first = turns::after(stage.cost(), first);
            stage
        });
        let stages = begun.collect();
        Self { stages, ..self }
    }

    /// Returns the OTs that a run consumes.
    pub(crate) fn demand(&self) -> Demand {
        self.stages.iter().map(Stage::demand).sum()
    }

    /// Returns what [`run`] costs.
    pub(crate) fn cost(&self) -> Cost {
        self.stages.iter().map(Stage::cost).collect()
    }
}

/// The numbers of values that may be left of so many, in rising order.
fn reached(cols: usize) -> BTreeSet<usize> {
    let (mut all, mut next) = (BTreeSet::from([1]), vec![cols]);
    while let Some(values) = next.pop() {
        if values > 1 && all.insert(values) {
            next.extend((2..=MOST.min(values)).map(|most| Draw::new(1, values, most).left()));
        }
    }
    all
}

/// Returns the maximum of each row.
///
/// # Errors
/// [`Error::Misuse`] when shares or correlations do not fit the plan, [`Error::Peer`],
/// [`Error::Transport`].
pub(crate) fn run(
    channel: &mut Channel,
    plan: &RowMaximum,
    x: &Share,
    mut ots: Correlations,
) -> Result<Share> {
    x.check(plan.values, plan.bits, "maxima of rows")?;
    let role = channel.role();
    let mut values = Share::new(x.words().to_vec(), x.bits());
    for stage in &plan.stages {
        let now = ots.split(role, &stage.demand())?;
        values = match stage {
            Stage::Pairs(plan) => {
                let winners = maximum::run(channel, plan, &values, None, now)?.pop();
                winners.ok_or_else(|| defect("a maximum has no output"))?
            }
            Stage::All(plan) => meet(channel, plan, &values, now)?,
        };
    }
    Ok(values)
}

/// A stage in which all values of a group meet.
#[derive(Clone, Debug)]
struct Meeting {
    draw: Draw,
    bits: u32,
    /// Bits of a count of wins.
    count_bits: u32,
    signs: Chained,
    asks: Role,
}

impl Meeting {
    fn asked_by(self, role: Role) -> Self {
        Self { signs: self.signs.asked_by(role), asks: role, ..self }
    }

    fn switch(&self) -> Switch {
        let entry = Entry::Word(self.bits);
        let job = Job { count: self.draw.count(), choice_bits: self.count_bits, entry };
        Switch { to_client: vec![job], to_server: vec![job] }
    }

    fn demand(&self) -> Demand {
        self.signs.demand(self.draw.meetings()) + self.switch().demand()
    }

    fn cost(&self) -> Cost {
        self.signs.cost(self.draw.meetings()).then(self.switch().cost(!self.asks))
    }

    /// What each pair of a group differs by, the first less the second.
    fn differences(&self, x: &Share) -> Share {
        let mut differences = Vec::with_capacity(self.draw.meetings());
        for group in self.draw.groups() {
            let mut rest = x.words().get(group).unwrap_or_default();
            while let [one, others @ ..] = rest {
                differences.extend(others.iter().map(|other| one.wrapping_sub(*other)));
                rest = others;
            }
        }
        Share::new(differences, self.bits)
    }

    /// This party's summands of the wins of each value and of what makes those of a winner all
    /// ones.
    fn wins(&self, role: Role, signs: &Share) -> Zeroizing<Vec<u64>> {
        let mut wins = Zeroizing::new(vec![0u64; self.draw.count()]);
        let mut signs = signs.words().iter();
        for group in self.draw.groups() {
            let mut rest = wins.get_mut(group).unwrap_or_default();
            let most = (1u64 << self.count_bits).wrapping_sub(rest.len() as u64);
            let most = server_only(role, most);
            while let [one, others @ ..] = rest {
                *one = one.wrapping_add(most);
                for (other, sign) in others.iter_mut().zip(signs.by_ref()) {
                    *one = one.wrapping_add(*sign);
                    *other = other.wrapping_add(server_only(role, 1)).wrapping_sub(*sign);
                }
                rest = others;
            }
        }
        wins
    }
}

/// The table for the other party's choice by its summand of the wins, given one's own: a value where
/// they are all ones together, and zero elsewhere.
fn table(values: &[u64], wins: &[Bits]) -> Table {
    // Own summands in falling order stand beside those of the other in rising order.
    let own = Zeroizing::new(minterms(wins, values.len()));
    let entry = |own: &Bits| values.iter().zip(own.masks()).map(|(x, mask)| x & mask).collect();
    Table::words(own.iter().rev().map(entry).collect())
}

fn meet(channel: &mut Channel, plan: &Meeting, x: &Share, mut ots: Correlations) -> Result<Share> {
    x.check(plan.draw.count(), plan.bits, "a stage of maxima")?;
    let role = channel.role();
    let differences = plan.differences(x);
    let mut now = ots.split(role, &plan.signs.demand(differences.len()))?;
    let signs = chained::signs(channel, &plan.signs, &differences, &mut now)?;
    let wins = plan.wins(role, &signs);
    let planes: Vec<Bits> = (0..plan.count_bits).map(|bit| Bits::of_words(&wins, bit)).collect();
    let tables = vec![table(x.words(), &planes)];
    let side = Side { choices: vec![planes], tables };
    let switched = mux::run(channel, &plan.switch(), !plan.asks, side, ots)?;
    let chosen = switched.sum(x.len(), plan.bits);
    let maximum = |group: Range<usize>| {
        let members = chosen.words().get(group).unwrap_or_default();
        members.iter().fold(0u64, |sum, word| sum.wrapping_add(*word))
    };
    Ok(Share::new(plan.draw.groups().map(maximum).collect(), plan.bits))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{computed, split};
    use ring::Random;

    /// Rows of values of which many are alike.
    fn rows(rng: &mut Random, [rows, cols]: [usize; 2], bits: u32) -> Vec<i64> {
        let quarter = 1i64 << (bits - 2);
        let value = |word: &u64| (*word as i64 % (2 * quarter)) - quarter;
        rng.uniform(rows * cols, bits + 3).iter().map(value).collect()
    }

    #[test]
    fn groups_of_every_size_have_their_maxima() {
        let mut rng = Random::seeded(101);
        for (cols, first) in (3..=MOST).flat_map(|n| [(n, Role::Client), (n, Role::Server)]) {
            for bits in [3, 6] {
                let values = rows(&mut rng, [70, cols], bits);
                let plan = Shape::new(bits, Radix::Chain).meeting(Draw::new(70, cols, cols));
                let plan = plan.unwrap().asked_by(first);
                let (client, server) = split(&mut rng, &values, bits);
                let price = (plan.demand(), plan.cost());
                assert_eq!((price.1.rounds, price.1.last), (4, Some(!first)));
                let got = computed(&mut rng, price, [&client, &server], |ch, x, ots| {
                    meet(ch, &plan, x, ots)
                });
                let want = values.chunks(cols).map(|row| *row.iter().max().unwrap());
                assert_eq!(got, want.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn rows_of_any_length_have_their_maxima_in_fewer_rounds() {
        let mut rng = Random::seeded(102);
        for (cols, radix) in
            [(2, Radix::Chain), (7, Radix::Four), (33, Radix::Chain), (128, Radix::Chain)]
        {
            for first in [Role::Client, Role::Server] {
                let values = rows(&mut rng, [5, cols], 9);
                let plan = RowMaximum::new(5, cols, 9, radix).unwrap().begun_by(first);
                let (client, server) = split(&mut rng, &values, 9);
                let price = (plan.demand(), plan.cost());
                let levels = u64::from(cols.next_power_of_two().ilog2());
                assert!(price.1.rounds <= 2 * levels + 1, "{cols}");
                assert!(cols < 33 || price.1.rounds < 2 * levels - 2, "{cols}");
                let got = computed(&mut rng, price, [&client, &server], |ch, x, ots| {
                    run(ch, &plan, x, ots)
                });
                let want = values.chunks(cols).map(|row| *row.iter().max().unwrap());
                assert_eq!(got, want.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn misfits_are_refused() {
        assert!(RowMaximum::new(usize::MAX, 2, 9, Radix::Chain).is_err());
        assert!(Shape::new(9, Radix::Chain).meeting(Draw::new(1, 17, 17)).is_err());
    }
}
