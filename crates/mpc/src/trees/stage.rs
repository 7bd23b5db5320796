//! Some levels of a complete tree: the subtree that was reached is selected, its tests are compared,
//! and their outcomes lead on.

use ot::{Column, Entry, Job};
use ring::Bits;
use ring::word::mask;
use wire::{Channel, Cost, Result, Role};

use super::outcomes::outcomes;
use super::shape::Shape;
use super::turned::turned;
use crate::arithmetic::mux::{self, Side, Switch};
use crate::boolean::compare::{Comparison, Radix};
use crate::boolean::gmw::{self, Circuit, Gate, Partner, Wire};
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::share::Share;

/// The public plan of some levels of complete trees.
#[derive(Debug)]
pub(super) struct Stage {
    count: usize,
    /// Levels above, whose outcomes choose one of 2^above subtrees.
    above: u32,
    /// The number of levels of this stage.
    height: u32,
    /// Number of comparisons of a test.
    comparisons: usize,
    /// Width of the tests' values.
    bits: u32,
    /// Who begins.
    first: Role,
    /// The selection of a subtree; of nothing at the root.
    selection: Switch,
    comparison: Comparison,
    /// From the outcomes of all tests to those on the path.
    descent: Circuit,
    path: Vec<Wire>,
}

impl Stage {
    /// Plans `height` levels below the first `above` ones of `count` trees of a shape, compared in
    /// digits of `radix`; `first` begins.
    pub(super) fn new(
        count: usize,
        [above, height]: [u32; 2],
        (shape, radix): (Shape, Radix),
        first: Role,
    ) -> Self {
        let Shape { bits, comparisons, .. } = shape;
        let values = ((1usize << height) - 1) * comparisons;
        let entry = |words: &[usize]| match words {
            [_, _] => Entry::Pair(bits, bits),
            _ => Entry::Word(bits),
        };
        let order: Vec<usize> = (0..if above == 0 { 0 } else { values }).collect();
        let job = |words: &[usize]| Job { count, choice_bits: above, entry: entry(words) };
        let jobs: Vec<Job> = order.chunks(2).map(job).collect();
        let selection = Switch { to_client: jobs.clone(), to_server: jobs };
        // A choice between two opens at once, so that the other party ends it.
        let asks = if above == 1 { !first } else { first };
        let comparison = Comparison::carry(bits - 1, radix).asked_by(asks);
        let (descent, path) = descent(height);
        Self {
            count,
            above,
            height,
            comparisons,
            bits,
            first,
            selection,
            comparison,
            descent,
            path,
        }
    }

    /// Who sends last, and so may go on at once.
    pub(super) fn last_sender(&self) -> Role {
        self.descent.last_sender(self.comparison.last_sender())
    }

    /// Number of comparisons in each tree.
    pub(super) fn compared(&self) -> usize {
        ((1 << self.height) - 1) * self.comparisons
    }

    pub(super) fn demand(&self) -> Demand {
        let compared = self.comparison.demand(self.count * self.compared());
        self.selection.demand() + compared + self.descent.demand(self.count)
    }

    pub(super) fn cost(&self) -> Cost {
        let selected = match self.above {
            0 => Cost::NONE,
            _ => self.selection.cost(self.first),
        };
        let compared = self.comparison.cost(self.count * self.compared());
        let descended = match self.descent.levels.is_empty() {
            true => Cost::NONE,
            false => self.descent.cost(self.count, self.comparison.last_sender()),
        };
        selected.then(compared).then(descended)
    }

    /// Adds to `path`, xor shares of the outcomes on the way of each tree, root first, those of
    /// this stage. `value` gives this party's shares of what is compared, by its place in the tree.
    pub(super) fn run(
        &self,
        channel: &mut Channel,
        value: &dyn Fn(usize) -> Vec<u64>,
        path: &mut Vec<Bits>,
        ots: &mut Correlations,
    ) -> Result<()> {
        let role = channel.role();
        let y = match self.above {
            0 => Share::new((0..self.compared()).flat_map(value).collect(), self.bits),
            _ => self.select(channel, value, path, ots)?,
        };
        let found = outcomes(channel, &self.comparison, &y, [self.count, self.comparisons], ots)?;
        let gates = ots.split(role, &self.descent.demand(self.count))?;
        let first = self.comparison.last_sender();
        let mut wires = gmw::run(channel, &self.descent, found, gates, first)?;
        for wire in &self.path {
            let bit = wires.get_mut(*wire).ok_or_else(|| defect("a path has no wire"))?;
            path.push(std::mem::take(bit));
        }
        Ok(())
    }

    /// Returns the values that are compared in the subtree that `path` leads to, test by test.
    fn select(
        &self,
        channel: &mut Channel,
        value: &dyn Fn(usize) -> Vec<u64>,
        path: &[Bits],
        ots: &mut Correlations,
    ) -> Result<Share> {
        // The last outcome is the lowest bit of the subtree's number.
        let choice: zeroize::Zeroizing<Vec<Bits>> =
            path.iter().rev().cloned().collect::<Vec<_>>().into();
        let order: Vec<usize> = (0..self.compared()).collect();
        let mut side = Side { choices: Vec::new(), tables: Vec::new() };
        for pair in order.chunks(2) {
            let subtree = |number: usize| {
                let words = pair.iter().map(|at| {
                    let (test, comparison) = (at / self.comparisons, at % self.comparisons);
                    value(place(self.above, number, test) * self.comparisons + comparison)
                });
                Column { planes: Vec::new(), words: words.collect() }
            };
            let columns = (0..1usize << self.above).map(subtree).collect();
            side.tables.push(turned(columns, &choice));
            side.choices.push(choice.to_vec());
        }
        let ots = ots.split(channel.role(), &self.selection.demand())?;
        let switched = mux::run(channel, &self.selection, self.first, side, ots)?;
        let mut words = Vec::with_capacity(self.count * self.compared());
        for (received, sent) in switched.received.iter().zip(&switched.sent) {
            for (received, sent) in received.words.iter().zip(&sent.words) {
                let sums = received.iter().zip(sent).map(|(x, y)| x.wrapping_add(*y));
                words.extend(sums.map(|sum| sum & mask(self.bits)));
            }
        }
        Ok(Share::new(words, self.bits))
    }
}

/// The place in its tree of a test of the subtree with this number, counted from the left, below
/// `above` levels.
fn place(above: u32, number: usize, test: usize) -> usize {
    let level = (test + 1).ilog2();
    let within = test + 1 - (1 << level);
    ((1 << (above + level)) - 1) + (number << level) + within
}

/// A circuit that takes the outcomes of all tests of a complete tree to those on its path, and
/// the wires of these, root first: each outcome chooses between the halves of all levels below.
fn descent(height: u32) -> (Circuit, Vec<Wire>) {
    let mut circuit = Circuit { wires: (1 << height) - 1, ..Circuit::default() };
    let level = |at: u32| ((1usize << at) - 1..(2usize << at) - 1).collect::<Vec<Wire>>();
    let mut levels: Vec<Vec<Wire>> = (0..height).map(level).collect();
    let mut path = Vec::with_capacity(levels.len());
    for at in 0..levels.len() {
        let (reached, below) = levels.split_at_mut(at + 1);
        let Some(operand) = reached.last().and_then(|wires| wires.first()).copied() else { break };
        path.push(operand);
        let mut partners = Vec::new();
        for wires in below {
            let (left, right) = wires.split_at(wires.len() / 2);
            let joined = left.iter().zip(right).map(|(left, right)| {
                let output = circuit.wire();
                let factor = vec![*left, *right];
                partners.push(Partner { factor, base: vec![*left], output });
                output
            });
            *wires = joined.collect();
        }
        if !partners.is_empty() {
            circuit.push(at, Gate { operand: vec![operand], partners });
        }
    }
    (circuit, path)
}
