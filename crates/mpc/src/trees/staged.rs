//! Complete trees in stages: some levels are compared, then only the tests of the subtree that they
//! lead to.
//!
//! | | |
//! |---|---|
//! | In | for each tree shares of its tests' values y mod 2^bits, -2^(bits-1) <= y < 2^(bits-1), then the server's values of its leaves as shares of which the client's are zero; random OTs |
//! | Out | for each tree shares mod 2^out_bits of the values of the leaf that it reaches; a test goes right where y >= 0 |
//! | Reveals | masked choices, operands and table entries |
//! | Security | semi-honest, given the correlations |
//! | Cost | a stage of h levels below a: 2*(2^a - 1)*(2^h - 1) words of bits, 2^h - 1 comparisons of bits - 1, gates in h - 1 levels; then 2^depth - 1 words of out_bits for each value of a leaf |
//! | Paper | Kiss et al., SoK: private decision trees (PoPETs 2019); tables on shares: Dessouky et al., NDSS 2017; Rathee et al., CrypTFlow2 (CCS 2020) |
//!
//! Both parties hold shares of all tests. Each turns a table of its shares of the next stage's tests,
//! an entry for each subtree, by its share of the path, and the other chooses in it by its own: the
//! sum of what both get is the values of the subtree that is reached, under fresh masks. So a tree of
//! depth 6 in two stages compares 14 tests in place of 63.

use graph::ops;
use pricing::fixed::message::ROUND_BYTES;
use wire::{Channel, Cost, Error, Result, Role};

use super::paths::Paths;
use super::stage::Stage;
use super::table::Table;
use super::{Shape, Trees};
use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::estimate::Reference;
use crate::protocol::{Protocol, input};
use crate::share::Share;

/// Most levels of a stage.
const MOST_LEVELS: u32 = 4;

/// When tests of trees are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All at once, in digits of this width.
    AtOnce(Radix),
    /// In stages, in digits of this width.
    Stages(Radix),
}

impl Way {
    /// Picks the faster for `count` trees of a shape, estimated on the link and machine of
    /// [`pricing::fixed`].
    ///
    /// # Errors
    /// [`Error::Misuse`] for shapes that are none.
    pub fn fastest(count: usize, shape: Shape) -> Result<Self> {
        let radix = |tests: usize| Radix::fastest(count.saturating_mul(tests), shape.bits - 1);
        let at_once = radix(shape.tests());
        let seconds = |plan: &dyn Protocol| Reference::nanoseconds(&plan.demand(), plan.cost());
        let least = seconds(&Trees::new(count, shape, at_once)?);
        let in_stages = radix(7 * shape.comparisons);
        let staged = Staged::new(count, shape, in_stages);
        let better = staged.is_ok_and(|plan| seconds(&plan) < least);
        Ok(if better { Self::Stages(in_stages) } else { Self::AtOnce(at_once) })
    }
}

/// The public plan of trees in stages.
#[derive(Debug)]
pub struct Staged {
    count: usize,
    shape: Shape,
    stages: Vec<Stage>,
    leaves: Table,
}

impl Staged {
    /// Plans `count` complete trees of one shape, in stages of about as many levels each: of those with 2 to 4
    /// levels in fewest bytes, where a round counts as [`ROUND_BYTES`].
    ///
    /// # Errors
    /// [`Error::Misuse`] for shapes that have no stages: tables, and trees of a single level.
    pub fn new(count: usize, shape: Shape, radix: Radix) -> Result<Self> {
        shape.check()?;
        let ops::Paths::Complete(depth) = shape.paths else {
            return Err(Error::misuse("stages of trees that are not complete"));
        };
        if depth < 2 {
            return Err(Error::misuse("stages of trees of a single level"));
        }
        let plan = |parts| {
            let heights: Vec<u32> = heights(depth, parts).collect();
            Self::of(count, shape, radix, &heights)
        };
        let weight = |plan: &Self| {
            let cost = plan.cost();
            cost.bytes().saturating_add(cost.rounds.saturating_mul(ROUND_BYTES))
        };
        let parts = 2.max(depth.div_ceil(MOST_LEVELS))..=2.max(depth.div_ceil(2));
        let least = parts.map(plan).min_by_key(weight);
        least.ok_or_else(|| Error::internal("trees without stages; please report it"))
    }

    /// Plans stages of so many levels. Tables are chosen from in both directions, so gates take OTs
    /// of both, too.
    pub(super) fn of(count: usize, shape: Shape, radix: Radix, heights: &[u32]) -> Self {
        let (mut stages, mut above, mut first) = (Vec::new(), 0, Role::Client);
        for height in heights {
            let stage = Stage::new(count, [above, *height], (shape, radix), first);
            (above, first) = (above + height, stage.last_sender());
            stages.push(stage);
        }
        let leaves = Table::new([count, shape.values], above, shape.out_bits);
        Self { count, shape, stages, leaves }
    }
}

/// So many parts of `depth` levels, the larger first.
pub(super) fn heights(depth: u32, parts: u32) -> impl Iterator<Item = u32> {
    (0..parts).map(move |part| depth / parts + u32::from(part < depth % parts))
}

impl Protocol for Staged {
    fn operator(&self) -> &'static str {
        "trees"
    }

    fn describe(&self) -> String {
        let compared: usize = self.stages.iter().map(Stage::compared).sum();
        let (count, bits, stages) = (self.count * compared, self.shape.bits, self.stages.len());
        let leaves = self.leaves.describe();
        format!("{count} comparisons of {bits} bits by OT in {stages} stages, {leaves}")
    }

    fn demand(&self) -> Demand {
        self.stages.iter().map(Stage::demand).sum::<Demand>() + self.leaves.demand()
    }

    fn cost(&self) -> Cost {
        self.stages.iter().map(Stage::cost).collect::<Cost>().then(self.leaves.cost())
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], mut ots: Correlations) -> Result<Share> {
        let (rows, each) = (input(inputs, 0)?, self.shape.inputs());
        rows.check(self.count * each, self.shape.bits, "trees")?;
        let words = rows.words();
        let value = |test: usize| words.iter().skip(test).step_by(each).copied().collect();
        let mut path = zeroize::Zeroizing::new(Vec::new());
        for stage in &self.stages {
            stage.run(channel, &value, &mut path, &mut ots)?;
        }
        // The last outcome is the lowest bit of a leaf's number.
        path.reverse();
        let tests = self.shape.tests();
        let leaves: Vec<&[u64]> =
            words.chunks_exact(each).filter_map(|row| row.get(tests..)).collect();
        let words = self.leaves.run(channel, path.to_vec(), &leaves, ots)?;
        Ok(Share::new(words, self.shape.out_bits))
    }
}
