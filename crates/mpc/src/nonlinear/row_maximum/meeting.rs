//! A stage of a maximum in which all values of a group meet.
//!
//! Where k values all meet, a comparison of each pair gives shares of a number, [the first is
//! the larger], so that the wins of each value are a local sum: the first maximum alone has k - 1. A
//! 1-of-n OT each way then multiplies that fact with a value: each party chooses by its summand
//! of the wins from a table that has the other's share at one entry and zeros elsewhere. Who answers
//! the comparisons knows its own summand then, and sends its choice with the answers.

use std::ops::Range;

use ot::{Entry, Job, Table};
use ring::Bits;
use wire::{Channel, Cost, Result, Role};
use zeroize::Zeroizing;

use crate::arithmetic::mux::{self, Side, Switch};
use crate::boolean::compare::chained::{self, Chained};
use crate::boolean::compare::minterms::minterms;
use crate::correlations::{Correlations, Demand};
use crate::share::{Share, server_only};

/// Rows that are parted into groups of nearly the same size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw {
    pub(super) rows: usize,
    pub(super) values: usize,
    /// Values of each group but the last of a row, which may have fewer.
    pub(super) size: usize,
}

impl Draw {
    /// As few groups as there can be of `most` (1 or more) values.
    pub(super) fn new(rows: usize, values: usize, most: usize) -> Self {
        let groups = values.div_ceil(most.max(1)).max(1);
        Self { rows, values, size: values.div_ceil(groups).max(1) }
    }

    /// The groups of a row.
    pub(super) fn left(&self) -> usize {
        self.values.div_ceil(self.size)
    }

    /// Positions of the groups of all rows.
    pub(super) fn groups(&self) -> impl Iterator<Item = Range<usize>> {
        let Self { rows, values, size } = *self;
        (0..rows).flat_map(move |row| {
            let (start, end) = (row * values, (row + 1) * values);
            (start..end).step_by(size).map(move |at| at..end.min(at + size))
        })
    }

    pub(super) fn count(&self) -> usize {
        self.rows * self.values
    }

    /// Pairs of a group's values in all groups.
    pub(super) fn meetings(&self) -> usize {
        let pairs = |size: usize| size * size.saturating_sub(1) / 2;
        self.rows * (self.values / self.size * pairs(self.size) + pairs(self.values % self.size))
    }

    /// Bits of a count of wins in a group.
    pub(super) fn count_bits(&self) -> u32 {
        self.size.next_power_of_two().ilog2().max(1)
    }
}

/// A stage in which all values of a group meet.
#[derive(Clone, Debug)]
pub(super) struct Meeting {
    draw: Draw,
    bits: u32,
    signs: Chained,
    asks: Role,
}

impl Meeting {
    /// Plans a stage of values of `bits`, whose comparisons are `signs`; the client begins.
    pub(super) fn new(draw: Draw, bits: u32, signs: Chained) -> Self {
        Self { draw, bits, signs, asks: Role::Client }
    }

    pub(super) fn asked_by(self, role: Role) -> Self {
        Self { signs: self.signs.asked_by(role), asks: role, ..self }
    }

    fn switch(&self) -> Switch {
        let entry = Entry::Word(self.bits);
        let job = Job { count: self.draw.count(), choice_bits: self.draw.count_bits(), entry };
        Switch { to_client: vec![job], to_server: vec![job] }
    }

    pub(super) fn demand(&self) -> Demand {
        self.signs.demand(self.draw.meetings()) + self.switch().demand()
    }

    pub(super) fn cost(&self) -> Cost {
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
            let most = (1u64 << self.draw.count_bits()).wrapping_sub(rest.len() as u64);
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

/// Runs a stage: the maximum of each group.
///
/// # Errors
/// As [`super::run`].
pub(super) fn meet(
    channel: &mut Channel,
    plan: &Meeting,
    x: &Share,
    mut ots: Correlations,
) -> Result<Share> {
    x.check(plan.draw.count(), plan.bits, "a stage of maxima")?;
    let role = channel.role();
    let differences = plan.differences(x);
    let mut now = ots.split(role, &plan.signs.demand(differences.len()))?;
    let signs = chained::signs(channel, &plan.signs, &differences, &mut now)?;
    let wins = plan.wins(role, &signs);
    let planes: Vec<Bits> =
        (0..plan.draw.count_bits()).map(|bit| Bits::of_words(&wins, bit)).collect();
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

    #[test]
    fn groups_of_every_size_have_their_maxima() {
        let mut rng = Random::seeded(101);
        for (cols, first) in (3..=16).flat_map(|n| [(n, Role::Client), (n, Role::Server)]) {
            for bits in [3, 6] {
                let values = super::super::tests::rows(&mut rng, [70, cols], bits);
                let draw = Draw::new(70, cols, cols);
                let signs = Chained::signs(bits, draw.count_bits()).unwrap();
                let plan = Meeting::new(draw, bits, signs).asked_by(first);
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
}
