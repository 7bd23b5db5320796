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
//! What a stage is in which values all meet is said in [`meeting`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use wire::{Channel, Cost, Error, Result, Role};

use crate::boolean::compare::Radix;
use crate::boolean::compare::chained::Chained;
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::estimate::{Distance, Reference};
use crate::nonlinear::maximum::{self, Maximum, Tournament};
use crate::protocol::Protocol;
use crate::share::Share;
use crate::turns;

mod meeting;

use self::meeting::{Draw, Meeting, meet};

/// Most values that all meet in one stage.
const MOST: usize = 16;

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
    Pairs(Box<Maximum>),
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
    /// Where the stages are to take little time.
    distance: Distance,
}

impl Shape {
    fn new(bits: u32, radix: Radix, distance: Distance) -> Self {
        let signs = (1..=MOST.ilog2()).map(|count_bits| Chained::signs(bits, count_bits));
        Self { bits, radix, signs: signs.collect(), distance }
    }

    /// The stage in which all values of a group meet.
    fn meeting(&self, draw: Draw) -> Result<Meeting> {
        let signs = self.signs.get(draw.count_bits() as usize - 1).cloned().flatten();
        let signs = signs.ok_or_else(|| Error::misuse("so many values of this width that meet"))?;
        Ok(Meeting::new(draw, self.bits, signs))
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
        let row = Draw { rows: 1, ..draw };
        let groups: Vec<Vec<usize>> = row.groups().map(Range::collect).collect();
        let draw = Tournament::new(row.count(), &groups)?.copies(draw.rows);
        Ok(Stage::Pairs(Box::new(Maximum::new(draw, self.bits, None, self.radix)?)))
    }

    /// Time in halves of nanoseconds behind another stage; a round is half a round trip.
    fn time(&self, draw: Draw) -> Option<u64> {
        let (demand, cost) = self.price(draw).ok()?;
        let behind = Cost { rounds: cost.rounds.saturating_sub(1), ..cost };
        Some(Reference::half_at(self.distance, &demand, behind))
    }
}

impl Stage {
    fn asked_by(self, role: Role) -> Self {
        match self {
            Self::Pairs(plan) => Self::Pairs(Box::new(plan.asked_by(role))),
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
    /// Plans `rows` of `cols` values of `bits` (2 to 63): the stages that take the least time for parties so
    /// far apart by the prices of [`pricing::fixed`]. The client begins.
    ///
    /// # Errors
    /// [`Error::Misuse`] for sizes or widths out of range.
    pub(crate) fn new(
        [rows, cols]: [usize; 2],
        bits: u32,
        radix: Radix,
        distance: Distance,
    ) -> Result<Self> {
        let values = rows.checked_mul(cols).filter(|n| n.checked_mul(64).is_some());
        let values = values.ok_or_else(|| Error::misuse("maxima of these sizes"))?;
        let shape = Shape::new(bits, radix, distance);
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{computed, split};
    use ring::Random;

    /// Rows of values of which many are alike.
    pub(super) fn rows(rng: &mut Random, [rows, cols]: [usize; 2], bits: u32) -> Vec<i64> {
        let quarter = 1i64 << (bits - 2);
        let value = |word: &u64| (*word as i64 % (2 * quarter)) - quarter;
        rng.uniform(rows * cols, bits + 3).iter().map(value).collect()
    }

    #[test]
    fn rows_of_any_length_have_their_maxima_in_fewer_rounds() {
        let mut rng = Random::seeded(102);
        for (cols, radix) in
            [(2, Radix::Chain), (7, Radix::Four), (33, Radix::Chain), (128, Radix::Chain)]
        {
            for (first, distance) in [
                (Role::Client, Distance::Far),
                (Role::Server, Distance::Far),
                (Role::Client, Distance::Near),
            ] {
                let values = rows(&mut rng, [5, cols], 9);
                let plan = RowMaximum::new([5, cols], 9, radix, distance).unwrap().begun_by(first);
                let (client, server) = split(&mut rng, &values, 9);
                let price = (plan.demand(), plan.cost());
                let levels = u64::from(cols.next_power_of_two().ilog2());
                assert!(price.1.rounds <= 2 * levels + 1, "{cols}");
                assert!(cols < 33 || price.1.rounds < 2 * levels - 2, "{cols}");
                let far = RowMaximum::new([5, cols], 9, radix, Distance::Far).unwrap();
                assert!(price.1.bytes() <= far.cost().bytes(), "{cols}");
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
        let plan = |rows| RowMaximum::new([rows, 2], 9, Radix::Chain, Distance::Far);
        assert!(plan(usize::MAX).is_err() && plan(1).is_ok());
        assert!(Shape::new(9, Radix::Chain, Distance::Far).meeting(Draw::new(1, 17, 17)).is_err());
    }
}
