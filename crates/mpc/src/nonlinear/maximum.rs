//! Maxima: pairs, and windows as a tournament.
//!
//! | | |
//! |---|---|
//! | In | shares of vectors mod 2^bits whose differences fit in bits; correlations |
//! | Out | shares of each window's maximum, same width |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | per pair: one comparison of bits - 1, then 2*payload + 2 bits; ceil(log2 window) levels; windows that overlap share the maxima of rows |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), max pooling; FALCON (pool before ReLU) |
//!
//! A *payload* (an index, say) can follow the winner, under the same choices. Of equal
//! values the first wins.

use ot::{Entry, Job, Table};
use ring::word::mask;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use crate::arithmetic::mux::{self, Side, Switch};
use crate::boolean::compare::{self, Comparison, Radix};
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::nonlinear::relu::gated;
use crate::protocol::{Protocol, input};
use crate::share::{Share, sign_of};

/// The tournament of one set of windows: which positions meet at each level. Copies of it are played
/// side by side.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// Pairs of players of one copy: its inputs, then the winners of each level.
    levels: Vec<Vec<(usize, usize)>>,
    winners: Vec<usize>,
    /// Inputs of one copy.
    inputs: usize,
    copies: usize,
}

impl Tournament {
    /// Plans the tournament of `windows`, which list positions below `inputs`; each has at least
    /// one.
    ///
    /// # Errors
    /// [`Error::Misuse`] for an empty window or a position out of range.
    pub fn new(inputs: usize, windows: &[Vec<usize>]) -> Result<Self> {
        if windows.iter().any(|w| w.is_empty() || w.iter().any(|i| *i >= inputs)) {
            return Err(Error::misuse("an empty window or one beyond its input"));
        }
        let drawn = Rows::of(inputs, windows);
        let flat: usize = windows.iter().map(|window| window.len() - 1).sum();
        let mut draw = Self { levels: Vec::new(), winners: Vec::new(), inputs, copies: 1 };
        draw.winners = if drawn.pairs() < flat {
            let rows = draw.play(drawn.rows);
            draw.play(drawn.windows.renamed(&rows))
        } else {
            let members = windows.iter().map(Vec::len).sum();
            let mut whole = Groups::with_room(members, windows.len());
            windows.iter().for_each(|window| whole.push(window.iter().copied()));
            draw.play(whole)
        };
        Ok(draw)
    }

    /// Plans the tournament of one row of so many values (1 or more).
    ///
    /// # Errors
    /// [`Error::Misuse`] for no values.
    pub fn of_row(values: usize) -> Result<Self> {
        Self::new(values, &[(0..values).collect()])
    }

    /// Returns the tournament of the same windows on each of so many inputs, which follow each other.
    #[must_use]
    pub fn copies(self, copies: usize) -> Self {
        Self { copies, ..self }
    }

    /// Plays levels until one is left of each group.
    fn play(&mut self, mut groups: Groups) -> Vec<usize> {
        while groups.pairs() > 0 {
            let first = self.inputs + self.levels.iter().map(Vec::len).sum::<usize>();
            let mut pairs = Vec::with_capacity(groups.members.len() / 2);
            let mut winner = |pair: &[usize]| match *pair {
                [left, right] => {
                    pairs.push((left, right));
                    first + pairs.len() - 1
                }
                _ => pair.first().copied().unwrap_or(0),
            };
            let mut next = Groups::with_room(groups.members.len(), groups.ends.len());
            groups.iter().for_each(|group| next.push(group.chunks(2).map(&mut winner)));
            groups = next;
            self.levels.push(pairs);
        }
        groups.members
    }

    /// Comparisons of each level, in all copies.
    fn pairs(&self) -> impl Iterator<Item = usize> {
        self.levels.iter().map(|pairs| self.copies * pairs.len())
    }

    /// Inputs of all copies.
    fn count(&self) -> usize {
        self.copies * self.inputs
    }

    /// Where `players` of one copy are in all copies, copy after copy. The inputs of all copies come first, then
    /// the winners of each level in all copies.
    fn places(&self, players: impl Iterator<Item = usize>) -> Vec<usize> {
        // By level, the inputs before: where a copy's players of it start and how many there are.
        let sizes = std::iter::once(self.inputs).chain(self.levels.iter().map(Vec::len));
        let blocks: Vec<[usize; 2]> = sizes
            .scan(0, |start, size| {
                *start += size;
                Some([*start - size, size])
            })
            .collect();
        let place = |player: usize| {
            let block = blocks.partition_point(|[start, _]| *start <= player).saturating_sub(1);
            let [start, size] = blocks.get(block).copied().unwrap_or_default();
            (self.copies * start + player - start, size)
        };
        let first: Vec<(usize, usize)> = players.map(place).collect();
        let copy = |copy: usize| first.iter().map(move |(at, size)| at + copy * size);
        (0..self.copies).flat_map(copy).collect()
    }
}

/// Who plays against each other, group after group.
#[derive(Default)]
struct Groups {
    members: Vec<usize>,
    /// Where each group ends.
    ends: Vec<usize>,
}

impl Groups {
    fn with_room(members: usize, groups: usize) -> Self {
        Self { members: Vec::with_capacity(members), ends: Vec::with_capacity(groups) }
    }

    fn push(&mut self, group: impl IntoIterator<Item = usize>) {
        self.members.extend(group);
        self.ends.push(self.members.len());
    }

    fn iter(&self) -> impl Iterator<Item = &[usize]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends);
        ranges.map(|(start, end)| self.members.get(start..*end).unwrap_or_default())
    }

    /// Matches until one is left of each group.
    fn pairs(&self) -> usize {
        self.members.len() - self.ends.len()
    }

    /// With `names` in place of the indices into them.
    fn renamed(mut self, names: &[usize]) -> Self {
        let name = |i: usize| names.get(i).copied().unwrap_or(0);
        self.members.iter_mut().for_each(|member| *member = name(*member));
        self
    }
}

/// The rows of all windows, each once, and the rows of each window. A row is positions
/// that follow each other.
struct Rows {
    rows: Groups,
    windows: Groups,
}

impl Rows {
    fn of(inputs: usize, windows: &[Vec<usize>]) -> Self {
        const NONE: usize = usize::MAX;
        let mut drawn = Self { rows: Groups::default(), windows: Groups::default() };
        // The last row from each position on, and its length.
        let mut seen = vec![(NONE, 0); inputs];
        for window in windows {
            let mut row_of = |row: &[usize]| {
                let known = row.first().and_then(|first| seen.get_mut(*first));
                match known {
                    Some((index, length)) if *length == row.len() => *index,
                    known => {
                        let index = drawn.rows.ends.len();
                        drawn.rows.push(row.iter().copied());
                        if let Some(known) = known {
                            *known = (index, row.len());
                        }
                        index
                    }
                }
            };
            drawn.windows.push(window.chunk_by(|a, b| a + 1 == *b).map(&mut row_of));
        }
        drawn
    }

    fn pairs(&self) -> usize {
        self.rows.pairs() + self.windows.pairs()
    }
}

/// The public plan of a maximum: the tournament, the value's width and the width
/// of what follows the winner.
#[derive(Clone, Debug)]
pub struct Maximum {
    tournament: Tournament,
    bits: u32,
    payload: Option<u32>,
    comparison: Comparison,
}

impl Maximum {
    /// Values of `bits` (2 to 63), with a payload of the given width.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths out of range.
    pub fn new(
        tournament: Tournament,
        bits: u32,
        payload: Option<u32>,
        radix: Radix,
    ) -> Result<Self> {
        if !(2..=63).contains(&bits) || payload.is_some_and(|b| !(1..=63).contains(&b)) {
            return Err(Error::misuse("a maximum with these widths"));
        }
        Ok(Self { tournament, bits, payload, comparison: Comparison::carry(bits - 1, radix) })
    }

    /// Lets `role` ask for comparisons, and so begin; the client does by default.
    pub(crate) fn asked_by(self, role: Role) -> Self {
        Self { comparison: self.comparison.asked_by(role), ..self }
    }

    /// Returns what a level of so many pairs of values of `bits` demands and costs.
    ///
    /// # Errors
    /// As [`Maximum::new`].
    pub(crate) fn level(pairs: usize, bits: u32, radix: Radix) -> Result<(Demand, Cost)> {
        let none = Tournament { levels: Vec::new(), winners: Vec::new(), inputs: 0, copies: 0 };
        let plan = Self::new(none, bits, None, radix)?;
        Ok((plan.level_need(pairs), plan.level_cost(pairs)))
    }

    fn level_cost(&self, pairs: usize) -> Cost {
        let first = self.comparison.last_sender();
        self.comparison.cost(pairs).then(self.switch(pairs).cost(first))
    }

    fn switch(&self, count: usize) -> Switch {
        let entry = self.payload.map_or(Entry::Word(self.bits), |p| Entry::Pair(self.bits, p));
        let jobs = vec![Job { count, choice_bits: 1, entry }];
        Switch { to_client: jobs.clone(), to_server: jobs }
    }

    fn level_need(&self, count: usize) -> Demand {
        self.comparison.demand(count) + self.switch(count).demand()
    }

    /// Plays one level: the winners of `left[i]` against `right[i]`, for the value
    /// and its payload.
    fn play(
        &self,
        channel: &mut Channel,
        left: &[Share],
        right: &[Share],
        mut ots: Correlations,
    ) -> Result<Vec<Share>> {
        let role = channel.role();
        let differences: Vec<Share> =
            left.iter().zip(right).map(|(l, r)| l.add_scaled(r, -1)).collect();
        let value =
            differences.first().ok_or_else(|| defect("a maximum has no value to compare"))?;
        let count = value.len();
        let found = compare::of_share(channel, &self.comparison, value, &mut ots)?;
        let mut wins = sign_of(role, value.words(), self.bits);
        wins.xor(&found.greater);
        let mut table = Table::words(gated(value.words(), &wins));
        for payload in differences.iter().skip(1) {
            let columns = table.0.iter_mut().zip(gated(payload.words(), &wins));
            columns.for_each(|(entry, words)| entry.words.push(words));
        }
        let side = Side { choices: vec![vec![wins]], tables: vec![table] };
        let first = self.comparison.last_sender();
        let switched = mux::run(channel, &self.switch(count), first, side, ots)?;
        let winner = |(index, right): (usize, &Share)| {
            let ends = switched.received.iter().chain(&switched.sent);
            ends.filter_map(|column| column.words.get(index)).fold(right.clone(), |sum, gain| {
                sum.add_scaled(&Share::new(gain.clone(), right.bits()), 1)
            })
        };
        Ok(right.iter().enumerate().map(winner).collect())
    }
}

/// Returns the maximum of each window, followed by its payload.
///
/// # Errors
/// [`Error::Misuse`] when shares or correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &Maximum,
    value: &Share,
    payload: Option<&Share>,
    mut ots: Correlations,
) -> Result<Vec<Share>> {
    let (tournament, inputs) = (&plan.tournament, plan.tournament.count());
    let width = payload.map(Share::bits);
    if value.bits() != plan.bits
        || width != plan.payload
        || std::iter::once(value).chain(payload).any(|share| share.len() != inputs)
    {
        return Err(Error::misuse("a share that does not fit its maximum"));
    }
    // With room for every winner: a vector that grows leaves copies behind.
    let room = inputs + tournament.pairs().sum::<usize>();
    let player = |share: &Share| {
        let mut words = Vec::with_capacity(room);
        words.extend_from_slice(share.words());
        words
    };
    let players: Vec<Vec<u64>> = std::iter::once(value).chain(payload).map(player).collect();
    let mut players = Zeroizing::new(players);
    let widths: Vec<u32> = std::iter::once(plan.bits).chain(plan.payload).collect();
    let pick = |players: &[Vec<u64>], indices: &[usize]| -> Vec<Share> {
        let pairs = players.iter().zip(&widths);
        let chosen = pairs.map(|(words, bits)| {
            let words = indices.iter().map(|i| words.get(*i).copied().unwrap_or(0) & mask(*bits));
            Share::new(words.collect(), *bits)
        });
        chosen.collect()
    };
    for pairs in &tournament.levels {
        let left = tournament.places(pairs.iter().map(|(left, _)| *left));
        let right = tournament.places(pairs.iter().map(|(_, right)| *right));
        let now = ots.split(channel.role(), &plan.level_need(left.len()))?;
        let winners = plan.play(channel, &pick(&players, &left), &pick(&players, &right), now)?;
        for (words, winners) in players.iter_mut().zip(winners) {
            words.extend_from_slice(winners.words());
        }
    }
    Ok(pick(&players, &tournament.places(tournament.winners.iter().copied())))
}

impl Protocol for Maximum {
    fn operator(&self) -> &'static str {
        "max pool"
    }

    fn describe(&self) -> String {
        "comparison by OT".into()
    }

    fn demand(&self) -> Demand {
        self.tournament.pairs().map(|pairs| self.level_need(pairs)).sum()
    }

    fn cost(&self) -> Cost {
        self.tournament.pairs().map(|pairs| self.level_cost(pairs)).collect()
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        let winners = run(channel, self, input(inputs, 0)?, None, ots)?.pop();
        winners.ok_or_else(|| Error::misuse("a maximum without output"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
