//! Decision trees on shared tests: the value of the leaf that each reaches.
//!
//! | | |
//! |---|---|
//! | In | for each tree shares of its comparisons' values y mod 2^bits, -2^(bits-1) <= y < 2^(bits-1), then the server's values of its leaves as shares of which the client's are zero; random OTs |
//! | Out | for each tree shares mod 2^out_bits of the values of the leaf that it reaches; a test goes right where y >= 0 in an odd number of its comparisons |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | for each test its comparisons of bits - 1, then what the layout of paths takes |
//! | Paper | Kiss et al., SoK: private decision trees (PoPETs 2019), comparison by OT; Rathee et al., CrypTFlow2 (CCS 2020) |
//!
//! All comparisons of all trees are made in one batch. What follows is a layout of paths, a value
//! behind [`Paths`]: a new one is a file here and a line in [`layout`].

mod complete;
mod paths;
mod rows;
mod stage;
mod staged;
mod table;
mod turned;
mod walk;

use graph::ops;
use ring::Bits;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use crate::boolean::compare::{self, Comparison, Radix};
use crate::correlations::{Correlations, Demand};
use crate::estimate;
use crate::protocol::{Protocol, input};
use crate::share::{Share, sign_of};
use paths::Paths;
pub use staged::{Staged, Way};

/// Sizes of trees that have one shape.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How tests lead to leaves.
    pub paths: ops::Paths,
    /// Number of values of a leaf.
    pub values: usize,
    /// Number of comparisons of a test, which goes right where an odd number of them does.
    pub comparisons: usize,
    /// Width of the tests' values.
    pub bits: u32,
    /// Width of the results.
    pub out_bits: u32,
}

impl Shape {
    /// Returns how many values go in for each tree: those of its comparisons, test by test, then
    /// those of its leaves; or for each pool: those of its comparisons, its words, and
    /// [`Shape::fresh`].
    pub fn inputs(&self) -> usize {
        self.tests() + self.paths.words(self.values) + self.fresh()
    }

    /// Returns the number of comparisons of all tests of a tree, or of a pool.
    pub fn tests(&self) -> usize {
        self.paths.tests() * self.comparisons
    }

    /// Returns the number of random bytes of the server that follow a pool's words, one in each
    /// value. No two pools share them.
    pub fn fresh(&self) -> usize {
        if matches!(self.paths, ops::Paths::Walk(_)) { walk::FRESH } else { 0 }
    }

    fn check(&self) -> Result<()> {
        let widths = (2..=64).contains(&self.bits) && (1..=self.bits).contains(&self.out_bits);
        let known = match self.paths {
            ops::Paths::Complete(depth) => (1..=ops::trees::MAX_DEPTH).contains(&depth),
            ops::Paths::Table(tests) => (1..=ops::trees::MAX_TABLE).contains(&tests),
            ops::Paths::Walk(sizes) => walk::fits(&sizes, self),
        };
        match widths && known && self.values > 0 && self.comparisons > 0 {
            true => Ok(()),
            false => Err(Error::misuse("trees of these sizes and widths")),
        }
    }
}

/// The public plan of trees.
#[derive(Debug)]
pub struct Trees {
    count: usize,
    shape: Shape,
    comparison: Comparison,
    paths: Box<dyn Paths>,
}

impl Trees {
    /// Plans `count` trees of one shape.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths beside 2 to 64 bits, and shapes that are none.
    pub fn new(count: usize, shape: Shape, radix: Radix) -> Result<Self> {
        shape.check()?;
        let plan = |sender| -> Result<Self> {
            let comparison = Comparison::carry(shape.bits - 1, radix).gates_from(sender);
            let paths = layout(count, shape, sender, comparison.last_sender());
            Ok(Self { count, shape, comparison, paths })
        };
        estimate::leaner(plan, |plan| (plan.demand(), plan.cost()))
    }

    fn compared(&self) -> usize {
        self.count * self.shape.tests()
    }
}

/// Xor shares of whether tests of so many comparisons go right, a plane of `count` tests that lie
/// together for each comparison, of values in that order.
fn outcomes(
    channel: &mut Channel,
    comparison: &Comparison,
    y: &Share,
    [count, comparisons]: [usize; 2],
    ots: &mut Correlations,
) -> Result<Vec<Bits>> {
    let found = compare::of_share(channel, comparison, y, ots)?;
    let mut all = sign_of(channel.role(), y.words(), y.bits());
    all.xor(&found.greater);
    let all = Zeroizing::new(all.to_words());
    let planes = all.chunks(count.max(1)).map(|plane| plane.iter().copied().collect());
    Ok(odd(planes, comparisons))
}

/// The protocol of a layout, which begins with `first`; gates take OTs from `sender` alone, or
/// from both parties.
fn layout(count: usize, shape: Shape, sender: Option<Role>, first: Role) -> Box<dyn Paths> {
    let sizes = [count, shape.values];
    match shape.paths {
        ops::Paths::Complete(depth) => {
            Box::new(complete::Complete::new(sizes, depth, shape.out_bits, (sender, first)))
        }
        ops::Paths::Table(tests) => Box::new(table::Table::new(sizes, tests, shape.out_bits)),
        ops::Paths::Walk(pool) => Box::new(walk::Walk::new(sizes, pool, shape.out_bits)),
    }
}

/// The xor of every so many planes: shares of whether an odd number of comparisons holds.
fn odd(planes: impl Iterator<Item = Bits>, comparisons: usize) -> Vec<Bits> {
    let mut tests: Vec<Bits> = Vec::new();
    for (at, plane) in planes.enumerate() {
        match tests.last_mut() {
            Some(test) if !at.is_multiple_of(comparisons) => test.xor(&plane),
            _ => tests.push(plane),
        }
    }
    tests
}

impl Protocol for Trees {
    fn operator(&self) -> &'static str {
        "trees"
    }

    fn describe(&self) -> String {
        let (count, bits) = (self.compared(), self.shape.bits);
        format!("{count} comparisons of {bits} bits by OT, {}", self.paths.describe())
    }

    fn demand(&self) -> Demand {
        self.comparison.demand(self.compared()) + self.paths.demand()
    }

    fn cost(&self) -> Cost {
        self.comparison.cost(self.compared()).then(self.paths.cost())
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], mut ots: Correlations) -> Result<Share> {
        let (rows, each) = (input(inputs, 0)?, self.shape.inputs());
        rows.check(self.count * each, self.shape.bits, "trees")?;
        let tests = self.shape.tests();
        let trees: Vec<(&[u64], &[u64])> =
            rows.words().chunks_exact(each).map(|row| row.split_at(tests)).collect();
        let (planes, each_test) = (self.paths.planes(), self.shape.comparisons);
        // Plane by plane, so that outcomes that lie together are of the same test of all trees, or
        // of all tests of all pools.
        let together = self.shape.paths.tests() / planes.max(1);
        let places = (0..planes * each_test).flat_map(|plane| {
            let first = plane / each_test * together * each_test + plane % each_test;
            let tests =
                move |tree| (0..together).map(move |at| tree * each + first + at * each_test);
            (0..self.count).flat_map(tests)
        });
        let y = rows.gather(places);
        let sizes = [self.count * together, each_test];
        let right = outcomes(channel, &self.comparison, &y, sizes, &mut ots)?;
        let leaves: Vec<&[u64]> = trees.iter().map(|(_, leaves)| *leaves).collect();
        let words = self.paths.run(channel, right, &leaves, ots)?;
        Ok(Share::new(words, self.shape.out_bits))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod walk_tests;
